#include "sim/import/text_stream.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/model/error.h"
#include "sim/model/read_file.h"
#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kPiece = 1 << 18;
// Of a tar header (POSIX ustar): its length, and where the size, the type and the magic stand.
constexpr std::size_t kBlock = 512, kSizeAt = 124, kTypeAt = 156, kMagicAt = 257;

gzFile as_gz(void* file) { return static_cast<gzFile>(file); }

}  // namespace

void TextStream::Close::operator()(void* file) const { gzclose_r(as_gz(file)); }

TextStream::TextStream(const std::string& path, const std::string& expected)
    : source_(source_name(path)), expected_(expected), buffer_(kPiece) {
  if (path.empty()) throw InputError("file name", "an empty name", expected);
  struct stat status {};
  if (path != "-" && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    throw InputError(source_, "a directory", expected);
  errno = 0;
  file_.reset(path == "-" ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path.c_str(), "rb"));
  if (!file_)
    throw InputError(source_,
                     errno == ENOENT
                         ? "no such file"
                         : std::string("a file that can't be opened (") + std::strerror(errno) + ")",
                     expected);
  gzbuffer(as_gz(file_.get()), static_cast<unsigned>(kPiece));
}

std::string_view TextStream::raw_piece() {
  const int count = gzread(as_gz(file_.get()), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int error = Z_OK;
  const char* message = gzerror(as_gz(file_.get()), &error);
  if (error == Z_BUF_ERROR) throw InputError(source_, "a gzip file that ends too early", "a whole one");
  if (error == Z_DATA_ERROR) throw InputError(source_, "a damaged gzip file", "a whole one");
  if (count < 0 || error != Z_OK)
    throw InputError(
        source_, std::string("a read error (") + (error == Z_ERRNO ? std::strerror(errno) : message) + ")",
        expected_);
  return {buffer_.data(), static_cast<std::size_t>(count)};
}

std::string_view TextStream::next_piece() {
  if (!again_.empty()) return std::exchange(again_, {});
  if (begun_) return tar_ ? tar_piece() : raw_piece();
  begun_ = true;
  raw_ = raw_piece();
  if (!raw_.empty() &&
      raw_[0] == '\0')  // no format begins so; /dev/zero and files of holes do, and never end
    throw InputError(source_, "a NUL byte at the start", expected_);
  check_begin(raw_, source_);
  if (raw_.starts_with(kByteOrderMark)) raw_.remove_prefix(kByteOrderMark.size());
  tar_ = raw_.size() >= kBlock && raw_.substr(kMagicAt, 5) == "ustar";
  return tar_ ? tar_piece() : std::exchange(raw_, {});
}

// Reads on to the next file of the archive, or to its end (left_ 0 and an empty raw_).
void TextStream::next_member() {
  while (true) {
    std::string block;
    while (block.size() < kBlock) {
      if (raw_.empty()) raw_ = raw_piece();
      if (raw_.empty()) return;
      const std::size_t count = std::min(raw_.size(), kBlock - block.size());
      block += raw_.substr(0, count);
      raw_.remove_prefix(count);
    }
    if (block[0] == '\0') continue;  // blocks of zeros close the archive
    std::uint64_t size = 0;
    for (std::size_t i = kSizeAt; i < kSizeAt + 11 && block[i] >= '0' && block[i] <= '7'; ++i)
      size = size * 8 + static_cast<std::uint64_t>(block[i] - '0');
    left_ = size;
    padding_ = (kBlock - size % kBlock) % kBlock;
    const char type = block[kTypeAt];
    if (type == '0' || type == '\0') {
      const std::string name = block.substr(0, std::min<std::size_t>(100, block.find('\0')));
      if (!member_.empty())
        throw InputError(
            source_,
            "a tar archive of several files (" + printable(member_) + ", " + printable(name) + ", ...)",
            "one file: unpack it first");
      member_ = name;
      return;
    }
    for (std::uint64_t skip = left_ + padding_; skip > 0;) {  // a folder, or a header of another kind
      if (raw_.empty()) raw_ = raw_piece();
      if (raw_.empty()) return;
      const auto count = std::min<std::uint64_t>(raw_.size(), skip);
      raw_.remove_prefix(count);
      skip -= count;
    }
    left_ = padding_ = 0;
  }
}

std::string_view TextStream::tar_piece() {
  if (left_ == 0 && member_.empty()) next_member();
  if (left_ > 0) {
    if (raw_.empty()) raw_ = raw_piece();
    if (raw_.empty()) throw InputError(source_, "a tar archive that ends too early", "a whole one");
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(raw_.size(), left_));
    const std::string_view piece = raw_.substr(0, count);
    raw_.remove_prefix(count);
    left_ -= count;
    return piece;
  }
  while (padding_ > 0) {
    if (raw_.empty()) raw_ = raw_piece();
    if (raw_.empty()) return {};
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(raw_.size(), padding_));
    raw_.remove_prefix(count);
    padding_ -= count;
  }
  next_member();  // refuses another file
  return {};
}

}  // namespace hyperoffload
