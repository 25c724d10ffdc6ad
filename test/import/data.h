// What the import tests share: where real traces lie, and the usual checks.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "sim/import/import.h"
#include "test/model/message.h"
#include "test/support/catch.h"
#include "test/support/paths.h"

namespace hyperoffload {

// The path of a real trace, or nothing (with a warning) where the shared data is absent.
// HYPEROFFLOAD_SHARED_DATA names another place for it.
inline std::optional<std::string> real_file(const std::string& name) {
  const std::string path = shared_data_dir() + "/" + name;
  if (std::filesystem::exists(path)) return path;
  WARN("skipped: " << path << " is absent");
  return std::nullopt;
}

// A file with this content under a temporary folder that lives as long as the object.
class TemporaryFiles {
 public:
  TemporaryFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "hyperoffload-import-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~TemporaryFiles() { std::filesystem::remove_all(folder_); }
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;

  std::string add(const std::string& name, const std::string& content) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::string folder_;
};

inline bool has_remark(const ImportResult& result, const std::string& part) {
  for (const std::string& remark : result.remarks)
    if (contains(remark, part)) return true;
  return false;
}

inline double total_seconds(const Graph& graph) {
  long double sum = 0;
  for (const Op& op : graph.ops()) sum += op.duration.value_or(Seconds(0)).value;
  return static_cast<double>(sum);
}

}  // namespace hyperoffload
