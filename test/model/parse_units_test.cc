#include "sim/model/parse_units.h"

#include <cstdint>
#include <limits>
#include <random>

#include "sim/model/decimal.h"
#include "test/model/message.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

TEST_CASE("a part of a byte that a larger unit leaves is cut off") {
  CHECK(parse_bytes("0.1KiB", "x") == Bytes(102));                                     // 102.4
  CHECK(parse_bytes("47.1GiB", "x") == Bytes(static_cast<std::int64_t>(47.1 * 0x1p30)));
}

TEST_CASE("Bytes come out exact: GB is 1e9, GiB is 2^30, decimals and exponents are allowed") {
  struct Row {
    const char* text;
    std::int64_t bytes;
  };
  const Row rows[] = {
      {"0B", 0},
      {"1000B", 1000},
      {"64GB", 64 * std::int64_t{1'000'000'000}},
      {"64GiB", std::int64_t{64} << 30},
      {"64.5GiB", (std::int64_t{129} << 30) / 2},
      {"64 GB", 64 * std::int64_t{1'000'000'000}},
      {" 64GB ", 64 * std::int64_t{1'000'000'000}},
      {"1e9B", 1'000'000'000},
      {"1E+9B", 1'000'000'000},
      {"0.001kB", 1},
      {".5KB", 500},
      {"2.MB", 2'000'000},
      {"1.5e-3TB", 1'500'000'000},
      {"1TiB", std::int64_t{1} << 40},
      {"0.0009765625KiB", 1},
      {"9.5367431640625e-7MiB", 1},  // 2^-20
      {"9223372036854775807B", kLargest},
      {"9223372.036854775807TB", kLargest},
      {"000064.000GB", 64 * std::int64_t{1'000'000'000}},
      {"0e99999999999999B", 0},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    CHECK(parse_bytes(row.text, "--hbm").value == row.bytes);
  }
}

TEST_CASE("What is no whole, representable number of bytes with a unit is refused with the reason") {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"64",
       "--hbm: found a number without a unit, \"64\", expected bytes with a unit (B, kB, KB, MB, GB, TB, "
       "KiB"},
      {"0", "a number without a unit"},
      {"64e9", "a number without a unit"},
      {"", "found \"\", expected bytes with a unit"},
      {"GB", "found \"GB\", expected bytes"},
      {"64Gb", "unit \"Gb\" is not known"},
      {"64gb", "unit \"gb\" is not known"},
      {"64GB/s", "unit \"GB/s\" is not known"},
      {"1EB", "unit \"EB\" is not known"},
      {"1.5B", "no whole number of bytes"},
      {"1e-1B", "no whole number of bytes"},
      {"-1GB", "a negative value"},
      {"nanGB", "found \"nanGB\""},
      {"infB", "found \"infB\""},
      {"0x10B", "unit \"x10B\" is not known"},
      {"1,5GB", "unit \",5GB\" is not known"},
      {"1.2.3GB", "unit \".3GB\" is not known"},
      {"9223372036854775808B", "at most 2^63-1"},
      {"8388608TiB", "at most 2^63-1"},  // 2^23 * 2^40
      {"1e30B", "at most 2^63-1"},
      {"1e999999999B", "at most 2^63-1"},
      {"1e-999999999B", "no whole number of bytes"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const std::string message = input_error([&] { parse_bytes(row.text, "--hbm"); });
    INFO(message);
    CHECK(contains(message, row.message));
  }
}

TEST_CASE("Rates, compute and times are the doubles nearest to what is written") {
  CHECK(parse_rate("1.6TB/s", "x").value == 1.6e12);
  CHECK(parse_rate("1e9B/s", "x").value == 1e9);
  CHECK(parse_rate("64e9 B/s", "x").value == 6.4e10);
  CHECK(parse_rate("200Gbps", "x").value == 200e9 / 8);
  CHECK(parse_rate("1.6Tbps", "x").value == 1.6e12 / 8);
  CHECK(parse_rate("1Mbps", "x").value == 1e6 / 8);
  CHECK(parse_rate("16GiB/s", "x").value == 16.0 * (1 << 30));
  CHECK(parse_rate("0B/s", "x").value == 0);
  CHECK(parse_flops_per_second("376TFLOPS", "x").value == 376e12);
  CHECK(parse_flops_per_second("1.5PFLOPS", "x").value == 1.5e15);
  CHECK(parse_flops_per_second("752TOPS", "x").value == 752e12);
  CHECK(parse_seconds("1.7us", "x").value == 1.7e-6);
  CHECK(parse_seconds("0us", "x").value == 0);
  CHECK(parse_seconds("512ns", "x").value == 512e-9);
  CHECK(parse_seconds("2.5ms", "x").value == 2.5e-3);
  CHECK(parse_seconds("10s", "x").value == 10);
  CHECK(
      contains(input_error([] { parse_rate("100GB", "link"); }), "link: found \"100GB\", whose unit \"GB\""));
  CHECK(contains(input_error([] { parse_rate("100", "link"); }), "(B/s, kB/s, KB/s, MB/s, GB/s, TB/s"));
  CHECK(contains(input_error([] { parse_seconds("5", "x"); }), "(ns, us, ms, s)"));
  CHECK(contains(input_error([] { parse_seconds("-5us", "x"); }), "negative"));
  CHECK(contains(input_error([] { parse_seconds("1e400s", "x"); }), "expected a time within"));
  CHECK(contains(input_error([] { parse_flops_per_second("1TFLOP", "x"); }), "TFLOPS"));
}

TEST_CASE("A share is a percentage or a number below 1") {
  CHECK(parse_share("1%", "x") == 0.01);
  CHECK(parse_share("0.01", "x") == 0.01);
  CHECK(parse_share("0", "x") == 0);
  CHECK(parse_share("150%", "x") == 1.5);
  CHECK(parse_share("1e8%", "x") == 1e6);
  for (const std::string wrong : {"1", "5", "-1%", "-0.1", "%", "", "1 %", "1%%", "fast", "2e8%", "inf%"}) {
    INFO(wrong);
    CHECK(contains(input_error([&] { parse_share(wrong, "--slack"); }), "--slack: found \"" + wrong + "\", expected a share"));
  }
}

TEST_CASE("The shortest decimal of a double, shifted by powers of ten, reads back as the same double") {
  CHECK(shortest_decimal(0) == "0");
  CHECK(shortest_decimal(10e-6, 6) == "10");
  CHECK(shortest_decimal(1.7e-6, 6) == "1.7");
  CHECK(shortest_decimal(0.1) == "0.1");
  CHECK(shortest_decimal(1e12) == "1000000000000");
  CHECK(shortest_decimal(-2.5) == "-2.5");
  CHECK(shortest_decimal(1e-9) == "1e-9");
  CHECK(shortest_decimal(1.25e30) == "1.25e30");
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 300) - 200);
    const std::string text = shortest_decimal(value, 6);
    std::string_view rest = text;
    const auto decimal = take_decimal(rest);
    REQUIRE(decimal);
    REQUIRE(rest.empty());
    REQUIRE(to_double(*decimal, -6) == value);
  }
}

}  // namespace
}  // namespace hyperoffload
