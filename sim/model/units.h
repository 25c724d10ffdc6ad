// Strong types for every dimensioned number, so that bytes are never added to seconds.
//
// Bytes is a 64-bit integer: sums of tensor sizes stay exact. The others are doubles in SI base
// units (seconds, bytes/s, FLOP, FLOP/s). Bytes addition saturates at 2^63-1 instead of
// overflowing: a sum that large compares as "does not fit" wherever it is compared.
// GB = 1e9 B, GiB = 2^30 B. Literals: 64_GiB, 64_GB, 10_us.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace hyperoffload {

// A number with a unit. `value` is public: it is the way out to formulas and to output.
template <class Tag, class Rep>
struct Quantity {
  Rep value{};

  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity(-value); }
  constexpr Quantity& operator+=(Quantity b) { return *this = *this + b; }
  constexpr Quantity& operator-=(Quantity b) { return *this = *this - b; }
  static constexpr Quantity max() { return Quantity(std::numeric_limits<Rep>::max()); }

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    if constexpr (std::is_integral_v<Rep>) {
      Rep sum{};
      if (__builtin_add_overflow(a.value, b.value, &sum))
        return Quantity(a.value > 0 ? std::numeric_limits<Rep>::max() : std::numeric_limits<Rep>::min());
      return Quantity(sum);
    } else {
      return Quantity(a.value + b.value);
    }
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    if constexpr (std::is_integral_v<Rep>) {
      Rep difference{};
      if (__builtin_sub_overflow(a.value, b.value, &difference))
        return Quantity(a.value > 0 ? std::numeric_limits<Rep>::max() : std::numeric_limits<Rep>::min());
      return Quantity(difference);
    } else {
      return Quantity(a.value - b.value);
    }
  }
};

using Bytes = Quantity<struct BytesTag, std::int64_t>;
using Seconds = Quantity<struct SecondsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using Flops = Quantity<struct FlopsTag, double>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) {
  return Seconds(static_cast<double>(b.value) / r.value);
}
constexpr Seconds operator/(Flops f, FlopsPerSecond r) { return Seconds(f.value / r.value); }
constexpr Seconds operator*(Seconds s, double k) { return Seconds(s.value * k); }

namespace literals {
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v)); }
constexpr Bytes operator""_GB(unsigned long long v) {
  return Bytes(static_cast<std::int64_t>(v * 1'000'000'000ULL));
}
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v << 20)); }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes(static_cast<std::int64_t>(v << 30)); }
constexpr Seconds operator""_us(unsigned long long v) { return Seconds(static_cast<double>(v) / 1e6); }
constexpr Seconds operator""_us(long double v) { return Seconds(static_cast<double>(v / 1e6L)); }
constexpr Seconds operator""_s(unsigned long long v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
}  // namespace literals

}  // namespace hyperoffload
