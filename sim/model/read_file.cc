#include "sim/model/read_file.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "sim/model/check.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

// Some never end: /dev/zero, a file of holes. No text begins with a NUL, and a device that isn't a terminal or
// a pipe gives at most so much.
constexpr std::size_t kMostOfDevice = 1u << 30;

bool is_device(std::FILE* file) {
  struct stat status {};
  return fstat(fileno(file), &status) == 0 && S_ISCHR(status.st_mode) && isatty(fileno(file)) == 0;
}

std::string read_all(std::FILE* file, const std::string& source, const std::string& expected) {
  const bool device = is_device(file);
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file)) {
    text.append(buffer, count);
    if (text[0] == '\0') throw InputError(source, "a NUL byte at the start", expected);
    if (device && text.size() > kMostOfDevice) throw InputError(source, "a device without an end", expected);
  }
  if (std::ferror(file))
    throw InputError(source, std::string("a read error (") + std::strerror(errno) + ")", expected);
  return text;
}

}  // namespace

std::string source_name(const std::string& path) { return path == "-" ? "standard input" : path; }

void check_begin(std::string_view text, const std::string& source) {
  if (text.starts_with("\x1f\x8b")) throw InputError(source, "a gzip file within a gzip file", "one that is gzipped once");
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    throw InputError(source, "text in UTF-16", "UTF-8");
}

std::string gunzip_if_needed(std::string text, const std::string& source) {
  constexpr std::string_view kGzipMagic = "\x1f\x8b";
  if (!std::string_view(text).starts_with(kGzipMagic)) return text;
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  HYPER_CHECK(inflateInit2(&stream, kGzipOnly) == Z_OK, "zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string unpacked;
  std::string_view rest = text;
  char buffer[1 << 16];
  int status = Z_OK;
  do {
    if (status == Z_STREAM_END) inflateReset(&stream);  // gzip files may stand one behind the other
    do {
      const std::size_t chunk = std::min<std::size_t>(rest.size(), 1u << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream.avail_in = static_cast<uInt>(chunk);
      stream.next_out = reinterpret_cast<Bytef*>(buffer);
      stream.avail_out = sizeof buffer;
      status = inflate(&stream, Z_NO_FLUSH);
      rest.remove_prefix(chunk - stream.avail_in);
      unpacked.append(buffer, sizeof buffer - stream.avail_out);
    } while (status == Z_OK && (!rest.empty() || stream.avail_out == 0));
    if (status != Z_STREAM_END)
      throw InputError(
          source,
          status == Z_OK || status == Z_BUF_ERROR ? "a gzip file that ends too early" : "a damaged gzip file",
          "a whole one");
  } while (rest.starts_with(kGzipMagic));
  check_begin(unpacked, source);
  if (!rest.empty()) throw InputError(source, "a gzip file with other bytes behind it", "a whole one");
  return unpacked;
}

std::string read_file(const std::string& path, const std::string& expected) {
  const std::string source = source_name(path);
  if (path.empty()) throw InputError("file name", "an empty name", expected);
  struct stat status {};
  if (path != "-" && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    throw InputError(source, "a directory", expected);
  const std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file)
    throw InputError(source,
                     errno == ENOENT
                         ? "no such file"
                         : std::string("a file that can't be opened (") + std::strerror(errno) + ")",
                     expected);
  std::string text = gunzip_if_needed(read_all(file.get(), source, expected), source);
  check_begin(text, source);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}  // namespace hyperoffload
