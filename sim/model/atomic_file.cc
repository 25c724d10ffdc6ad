#include "sim/model/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "sim/model/check.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw InputError(path, what + " (" + std::strerror(error) + ")", "a place that can be written");
}

// Writes and closes; errno of the first failure, 0 when all is on its way to the disk.
int write_and_close(std::FILE* file, const std::string& text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  if (std::fclose(file) == 0 && written) return 0;
  return write_error != 0 ? write_error : errno != 0 ? errno : EIO;
}

void write_stdout(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail("standard output", "a write error", errno);
}

// Devices and pipes (/dev/null, /dev/stdout) are written in place: a rename would replace them.
bool is_special(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

}  // namespace

std::string gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzipFormat = 16 + MAX_WBITS, kMemLevel = 8;
  HYPER_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, kGzipFormat, kMemLevel, Z_DEFAULT_STRATEGY) == Z_OK,
              "zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::string packed;
  char buffer[1 << 16];
  std::size_t done = 0;
  int status = Z_OK;
  do {
    const std::size_t chunk = std::min<std::size_t>(text.size() - done, 1u << 30);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + done));
    stream.avail_in = static_cast<uInt>(chunk);
    done += chunk;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer);
      stream.avail_out = sizeof buffer;
      status = deflate(&stream, done == text.size() ? Z_FINISH : Z_NO_FLUSH);
      packed.append(buffer, sizeof buffer - stream.avail_out);
    } while (stream.avail_out == 0);
  } while (done < text.size());
  HYPER_CHECK(status == Z_STREAM_END, "zlib did not finish");
  return packed;
}

void write_file_atomically(const std::string& path, const std::string& text) {
  if (path == "-") return write_stdout(text);
  if (path.empty()) throw InputError("output file", "an empty name", "a file name, or - for standard output");
  const std::string content = path.ends_with(".gz") ? gzip(text) : text;
  if (is_special(path)) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) fail(path, "a file that can't be opened", errno);
    if (const int error = write_and_close(file, content)) fail(path, "a write error", error);
    return;
  }
  // Another machine may share the folder, and have a process of the same number.
  std::string temporary;
  int descriptor = -1;
  for (int i = 0; descriptor < 0; ++i) {
    temporary = fmt::format("{}.{}-{}.tmp", path, getpid(), i);
    descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) fail(path, "a place where no file can be made", errno);
  }
  std::FILE* file = fdopen(descriptor, "wb");
  HYPER_CHECK(file != nullptr, "no stream for an open file");
  if (const int error = write_and_close(file, content)) {
    std::remove(temporary.c_str());
    fail(path, "a write error", error);
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    fail(path, "a name that can't be taken", error);
  }
}

}  // namespace hyperoffload
