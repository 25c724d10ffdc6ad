#include "app/sweep_prune.h"

#include <string>

#include "app/sweep_key.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

namespace fs = std::filesystem;

bool ends_in_key(const std::string& name) {
  if (name.size() <= kKeyInName || name[name.size() - kKeyInName - 1] != '-') return false;
  return name.find_first_not_of("0123456789abcdef", name.size() - kKeyInName) == std::string::npos;
}

bool known_file(const fs::directory_entry& file) {
  if (!file.is_regular_file() || file.is_symlink()) return false;
  const fs::path name = file.path().filename();
  return name == kResultFile || name == kTimelineFile || name == kChecksumFile || name.extension() == ".tmp";
}

// Policies' folders, with known files alone in them.
bool ours(const fs::directory_entry& point) {
  if (!point.is_directory() || point.is_symlink() || !ends_in_key(point.path().filename().string())) return false;
  for (const auto& policy : fs::directory_iterator(point)) {
    if (!policy.is_directory() || policy.is_symlink()) return false;
    for (const auto& file : fs::directory_iterator(policy))
      if (!known_file(file)) return false;
  }
  return true;
}

}  // namespace

StaleFolders stale_folders(const fs::path& points, const std::set<fs::path>& current) {
  StaleFolders stale;
  for (const auto& entry : fs::directory_iterator(points)) {
    if (current.contains(entry.path())) continue;
    if (ours(entry))
      stale.ours.push_back(entry.path());
    else
      ++stale.others;
  }
  return stale;
}

void remove_folders(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    std::error_code error;
    fs::remove_all(folder, error);
    if (error) throw InputError(folder.string(), error.message(), "a folder that may be removed");
  }
}

}  // namespace hyperoffload
