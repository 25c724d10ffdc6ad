// Reading the JSON that this program writes about runs (results, series, frontiers) back: a value and its
// place, so that what is missing or of a wrong type is an InputError that names the place.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/units.h"

namespace hyperoffload {

// InputError with line and column for what is no JSON object, keys given twice, numbers beyond any double and
// nesting that no file of ours has. `expected` names the file in messages.
nlohmann::ordered_json parse_json(const std::string& text, const std::string& source, const std::string& expected);

struct JsonNode {
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();

  const nlohmann::ordered_json& value;
  std::string where;

  [[noreturn]] void fail(const std::string& expected) const;  // found: the value
  void expect(bool good, const std::string& expected) const {
    if (!good) fail(expected);
  }
  bool is_null() const { return value.is_null(); }
  JsonNode at(const std::string& key) const;  // of an object that must have it
  JsonNode at(std::size_t i) const;
  std::vector<std::string> keys() const;  // of an object
  std::size_t size() const;               // of a list

  std::string text() const;
  std::string text_or_null() const { return is_null() ? "" : text(); }
  double finite() const;
  double number() const { return is_null() ? kInfinite : finite(); }  // null is written for infinity
  std::int64_t integer() const;
  int count() const;  // not below 0
  Seconds seconds() const { return Seconds(number()); }
  Bytes bytes() const;  // not below 0
  std::optional<double> maybe_number() const { return is_null() ? std::nullopt : std::optional(number()); }
  std::optional<Seconds> maybe_seconds() const { return is_null() ? std::nullopt : std::optional(seconds()); }
};

}  // namespace hyperoffload
