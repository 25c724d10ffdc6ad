// Which room may look into which: the includes of every source file.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "test/support/catch.h"
#include "test/support/paths.h"

namespace fs = std::filesystem;

namespace {

std::vector<std::string> includes_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> found;
  for (std::string line; std::getline(in, line);)
    if (line.rfind("#include", 0) == 0) found.push_back(line);
  return found;
}

// Every include of `room` that has `what` in it, as "file: include".
std::vector<std::string> includes_with(const std::string& room, const std::string& what,
                                       const std::vector<std::string>& but_in = {}) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(hyperoffload::source_dir()) / room)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = fs::relative(entry.path(), hyperoffload::source_dir()).string();
    bool allowed = false;
    for (const std::string& folder : but_in) allowed |= name.rfind(folder, 0) == 0;
    if (allowed) continue;
    for (const std::string& line : includes_of(entry.path()))
      if (line.find(what) != std::string::npos) found.push_back(name + ": " + line);
  }
  return found;
}

const std::vector<std::string> kNone;

}  // namespace

TEST_CASE("the world knows nothing of the planner") { CHECK(includes_with("sim", "\"planner/") == kNone); }

TEST_CASE("the planner sees sim/model only") {
  CHECK(includes_with("planner", "\"sim/machine") == kNone);
  CHECK(includes_with("planner", "\"sim/replay") == kNone);
  CHECK(includes_with("planner", "\"sim/policy") == kNone);
  CHECK(includes_with("planner", "\"sim/report") == kNone);
  CHECK(includes_with("planner", "\"sim/workload") == kNone);
}

TEST_CASE("SimGrid stays in the machine") {
  for (const char* room : {"sim", "planner", "app"})
    CHECK(includes_with(room, "<simgrid", {"sim/machine/"}) == kNone);
}

TEST_CASE("Clp stays in the bounds, protobuf in the importers") {
  for (const char* room : {"sim", "planner", "app"}) {
    CHECK(includes_with(room, "<Clp", {"planner/bound/"}) == kNone);
    CHECK(includes_with(room, "<google/protobuf", {"sim/import/"}) == kNone);
  }
}

TEST_CASE("nothing but the app and the tests looks into the app") {
  for (const char* room : {"sim", "planner"}) CHECK(includes_with(room, "\"app/") == kNone);
}

TEST_CASE("no test has a name that its runner would not find") {
  // CTest takes ';' for the end of a name and a '-' at its start for an option: Catch2 then runs no test, and passes.
  const std::string mark = std::string("TEST_") + "CASE(\"";
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(hyperoffload::source_dir()) / "test")) {
    if (entry.path().extension() != ".cc") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      const std::size_t at = line.find(mark);
      if (at == std::string::npos) continue;
      const std::string name = line.substr(at + mark.size(), line.find('"', at + mark.size()) - at - mark.size());
      INFO(entry.path().string() << ": " << name);
      CHECK(name.find(';') == std::string::npos);
      CHECK(name.rfind("-", 0) != 0);
    }
  }
}

TEST_CASE("no two headers define a type of one name") {
  // The linker keeps one of two inline functions of the same name and says nothing.
  const std::regex definition("^(?:struct|class|enum class) ([A-Z][A-Za-z0-9]*)[^;]*\\{.*");
  std::map<std::string, std::string> places;
  for (const char* room : {"sim", "planner", "app"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(hyperoffload::source_dir()) / room)) {
      if (entry.path().extension() != ".h") continue;
      std::ifstream in(entry.path());
      std::smatch match;
      for (std::string line; std::getline(in, line);) {
        if (!std::regex_match(line, match, definition)) continue;
        const auto [first, is_new] = places.emplace(match[1], entry.path().string());
        INFO(match[1] << " in " << entry.path().string() << " and " << first->second);
        CHECK(is_new);
      }
    }
  CHECK(places.size() > 100);
}
