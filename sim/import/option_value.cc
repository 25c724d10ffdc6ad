#include "sim/import/option_value.h"

#include <fmt/format.h>

#include <charconv>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {

std::int64_t whole_number(std::string_view text, const std::string& where, const std::string& what,
                          std::int64_t max, std::int64_t min) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= min && value <= max) return value;
  throw InputError(where, in_quotes(text), fmt::format("{}, a whole number from {} to {}", what, min, max));
}

std::string one_word(const std::string& text, const std::string& where,
                     const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (text == word) return text;
  throw InputError(where, in_quotes(text), one_of(text, words));
}

}  // namespace hyperoffload
