// The README's commands, run as written from the top folder; each must exit 0.
#include <fstream>

#include "test/support/catch.h"
#include "test/support/command.h"

using namespace hyperoffload;

TEST_CASE("every build/hyperoffload command of the README runs as written") {
  TemporaryFolder folder;
  std::filesystem::create_directory_symlink(std::string(SOURCE_DIR) + "/configs", folder / "configs");
  std::filesystem::create_directory(folder / "out");
  std::ifstream readme(std::string(SOURCE_DIR) + "/README.md");
  const std::string prefix = "build/hyperoffload ";
  int commands = 0;
  for (std::string line; std::getline(readme, line);) {
    if (line.rfind(prefix, 0) != 0) continue;
    ++commands;
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    const CommandResult run = run_hyperoffload(line.substr(prefix.size()));
    std::filesystem::current_path(here);
    INFO(line << "\n" << run.err);
    CHECK(run.status == 0);
  }
  CHECK(commands >= 7);
}
