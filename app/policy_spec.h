// A policy as the user names it: "on_demand:evict=oldest", or {name: on_demand, evict: oldest} in YAML.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/model/yaml_reader.h"

namespace hyperoffload {

struct PolicySpec {
  std::string name;
  std::map<std::string, std::string> options;

  std::string text() const;  // NAME[:key=value,...], keys in order
};

// What the policies are called and what each takes; the help texts come from here.
struct PolicyInfo {
  std::string name, summary;
  std::map<std::string, std::vector<std::string>> options;  // each with its values
};
const std::vector<PolicyInfo>& known_policies();

// InputError for a name or option that isn't known (with the nearest), or an option given twice.
PolicySpec parse_policy(const std::string& text, const std::string& where);
PolicySpec parse_policy(const YamlNode& node);

}  // namespace hyperoffload
