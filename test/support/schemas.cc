#include "test/support/schemas.h"

#include <cstdio>
#include <sstream>

#include "sim/model/error.h"
#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"

namespace hyperoffload {

using nlohmann::json;

namespace {

struct Damage {
  std::string what;
  json document;
};

// An unknown key in every object; every value as something of another type; every key once left out.
std::vector<Damage> damages(const json& good) {
  std::vector<Damage> all;
  const json flat = good.flatten();
  for (const auto& [path, leaf] : flat.items()) {
    if (path.rfind("/meta/", 0) == 0) continue;  // free
    for (json::json_pointer at(path); !at.empty(); at = at.parent_pointer()) {
      const std::string place = at.to_string();
      for (const json& other : {json(true), json("?"), json(-1), json(0.5), json::array(), json::object()}) {
        if (other.type() == good[at].type()) continue;
        all.push_back({place + " := " + other.dump(), good});
        all.back().document[at] = other;
      }
      const json& above = good[at.parent_pointer()];
      if (!above.is_object()) continue;
      all.push_back({place + " left out", good});
      all.back().document[at.parent_pointer()].erase(at.back());
      all.push_back({at.parent_pointer().to_string() + " with an unknown key", good});
      all.back().document[at.parent_pointer()]["unknown"] = 1;
    }
  }
  return all;
}

}  // namespace

std::vector<std::string> validate(const std::string& schema, const std::vector<std::string>& files) {
  std::string command = "python3 " + source_dir() + "/test/support/validate_json.py " + source_dir() +
                        "/docs/schemas/" + schema + ".schema.json";
  for (const std::string& file : files) command += " '" + file + "'";
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  REQUIRE(pclose(pipe) == 0);
  std::vector<std::string> verdicts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) verdicts.push_back(line);
  REQUIRE(verdicts.size() == files.size());
  return verdicts;
}

void check_valid(const std::string& schema, const std::vector<std::string>& files) {
  for (const std::string& verdict : validate(schema, files)) CHECK(verdict == "ok");
}

void compare_damage(const std::string& schema, const json& good,
                    const std::function<void(const std::string&)>& parse) {
  TemporaryFolder folder;
  const std::vector<Damage> all = damages(good);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < all.size(); ++i) {
    files.push_back(folder / std::to_string(i));
    write_text(files.back(), all[i].document.dump());
  }
  const std::vector<std::string> verdicts = validate(schema, files);
  int refused = 0, unknown_keys = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string error;
    try {
      parse(all[i].document.dump());
    } catch (const InputError& e) {
      error = e.what();
    }
    INFO(all[i].what << "\nschema: " << verdicts[i] << "\nreader: " << error);
    // A name that nothing has, or an op without its tensor, is beyond a schema.
    const bool names = error.find("which is no ") != std::string::npos ||
                       error.find("before anything wrote it") != std::string::npos ||
                       error.find("which is not persistent") != std::string::npos ||
                       error.find("each op once") != std::string::npos ||
                       error.find("expected a YAML file") != std::string::npos;
    CHECK((verdicts[i] == "ok") == (error.empty() || names));
    refused += verdicts[i] != "ok";
    if (all[i].what.find("unknown key") != std::string::npos) {
      ++unknown_keys;
      CHECK(verdicts[i] != "ok");
      CHECK(error.find("unknown") != std::string::npos);
    }
  }
  CHECK(refused > 100);
  CHECK(unknown_keys > 10);
}

}  // namespace hyperoffload
