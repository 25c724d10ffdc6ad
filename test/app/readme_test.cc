// The commands, options and links of the README and of every page in docs/: each page's commands are run as
// written, in the page's order, in a folder where configs, traces and build/hyperoffload are.
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"

using namespace hyperoffload;
namespace fs = std::filesystem;

namespace {

const fs::path kSource = source_dir();

std::vector<fs::path> pages() {
  std::vector<fs::path> found = {kSource / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Blocks between ``` whose first line is one of our commands, or that say ```sh; those of scripts/ set up and
// build, and aren't run here.
std::vector<std::string> command_blocks(const fs::path& page) {
  std::ifstream in(page);
  std::vector<std::string> blocks;
  std::string block;
  bool inside = false, shell = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("```", 0) != 0) {
      if (inside) block += line + "\n";
      continue;
    }
    if (inside && (shell || block.rfind("build/hyperoffload ", 0) == 0)) blocks.push_back(block);
    if (!inside) shell = line == "```sh";
    inside = !inside;
    block.clear();
  }
  return blocks;
}

// Runs in `folder`; what goes wrong, or nothing.
std::string run_block(const std::string& block, const TemporaryFolder& folder) {
  write_text(folder / "block.sh", block);
  const std::string log = folder / "log";
  const std::string line =
      "cd " + folder.path() + " && bash -euo pipefail block.sh >" + log + " 2>&1 </dev/null";
  return std::system(line.c_str()) == 0 ? "" : block + read_text(log);
}

std::vector<std::string> failures_of(const fs::path& page, std::size_t& commands) {
  TemporaryFolder folder;
  for (const char* name : {"configs", "traces", "scripts"})
    fs::create_directory_symlink(kSource / name, fs::path(folder.path()) / name);
  fs::create_directory(folder / "out");
  fs::create_directory(folder / "build");
  fs::create_symlink(binary_path(), fs::path(folder.path()) / "build" / "hyperoffload");
  std::vector<std::string> failures;
  for (const std::string& block : command_blocks(page)) {
    ++commands;
    if (const std::string failure = run_block(block, folder); !failure.empty()) failures.push_back(failure);
  }
  return failures;
}

// The page's text without its blocks.
std::string prose_of(const fs::path& page) {
  std::ifstream in(page);
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("```", 0) == 0)
      inside = !inside;
    else if (!inside)
      text += line + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("docs: the README's commands run as written") {
  std::size_t blocks = 0;
  for (const std::string& failure : failures_of(kSource / "README.md", blocks)) FAIL_CHECK(failure);
  CHECK(blocks >= 1);
}

TEST_CASE("docs: the commands of every other page run as written") {
  std::size_t blocks = 0;
  for (const fs::path& page : pages()) {
    if (page == kSource / "README.md") continue;
    for (const std::string& failure : failures_of(page, blocks)) FAIL_CHECK(page.string() << "\n" << failure);
  }
  CHECK(blocks >= 4);
}

TEST_CASE("docs: links lead to files, and options that are named exist") {
  // Of other programs that the pages name.
  std::set<std::string> known = {"--preset", "--prefix", "--target", "--install", "--config", "--build"};
  for (std::istringstream words(run_hyperoffload("manual").out); words;) {
    std::string word;
    words >> word;
    std::string option;
    for (const char c : word)
      if (c != '\\') option += c;
    if (const std::size_t at = option.find("--"); at != std::string::npos) {
      const std::size_t end = option.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
      known.insert(option.substr(at, end - at));
    }
    if (option.rfind("fB--", 0) == 0) known.insert(option.substr(2, option.find("fR") - 2));
  }
  REQUIRE(known.count("--policy") == 1);
  for (const fs::path& page : pages()) {
    const std::string text = prose_of(page);
    for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
      const std::string link = text.substr(at + 2, text.find(')', at) - at - 2);
      INFO(page.string() << ": " << link);
      if (link.find("://") == std::string::npos)
        CHECK(fs::exists(page.parent_path() / link.substr(0, link.find('#'))));
    }
    for (std::size_t at = text.find("`--"); at != std::string::npos; at = text.find("`--", at + 1)) {
      const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at + 1);
      const std::string option = text.substr(at + 1, end - at - 1);
      INFO(page.string() << ": " << option);
      CHECK(known.count(option) == 1);
    }
  }
}
