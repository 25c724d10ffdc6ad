// Decimal numbers as written, converted without a detour through double.
//
// A Decimal is digits * 10^exponent, exact. From it come whole bytes (exact up to 2^63-1) and the
// nearest double of the value scaled by powers of ten and two: "1.7" microseconds are the double
// nearest to 1.7e-6, not 1.7 * 1e-6. The way back, shortest_decimal, gives the fewest digits that read
// as the same double, so text -> value -> text is stable.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/model/units.h"

namespace hyperoffload {

struct Decimal {
  bool negative = false;
  std::string digits;  // without leading or trailing zeros; empty: zero
  int exponent = 0;    // clamped to +-100,000, far outside of what any type here holds
};

// Takes a number like 12, 0.5, 1e9, 2.5e-3 off the front of `text` (no sign of its own, no spaces; a
// leading '-' is accepted). nullopt if there is none; then `text` is unchanged.
std::optional<Decimal> take_decimal(std::string_view& text);

enum class ByteCheck { kOk, kNegative, kFraction, kTooLarge };
// value * 10^exp10 * 2^exp2 as whole bytes. Numbers of more than 26 significant digits are kFraction.
ByteCheck to_bytes(const Decimal& value, int exp10, int exp2, Bytes& bytes);

// The double nearest to value * 10^exp10 * 2^exp2; nullopt where a double can't hold it.
std::optional<double> to_double(const Decimal& value, int exp10 = 0, int exp2 = 0);

// value * 10^exp10 in the fewest digits that to_double(.., -exp10) reads back as `value`. Finite only.
std::string shortest_decimal(double value, int exp10 = 0);

}  // namespace hyperoffload
