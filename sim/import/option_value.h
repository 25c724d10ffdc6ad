// Values of options and of numbers in text files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hyperoffload {

// A whole number, `min` to `max`; InputError says that `what` was expected at `where`.
std::int64_t whole_number(std::string_view text, const std::string& where, const std::string& what,
                          std::int64_t max, std::int64_t min = 0);

// The text if it is one of the words; else InputError.
std::string one_word(const std::string& text, const std::string& where,
                     const std::vector<std::string>& words);

}  // namespace hyperoffload
