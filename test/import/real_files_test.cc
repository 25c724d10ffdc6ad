// Every real trace imports with as many ops as events counted by other means, or is refused with the right
// sentence.
#include <algorithm>

#include "sim/model/read_file.h"
#include "test/import/data.h"

namespace hyperoffload {
namespace {

std::vector<std::string> files_in(const std::string& folder, const std::string& part) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (contains(entry.path().filename().string(), part)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

// How often `"key": "value"` stands in a text, whatever the spaces.
std::size_t count_pairs(const std::string& text, const std::string& key, const std::string& value) {
  const std::string name = "\"" + key + "\":", wanted = "\"" + value + "\"";
  std::size_t count = 0;
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    std::size_t begin = at + name.size();
    while (text[begin] == ' ') ++begin;
    count += text.compare(begin, wanted.size(), wanted) == 0;
  }
  return count;
}

}  // namespace

TEST_CASE(
    "every real Kineto trace has an op for each kernel, copy and memset, or is refused for having none") {
  std::size_t imported = 0, refused = 0;
  for (const std::string folder : {"kineto_hta", "kineto_tracelens", "et_param"}) {
    const auto path = real_file(folder);
    if (!path) return;
    for (const std::string& file : files_in(*path, folder == "et_param" ? "_kineto.json" : "")) {
      INFO(file);
      const std::string text = read_file(file, "a trace");
      std::size_t events = 0;
      for (const char* category : {"kernel", "gpu_memcpy", "gpu_memset"})
        events += count_pairs(text, "cat", category);
      if (events > 0) {
        CHECK(import_trace("kineto", {file}, {}).graph.ops().size() == events);
        ++imported;
        continue;
      }
      const std::string message = input_error([&] { import_trace("kineto", {file}, {}); });
      const bool trace = contains(text.substr(0, text.find('[') + 1), "\"schemaVersion\"") ||
                         contains(text, "\"traceEvents\"");
      CHECK(contains(message, trace ? "found no kernel, gpu_memcpy or gpu_memset event among"
                                    : "expected a PyTorch profiler trace"));
      ++refused;
    }
  }
  CHECK(imported == 22);
  CHECK(refused == 9);
}

}  // namespace hyperoffload
