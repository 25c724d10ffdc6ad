#include "sim/report/json_node.h"

#include <fmt/format.h>

#include <limits>

#include "sim/model/error.h"
#include "sim/model/json_reader.h"
#include "sim/report/result_fields.h"

namespace hyperoffload {

using Json = nlohmann::ordered_json;

namespace {
constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
}

Json parse_json(const std::string& text, const std::string& source, const std::string& expected) {
  const auto pass_over = [](const std::string&, const JsonValue&) {};
  read_json_object(text, source, expected, {{}, pass_over, {}});  // says what is wrong, and where
  return Json::parse(text);
}

void JsonNode::fail(const std::string& expected) const {
  std::string found = json_text(value);
  if (found.size() > 60) found = found.substr(0, 60) + "...";
  throw InputError(where, found, expected);
}

JsonNode JsonNode::at(const std::string& key) const {
  if (!value.is_object()) throw InputError(where, "no object", fmt::format("one with \"{}\"", key));
  const auto it = value.find(key);
  if (it == value.end()) throw InputError(where, fmt::format("no \"{}\"", key), "that key");
  return {*it, where + "." + key};
}

JsonNode JsonNode::at(std::size_t i) const { return {value[i], fmt::format("{}[{}]", where, i)}; }

std::vector<std::string> JsonNode::keys() const {
  expect(value.is_object(), "an object");
  std::vector<std::string> keys;
  for (const auto& [key, item] : value.items()) keys.push_back(key);
  return keys;
}

std::size_t JsonNode::size() const {
  expect(value.is_array(), "a list");
  return value.size();
}

std::string JsonNode::text() const {
  expect(value.is_string(), "a text");
  return value.get<std::string>();
}

double JsonNode::finite() const {
  expect(value.is_number(), "a number");
  return value.get<double>();
}

std::int64_t JsonNode::integer() const {
  // What doesn't fit stands as an unsigned number, or as a double.
  expect(value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > kMost),
         fmt::format("a whole number up to {}", kMost));
  return value.get<std::int64_t>();
}

int JsonNode::count() const {
  expect(value.is_number_integer() && integer() >= 0 && integer() <= std::numeric_limits<int>::max(),
         "a whole number from 0 to 2147483647");
  return static_cast<int>(integer());
}

Bytes JsonNode::bytes() const {
  expect(integer() >= 0, "bytes, 0 or more");
  return Bytes(integer());
}

}  // namespace hyperoffload
