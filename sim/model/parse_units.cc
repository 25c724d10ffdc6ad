#include "sim/model/parse_units.h"

#include <span>
#include <string_view>

#include "sim/model/decimal.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

struct Unit {
  const char* name;
  int exp10, exp2;  // of the base unit
};

constexpr Unit kByteUnits[] = {{"B", 0, 0},   {"kB", 3, 0},   {"KB", 3, 0},   {"MB", 6, 0},   {"GB", 9, 0},
                               {"TB", 12, 0}, {"KiB", 0, 10}, {"MiB", 0, 20}, {"GiB", 0, 30}, {"TiB", 0, 40}};
constexpr Unit kRateUnits[] = {{"B/s", 0, 0},    {"kB/s", 3, 0},   {"KB/s", 3, 0},   {"MB/s", 6, 0},
                               {"GB/s", 9, 0},   {"TB/s", 12, 0},  {"KiB/s", 0, 10}, {"MiB/s", 0, 20},
                               {"GiB/s", 0, 30}, {"TiB/s", 0, 40}, {"Mbps", 6, -3},  {"Gbps", 9, -3},
                               {"Tbps", 12, -3}};
constexpr Unit kComputeUnits[] = {{"FLOPS", 0, 0},   {"GFLOPS", 9, 0}, {"TFLOPS", 12, 0},
                                  {"PFLOPS", 15, 0}, {"GOPS", 9, 0},   {"TOPS", 12, 0}};
constexpr Unit kTimeUnits[] = {{"ns", -9, 0}, {"us", -6, 0}, {"ms", -3, 0}, {"s", 0, 0}};

struct Dimension {
  const char* what;
  const char* example;
  std::span<const Unit> units;
};

constexpr Dimension kBytes = {"bytes", "64GiB", kByteUnits};
constexpr Dimension kRate = {"bytes per second", "1.6TB/s", kRateUnits};
constexpr Dimension kCompute = {"operations per second", "376TFLOPS", kComputeUnits};
constexpr Dimension kTime = {"a time", "1.7us", kTimeUnits};

struct Measured {
  Decimal number;
  Unit unit;
};

std::string expected(const Dimension& dimension) {
  std::string list;
  for (const Unit& unit : dimension.units) list += std::string(list.empty() ? "" : ", ") + unit.name;
  return std::string(dimension.what) + " with a unit (" + list + "), like " + dimension.example;
}

Measured parse(const std::string& text, const std::string& where, const Dimension& dimension) {
  std::string_view rest = text;
  while (!rest.empty() && rest.back() == ' ') rest.remove_suffix(1);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const std::optional<Decimal> number = take_decimal(rest);
  if (!number) throw InputError(where, in_quotes(text), expected(dimension));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest.empty())
    throw InputError(where, "a number without a unit, " + in_quotes(text), expected(dimension));
  for (const Unit& unit : dimension.units) {
    if (rest != unit.name) continue;
    if (number->negative && !number->digits.empty())
      throw InputError(where, "a negative value, " + in_quotes(text),
                       std::string(dimension.what) + ", 0 or more");
    return {*number, unit};
  }
  throw InputError(where, in_quotes(text) + ", whose unit " + in_quotes(rest) + " is not known here",
                   expected(dimension));
}

double parse_double(const std::string& text, const std::string& where, const Dimension& dimension) {
  const Measured value = parse(text, where, dimension);
  const std::optional<double> number = to_double(value.number, value.unit.exp10, value.unit.exp2);
  if (!number)
    throw InputError(where, in_quotes(text), std::string(dimension.what) + " within 1e-300 to 1e300");
  return *number;
}

}  // namespace

Bytes parse_bytes(const std::string& text, const std::string& where) {
  const Measured value = parse(text, where, kBytes);
  Bytes bytes;
  switch (to_bytes(value.number, value.unit.exp10, value.unit.exp2, bytes)) {
    case ByteCheck::kOk:
      return bytes;
    case ByteCheck::kTooLarge:
      throw InputError(where, in_quotes(text), "at most 2^63-1 bytes (9223372036854775807B)");
    case ByteCheck::kFraction:
      // "47.1GiB" is a capacity as people write it: the whole bytes in it. Half a byte is a slip.
      if (const auto bytes_in_it = to_double(value.number, value.unit.exp10, value.unit.exp2);
          value.unit.exp10 + value.unit.exp2 > 0 && bytes_in_it && *bytes_in_it < 0x1p62)
        return Bytes(static_cast<std::int64_t>(*bytes_in_it));
      break;
    case ByteCheck::kNegative:
      break;
  }
  throw InputError(where, in_quotes(text) + ", which is no whole number of bytes", "whole bytes");
}

BytesPerSecond parse_rate(const std::string& text, const std::string& where) {
  return BytesPerSecond(parse_double(text, where, kRate));
}

FlopsPerSecond parse_flops_per_second(const std::string& text, const std::string& where) {
  return FlopsPerSecond(parse_double(text, where, kCompute));
}

Seconds parse_seconds(const std::string& text, const std::string& where) {
  return Seconds(parse_double(text, where, kTime));
}

double parse_share(const std::string& text, const std::string& where) {
  std::string_view rest = text;
  const std::optional<Decimal> number = take_decimal(rest);
  const bool percent = rest == "%";
  const std::optional<double> share = number ? to_double(*number, percent ? -2 : 0) : std::nullopt;
  if (!share || *share < 0 || *share > 1e6 || (!percent && (!rest.empty() || *share >= 1)))
    throw InputError(where, in_quotes(text), "a share, like 1% or 0.01 (from 100% on with its %)");
  return *share;
}

}  // namespace hyperoffload
