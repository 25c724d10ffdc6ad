#include "sim/report/human.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace hyperoffload {
namespace {

// Four significant digits of a number below 10,000; more digits before the point are all kept, up to what nobody
// means: from there on four digits and a power of ten.
std::string digits(double value) {
  constexpr double kAbsurd = 1e15;
  const double size = std::abs(value);
  if (size >= kAbsurd) return fmt::format("{:.3e}", value);
  const int decimals = size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

// The largest unit of which there is at least one, after rounding to four digits.
template <std::size_t n>
std::string scaled(double value, double step, const std::array<const char*, n>& units) {
  std::size_t unit = 0;
  while (unit + 1 < n && std::abs(value) >= step * 0.99995) {
    value /= step;
    ++unit;
  }
  return digits(value) + " " + units[unit];
}

}  // namespace

std::string human_number(double value) { return std::isfinite(value) ? digits(value) : "-"; }

std::string human_time(Seconds time) {
  if (!std::isfinite(time.value)) return "-";
  if (std::abs(time.value) < 1e-12) return "0 s";
  return scaled(time.value * 1e9, 1000, std::array{"ns", "us", "ms", "s"});
}

std::string human_bytes(Bytes bytes) {
  if (std::abs(static_cast<double>(bytes.value)) < 1024) return fmt::format("{} B", bytes.value);
  return scaled(static_cast<double>(bytes.value) / 1024, 1024, std::array{"KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string human_rate(BytesPerSecond rate) {
  if (!std::isfinite(rate.value)) return "-";
  return scaled(rate.value / 1e3, 1000, std::array{"kB/s", "MB/s", "GB/s", "TB/s"});
}

std::string human_percent(double share) {
  const double percent = share * 100;
  if (percent == 0) return "0 %";
  const double size = std::abs(percent);
  return fmt::format("{:.{}f} %", percent, size < 0.0995 ? 3 : size < 9.995 ? 2 : 1);
}

std::string human_factor(double factor) { return std::isfinite(factor) ? digits(factor) + "x" : "-"; }

}  // namespace hyperoffload
