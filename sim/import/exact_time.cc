#include "sim/import/exact_time.h"

#include <algorithm>

#include "sim/model/check.h"
#include "sim/model/decimal.h"

namespace hyperoffload {
namespace {

std::string digits_of(Picoseconds magnitude) {
  std::string digits;
  do digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(magnitude % 10)));
  while ((magnitude /= 10) > 0);
  return digits;
}

}  // namespace

std::optional<Picoseconds> parse_picoseconds(std::string_view text, int exp10) {
  constexpr int kMaxDigits = 30;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const std::optional<Decimal> number = take_decimal(text);
  if (!number || !text.empty()) return std::nullopt;
  // Digits before the point once the unit is a picosecond.
  const int whole = static_cast<int>(number->digits.size()) + number->exponent + exp10;
  if (whole > kMaxDigits) return std::nullopt;
  Picoseconds time = 0;
  for (int i = 0; i < whole; ++i) {
    const auto place = static_cast<std::size_t>(i);
    time = time * 10 + (place < number->digits.size() ? number->digits[place] - '0' : 0);
  }
  const auto next = static_cast<std::size_t>(whole);
  if (whole >= 0 && next < number->digits.size() && number->digits[next] >= '5') ++time;
  return number->negative ? -time : time;
}

Seconds to_seconds(Picoseconds time) {
  const bool negative = time < 0;
  const std::string text = digits_of(negative ? -time : time);
  std::string_view rest = text;
  const std::optional<double> seconds = to_double(*take_decimal(rest), -kPicosPerSecond);
  HYPER_CHECK(seconds.has_value(), "a time that no double holds");
  return Seconds(negative ? -*seconds : *seconds);
}

std::string microseconds_text(Picoseconds time) {
  constexpr std::size_t kFraction = 6;
  const bool negative = time < 0;
  std::string digits = digits_of(negative ? -time : time);
  if (digits.size() <= kFraction) digits.insert(0, kFraction + 1 - digits.size(), '0');
  std::string fraction = digits.substr(digits.size() - kFraction);
  digits.resize(digits.size() - kFraction);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return (negative ? "-" : "") + digits + (fraction.empty() ? "" : "." + fraction);
}

}  // namespace hyperoffload
