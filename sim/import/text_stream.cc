#include "sim/import/text_stream.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/model/error.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kPiece = 1 << 18;

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

std::string_view TextStream::next_piece() {
  if (!again_.empty()) return std::exchange(again_, {});
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

}  // namespace hyperoffload
