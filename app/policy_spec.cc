#include "app/policy_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/model/check.h"
#include "sim/model/decimal.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/parse_units.h"

namespace hyperoffload {
namespace {

using Kind = PolicyOption::Kind;

bool is_word(const PolicyOption& option, const std::string& value) {
  return std::find(option.words.begin(), option.words.end(), value) != option.words.end();
}

double number_in(const std::string& value) {
  std::string_view text = value;
  const auto decimal = take_decimal(text);
  const auto number = decimal && text.empty() ? to_double(*decimal) : std::nullopt;
  return number ? *number : std::numeric_limits<double>::quiet_NaN();
}

std::string expected_value(const PolicyOption& option, const std::string& value) {
  if (option.kind == Kind::kWord) return one_of(value, option.words);
  std::string expected =
      option.kind == Kind::kBytes
          ? "bytes with a unit, such as 64MiB"
          : option.kind == Kind::kSeconds
                ? "a time with a unit, such as 10us"
                : fmt::format("{} from {} to {}", option.kind == Kind::kInteger ? "a whole number" : "a number",
                              option.min, option.max);
  for (const std::string& word : option.words) expected += fmt::format(", or {}", word);
  return expected;
}

void check_value(const PolicySpec& spec, const PolicyOption& option, const std::string& value,
                 const std::string& where) {
  if (is_word(option, value)) return;
  const std::string place = fmt::format("{}: option {} of policy {}", where, option.name, spec.name);
  if (option.kind == Kind::kBytes) {
    parse_bytes(value, place);
  } else if (option.kind == Kind::kSeconds) {
    if (parse_seconds(value, place) > Seconds(1)) throw InputError(place, in_quotes(value), "a time of at most 1s");
  } else {
    const double number = option.kind == Kind::kWord ? std::numeric_limits<double>::quiet_NaN() : number_in(value);
    const bool fine = number >= static_cast<double>(option.min) && number <= static_cast<double>(option.max) &&
                      (option.kind == Kind::kNumber || number == std::floor(number));
    if (!fine) throw InputError(place, in_quotes(value), expected_value(option, value));
  }
}

const PolicyInfo* find_policy(const std::string& name) {
  for (const PolicyInfo& info : known_policies())
    if (info.name == name) return &info;
  return nullptr;
}

const PolicyOption* find_option(const PolicyInfo& info, const std::string& name) {
  for (const PolicyOption& option : info.options)
    if (option.name == name) return &option;
  return nullptr;
}

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.name);
  return names;
}

void check_policy(const PolicySpec& spec, const std::string& where) {
  const PolicyInfo* info = find_policy(spec.name);
  if (!info)
    throw InputError(where, "policy " + in_quotes(spec.name), one_of(spec.name, names_of(known_policies())));
  for (const auto& [key, value] : spec.options) {
    const PolicyOption* option = find_option(*info, key);
    if (!option)
      throw InputError(where, fmt::format("option {} of policy {}", in_quotes(key), spec.name),
                       info->options.empty() ? "no option" : one_of(key, names_of(info->options)));
    check_value(spec, *option, value, where);
  }
}

}  // namespace

std::string policy_help() {
  std::string text;
  for (const PolicyInfo& info : known_policies()) {
    text += fmt::format("  {}: {}\n", info.name, info.summary);
    for (const PolicyOption& option : info.options) {
      const std::string words =
          option.kind == Kind::kWord ? fmt::format(" ({})", fmt::join(option.words, ", ")) : std::string();
      text += fmt::format("      {}={}: {}{}\n", option.name, option.fallback, option.help, words);
    }
  }
  return text;
}

const std::string& PolicySpec::word(const std::string& option) const {
  const auto given = options.find(option);
  if (given != options.end()) return given->second;
  const PolicyInfo* info = find_policy(name);
  const PolicyOption* known = info ? find_option(*info, option) : nullptr;
  HYPER_CHECK(known != nullptr, "an option that the policy has");
  return known->fallback;
}

std::int64_t PolicySpec::integer(const std::string& option) const {
  return static_cast<std::int64_t>(number(option));
}
double PolicySpec::number(const std::string& option) const { return number_in(word(option)); }
Bytes PolicySpec::bytes(const std::string& option) const { return parse_bytes(word(option), option); }
Seconds PolicySpec::seconds(const std::string& option) const { return parse_seconds(word(option), option); }

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
    if (comma + 1 == rest.size())
      throw InputError(where, fmt::format("a comma at the end of \"{}\"", text), "key=value");
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
