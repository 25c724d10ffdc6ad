// A policy as the user names it: "on_demand:evict=oldest", or {name: on_demand, evict: oldest} in YAML.
// What the policies are called and take: policy_table.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/model/units.h"
#include "sim/model/yaml_reader.h"

namespace hyperoffload {

// One option of a policy. A value is one of `words`, or what its kind says.
struct PolicyOption {
  enum class Kind { kWord, kInteger, kNumber, kBytes, kSeconds };

  std::string name;
  Kind kind = Kind::kWord;
  std::string fallback;            // the default, as a user would write it
  std::string help;
  std::vector<std::string> words = {};  // all of them for kWord; for the others such as "auto"
  std::int64_t min = 0;            // of kInteger and kNumber
  std::int64_t max = 1'000'000'000;
};

struct PolicyInfo {
  std::string name, summary;
  std::vector<PolicyOption> options;
};
const std::vector<PolicyInfo>& known_policies();
std::string policy_help();  // a line a policy, a line an option

struct PolicySpec {
  std::string name;
  std::map<std::string, std::string> options;  // those given, as written

  std::string text() const;  // NAME[:key=value,...], keys in order

  // The option's value, or its default. They are checked when it is parsed.
  const std::string& word(const std::string& option) const;
  bool is(const std::string& option, const std::string& value) const { return word(option) == value; }
  std::int64_t integer(const std::string& option) const;
  double number(const std::string& option) const;
  Bytes bytes(const std::string& option) const;
  Seconds seconds(const std::string& option) const;
};

// InputError for a name, option or value that isn't known (with the nearest), or an option given twice.
PolicySpec parse_policy(const std::string& text, const std::string& where);
PolicySpec parse_policy(const YamlNode& node);

}  // namespace hyperoffload
