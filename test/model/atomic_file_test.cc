#include "sim/model/atomic_file.h"

#include <unistd.h>

#include <filesystem>

#include "sim/model/read_file.h"
#include "test/model/message.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

namespace fs = std::filesystem;

// An empty directory that goes when the test ends.
struct Directory {
  fs::path path = fs::temp_directory_path() / ("hyperoffload_test_" + std::to_string(getpid()));
  Directory() { fs::create_directory(path); }
  ~Directory() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

TEST_CASE("A written file is there whole, alone, and replaces what was there") {
  const Directory dir;
  write_file_atomically(dir.file("a.json"), "one\n");
  write_file_atomically(dir.file("a.json"), "two\n");
  CHECK(read_file(dir.file("a.json"), "text") == "two\n");
  CHECK(dir.count() == 1);
}

TEST_CASE("A name in .gz is packed, the same text to the same bytes") {
  const Directory dir;
  const std::string text(100'000, 'x');
  write_file_atomically(dir.file("a.json.gz"), text);
  write_file_atomically(dir.file("b.json.gz"), text);
  CHECK(fs::file_size(dir.file("a.json.gz")) < 1000);
  CHECK(read_file(dir.file("a.json.gz"), "text") == text);
  CHECK(gzip(text) == gzip(text));
  CHECK(gzip(text).substr(4, 4) == std::string(4, '\0'));  // RFC 1952: MTIME 0, "no time stamp"
}

TEST_CASE("What can't be written is one sentence, and leaves nothing behind") {
  const Directory dir;
  CHECK(contains(input_error([&] { write_file_atomically(dir.file("no/a.json"), "x"); }),
                 "no/a.json: found a place where no file can be made (No such file"));
  fs::create_directory(dir.path / "d");
  CHECK(contains(input_error([&] { write_file_atomically(dir.file("d"), "x"); }),
                 "d: found a name that can't be taken"));
  CHECK(contains(input_error([&] { write_file_atomically("", "x"); }), "found an empty name"));
  CHECK(contains(input_error([&] { write_file_atomically("/dev/full", std::string(1 << 20, 'x')); }),
                 "/dev/full: found a write error (No space left"));
  CHECK(dir.count() == 1);
}

}  // namespace
}  // namespace hyperoffload
