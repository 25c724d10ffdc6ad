// Strict reading of a HuggingFace config.json: each key asked for is remembered, and what nobody asked
// for and no list calls harmless is an InputError that names it. Messages are "FILE: PATH: found X,
// expected Y". JSON as HuggingFace writes it: bare Infinity and NaN are read as null.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hyperoffload {

class ConfigReader {
 public:
  // `prefix` is the path of this object inside the file ("" or "text_config.").
  ConfigReader(const nlohmann::json& object, std::string source, std::string prefix = "");

  bool has(const std::string& key);  // present and not null
  const nlohmann::json* raw(const std::string& key);

  // Sizes up to kMostCount; a number of tokens up to kMostLength.
  static constexpr std::int64_t kMostCount = std::int64_t{1} << 24;
  static constexpr std::int64_t kMostLength = std::int64_t{1} << 40;
  std::int64_t length(const std::string& key);
  // Required; with a fallback: taken when the key is absent or null.
  std::int64_t count(const std::string& key);  // a whole number > 0
  std::int64_t count(const std::string& key, std::int64_t fallback);
  std::int64_t count_or_zero(const std::string& key, std::int64_t fallback);  // >= 0
  bool flag(const std::string& key, bool fallback);
  std::string text(const std::string& key);
  std::string text(const std::string& key, const std::string& fallback);
  std::vector<std::string> texts(const std::string& key);
  std::vector<std::int64_t> counts(const std::string& key);  // each >= 0
  ConfigReader child(const std::string& key);

  // The first of several names for one thing; two that are present must agree.
  std::int64_t count_of(const std::vector<std::string>& keys);

  void ignore(const std::vector<std::string>& keys);  // known, harmless here
  // Throws for a present key whose value isn't one of `harmless` (JSON texts): a feature we don't model.
  void only(const std::string& key, const std::vector<std::string>& harmless);

  [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const;
  std::string shown(const std::string& key) const;  // the value as short JSON text, "nothing" if absent
  const std::string& source() const { return source_; }

  // To be called last: the keys nobody understood.
  void finish() const;

 private:
  std::string where(const std::string& key) const;
  std::int64_t whole(const std::string& key, std::int64_t least, std::int64_t most = kMostCount);

  const nlohmann::json& object_;
  std::string source_, prefix_;
  std::set<std::string> seen_;
};

// Parses JSON text with HuggingFace's extensions; duplicate keys are InputErrors.
nlohmann::json parse_config_json(const std::string& text, const std::string& source);

}  // namespace hyperoffload
