#include "app/policy_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

void check_policy(const PolicySpec& spec, const std::string& where) {
  std::vector<std::string> names;
  for (const PolicyInfo& info : known_policies()) {
    names.push_back(info.name);
    if (info.name != spec.name) continue;
    for (const auto& [key, value] : spec.options) {
      const auto known = info.options.find(key);
      if (known == info.options.end()) {
        std::vector<std::string> keys;
        for (const auto& option : info.options) keys.push_back(option.first);
        throw InputError(where, fmt::format("option \"{}\" of policy {}", key, spec.name),
                         keys.empty() ? "no option" : one_of(key, keys));
      }
      if (std::find(known->second.begin(), known->second.end(), value) == known->second.end())
        throw InputError(where, fmt::format("{}={} of policy {}", key, value, spec.name),
                         one_of(value, known->second));
    }
    return;
  }
  throw InputError(where, fmt::format("policy \"{}\"", spec.name), one_of(spec.name, names));
}

}  // namespace

const std::vector<PolicyInfo>& known_policies() {
  static const std::vector<PolicyInfo> policies = {
      {"resident", "everything in HBM", {}},
      {"on_demand", "reactive swapping; evict=lru (default) or oldest", {{"evict", {"lru", "oldest"}}}},
      {"graph", "the graph-driven planner", {}},
  };
  return policies;
}

std::string PolicySpec::text() const {
  std::string text = name;
  char separator = ':';
  for (const auto& [key, value] : options) {
    text += separator + key + "=" + value;
    separator = ',';
  }
  return text;
}

PolicySpec parse_policy(const std::string& text, const std::string& where) {
  PolicySpec spec;
  const std::size_t colon = text.find(':');
  spec.name = text.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon != std::string::npos && rest.empty())
    throw InputError(where, fmt::format("\"{}\"", text), "NAME[:key=value,...]");
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string pair = rest.substr(0, comma);
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      throw InputError(where, fmt::format("\"{}\" in \"{}\"", pair, text), "key=value");
    if (!spec.options.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second)
      throw InputError(where, fmt::format("option \"{}\" twice in \"{}\"", pair.substr(0, equals), text),
                       "each option once");
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  check_policy(spec, where);
  return spec;
}

PolicySpec parse_policy(const YamlNode& node) {
  if (node.is_scalar()) return parse_policy(node.string(), node.where());
  if (!node.is_map()) node.fail("a policy's name, or a map {name: NAME, option: value}");
  PolicySpec spec;
  for (const auto& [key, value] : node.map()) {
    if (key == "name")
      spec.name = value.string();
    else
      spec.options[key] = value.string();
  }
  if (spec.name.empty()) node.fail("no `name`", "a policy's name, or a map {name: NAME, option: value}");
  check_policy(spec, node.where());
  return spec;
}

}  // namespace hyperoffload
