// A file piece by piece: plain or gzip (told by content), "-" is standard input. Of a tar archive the one
// file in it is read; one of several files is refused. Memory of one piece.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hyperoffload {

class TextStream {
 public:
  // `expected` says in messages what the file should have been. InputError for a missing file, a directory,
  // broken or truncated gzip (at the piece that shows it).
  TextStream(const std::string& path, const std::string& expected);

  // The bytes that come next, at least one; empty at the end. They stay valid until the next call.
  std::string_view next_piece();

  // The same bytes come again at the next call: for a look at how a file begins.
  void put_back(std::string_view piece) { again_ = piece; }

  const std::string& source() const { return source_; }
  const std::string& expected() const { return expected_; }

 private:
  std::string_view raw_piece();
  std::string_view tar_piece();
  void next_member();

  struct Close {
    void operator()(void* file) const;
  };
  std::string source_, expected_;
  std::unique_ptr<void, Close> file_;  // zlib's gzFile
  std::vector<char> buffer_;
  std::string_view again_;
  bool begun_ = false, tar_ = false;
  std::string_view raw_;       // of a tar archive: what is left of the last piece
  std::uint64_t left_ = 0;     // of the tar member that is read
  std::uint64_t padding_ = 0;  // behind it
  std::string member_;         // its name
};

}  // namespace hyperoffload
