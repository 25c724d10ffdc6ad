// Times beyond double precision.
#include "sim/import/exact_time.h"

#include "sim/import/trace_maker.h"
#include "test/support/catch.h"

namespace hyperoffload {

TEST_CASE("an epoch in microseconds with nanoseconds is exact") {
  const auto a = parse_picoseconds("1689180448554837.123", kPicosPerMicro);
  const auto b = parse_picoseconds("1689180448554837.124", kPicosPerMicro);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(*b - *a == 1000);  // 1 ns; as doubles both are the same number
  CHECK(to_seconds(*b - *a).value == 1e-9);
  CHECK(microseconds_text(*a) == "1689180448554837.123");
}

TEST_CASE("times are read in any unit and notation, and rounded to a picosecond") {
  CHECK(*parse_picoseconds("3.744", kPicosPerMicro) == 3'744'000);
  CHECK(*parse_picoseconds(" 3744 ", kPicosPerNano) == 3'744'000);
  CHECK(*parse_picoseconds("0.003744", kPicosPerMilli) == 3'744'000);
  CHECK(*parse_picoseconds("1e-3", kPicosPerSecond) == 1'000'000'000);
  CHECK(*parse_picoseconds("-2.5", kPicosPerNano) == -2'500);
  CHECK(*parse_picoseconds("4236.099998474121", kPicosPerMicro) == 4'236'099'998);
  CHECK(*parse_picoseconds("0.0000005", kPicosPerMicro) == 1);
  CHECK(*parse_picoseconds("0.0000004", kPicosPerMicro) == 0);
  CHECK(*parse_picoseconds("0", kPicosPerMicro) == 0);
  for (const char* wrong : {"", "x", "1 us", "1.2.3", "NaN", "1e40"})
    CHECK_FALSE(parse_picoseconds(wrong, kPicosPerMicro));
}

TEST_CASE("microseconds are written without superfluous zeros") {
  CHECK(microseconds_text(3'744'000) == "3.744");
  CHECK(microseconds_text(0) == "0");
  CHECK(microseconds_text(-1) == "-0.000001");
  CHECK(microseconds_text(12'000'000) == "12");
}

TEST_CASE("a repeated name gets a number that no other name has") {
  UniqueNames names;
  CHECK(names.take("mm") == "mm");
  CHECK(names.take("mm#2") == "mm#2");
  CHECK(names.take("mm") == "mm#3");
  CHECK(names.take("mm") == "mm#4");
  CHECK(names.take("mm#2") == "mm#2#2");
  CHECK(names.take("mm#4") == "mm#4#2");  // made before
  CHECK(names.take("mm#5") == "mm#5");
  CHECK(names.take("mm") == "mm#6");
  CHECK(names.take("mm#") == "mm#");
}

}  // namespace hyperoffload
