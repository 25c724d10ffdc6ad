#include "sim/model/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

__extension__ typedef unsigned __int128 Wide;  // ISO C++ has no name for it

constexpr int kExponentLimit = 100'000;
constexpr std::size_t kMaxByteDigits = 26;  // 10^26 * 2^40 < 2^128

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "e9", "E-3" off the front; leaves `text` alone when it is a unit that begins with an E.
int take_exponent(std::string_view& text) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return 0;
  std::size_t i = 1;
  const bool negative = i < text.size() && text[i] == '-';
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  if (i >= text.size() || !is_digit(text[i])) return 0;
  int exponent = 0;
  for (; i < text.size() && is_digit(text[i]); ++i)
    exponent = std::min(kExponentLimit, exponent * 10 + (text[i] - '0'));
  text.remove_prefix(i);
  return negative ? -exponent : exponent;
}

}  // namespace

std::optional<Decimal> take_decimal(std::string_view& text) {
  std::string_view rest = text;
  Decimal value;
  if (!rest.empty() && rest[0] == '-') {
    value.negative = true;
    rest.remove_prefix(1);
  }
  bool any = false, fraction = false;
  long long exponent = 0;
  for (; !rest.empty() && (is_digit(rest[0]) || (rest[0] == '.' && !fraction)); rest.remove_prefix(1)) {
    if (rest[0] == '.') {
      fraction = true;
      continue;
    }
    any = true;
    if (!value.digits.empty() || rest[0] != '0') value.digits += rest[0];
    if (fraction) --exponent;
  }
  if (!any) return std::nullopt;
  exponent += take_exponent(rest);
  while (!value.digits.empty() && value.digits.back() == '0') {
    value.digits.pop_back();
    ++exponent;
  }
  value.exponent = value.digits.empty()
                       ? 0
                       : static_cast<int>(std::clamp<long long>(exponent, -kExponentLimit, kExponentLimit));
  text = rest;
  return value;
}

ByteCheck to_bytes(const Decimal& value, int exp10, int exp2, Bytes& bytes) {
  HYPER_CHECK(exp2 >= 0 && exp2 <= 40, "unit out of range");
  if (value.digits.empty()) {
    bytes = Bytes(0);
    return ByteCheck::kOk;
  }
  if (value.negative) return ByteCheck::kNegative;
  int exponent = value.exponent + exp10;
  if (static_cast<int>(value.digits.size()) + exponent > 20) return ByteCheck::kTooLarge;
  if (value.digits.size() > kMaxByteDigits) return ByteCheck::kFraction;
  Wide number = 0;
  for (char c : value.digits) number = number * 10 + static_cast<unsigned>(c - '0');
  number <<= exp2;
  for (; exponent < 0; ++exponent) {
    if (number % 10 != 0) return ByteCheck::kFraction;
    number /= 10;
  }
  const auto limit = static_cast<Wide>(Bytes::max().value);
  if (number > limit) return ByteCheck::kTooLarge;
  for (; exponent > 0; --exponent) {
    number *= 10;
    if (number > limit) return ByteCheck::kTooLarge;
  }
  bytes = Bytes(static_cast<std::int64_t>(number));
  return ByteCheck::kOk;
}

std::optional<double> to_double(const Decimal& value, int exp10, int exp2) {
  if (value.digits.empty()) return 0.0;
  const std::string text = value.digits + "e" + std::to_string(value.exponent + exp10);
  double result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc()) return std::nullopt;
  result = std::ldexp(result, exp2);
  if (!std::isfinite(result)) return std::nullopt;
  return value.negative ? -result : result;
}

std::string shortest_decimal(double value, int exp10) {
  HYPER_CHECK(std::isfinite(value), "a number that is not finite can't be written");
  if (value == 0) return "0";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const Decimal d = *take_decimal(text);
  const std::string sign = d.negative ? "-" : "";
  const int count = static_cast<int>(d.digits.size());
  const int exponent = d.exponent + exp10;
  const int point = count + exponent;  // digits before the decimal point
  if (exponent >= 0 && point <= 18)
    return sign + d.digits + std::string(static_cast<std::size_t>(exponent), '0');
  if (point > 0 && point <= 18)
    return sign + d.digits.substr(0, static_cast<std::size_t>(point)) + "." +
           d.digits.substr(static_cast<std::size_t>(point));
  if (point <= 0 && point > -6)
    return sign + "0." + std::string(static_cast<std::size_t>(-point), '0') + d.digits;
  return sign + d.digits.substr(0, 1) + (count > 1 ? "." + d.digits.substr(1) : "") + "e" +
         std::to_string(point - 1);
}

}  // namespace hyperoffload
