#include "sim/report/human.h"

#include "test/support/catch.h"

namespace hyperoffload {

TEST_CASE("Times have four digits and the unit that suits them") {
  CHECK(human_time(Seconds(0)) == "0 s");
  CHECK(human_time(Seconds(3e-17)) == "0 s");
  CHECK(human_time(Seconds(1.5e-10)) == "0.150 ns");
  CHECK(human_time(Seconds(12.345e-6)) == "12.35 us");  // 12.345 in binary lies above the tie
  CHECK(human_time(Seconds(0.5)) == "500.0 ms");
  CHECK(human_time(Seconds(-0.25)) == "-250.0 ms");
  CHECK(human_time(Seconds(86400)) == "86400 s");
  CHECK(human_time(Seconds(1) * 0.99999) == "1.000 s");  // not "1000.0 ms"
}

TEST_CASE("What nobody means has four digits and a power of ten") {
  CHECK(human_time(Seconds(1e99)) == "1.000e+99 s");
  CHECK(human_number(-2.5e300) == "-2.500e+300");
  CHECK(human_number(999999999999999.0) == "999999999999999");
}

TEST_CASE("Bytes count in powers of 1024 and rates in powers of 1000") {
  CHECK(human_bytes(Bytes(1000)) == "1000 B");
  CHECK(human_bytes(Bytes(1024)) == "1.000 KiB");
  CHECK(human_bytes(Bytes((std::int64_t{47} << 30) + (std::int64_t{1} << 29))) == "47.50 GiB");
  CHECK(human_rate(BytesPerSecond(153.2e9)) == "153.2 GB/s");
  CHECK(human_rate(BytesPerSecond(1.6e12)) == "1.600 TB/s");
}

TEST_CASE("Percentages keep small differences visible") {
  CHECK(human_percent(0) == "0 %");
  CHECK(human_percent(0.003) == "0.30 %");
  CHECK(human_percent(0.998) == "99.8 %");
  CHECK(human_percent(0.00012) == "0.012 %");
}

}  // namespace hyperoffload
