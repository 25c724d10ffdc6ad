// Runs the built `hyperoffload` as a user would.
#pragma once

#include <filesystem>
#include <string>

namespace hyperoffload {

struct CommandResult {
  int status = -1;  // exit status
  std::string out, err;
};

// `arguments` as typed in a shell.
CommandResult run_hyperoffload(const std::string& arguments);

// A new empty folder, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);

}  // namespace hyperoffload
