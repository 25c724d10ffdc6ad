#include "sim/report/track_slices.h"

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include "sim/report/trace_events.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

Slice slice(Picoseconds from, Picoseconds to) { return {from, to, 0, 0}; }

}  // namespace

TEST_CASE("Times are whole picoseconds, also at ten seconds, and print without losing any") {
  CHECK(picoseconds(Seconds(10e-6)) == 10'000'000);
  CHECK(picoseconds(Seconds(10.000000000001)) == 10'000'000'000'001);
  CHECK(picoseconds(Seconds(1e9)) == picoseconds(Seconds(2e9)));  // saturates instead of overflowing
  CHECK(microseconds(10'000'000) == "10");
  CHECK(microseconds(12'000'001) == "12.000001");
  CHECK(microseconds(500'000) == "0.5");
  CHECK(microseconds(0) == "0");
}

TEST_CASE("Slices one after another stay on one lane with their whole length") {
  const auto lanes = lay_out({slice(0, 1000'000), slice(1000'000, 3000'000), slice(5000'000, 6000'000)});
  REQUIRE(lanes.size() == 1);
  CHECK(lanes[0][0].to == 1000'000);
  CHECK(lanes[0][1].to == 3000'000);
}

TEST_CASE(
    "An end that reaches into the next slice by rounding is clipped, real overlaps take a second lane") {
  const auto clipped = lay_out({slice(0, 1000'001), slice(1000'000, 2000'000)});
  REQUIRE(clipped.size() == 1);
  CHECK(clipped[0][0].to == 1000'000);
  const auto overlapping =
      lay_out({slice(0, 1000'500), slice(1000'000, 2000'000), slice(2000'000, 2500'000)});
  REQUIRE(overlapping.size() == 2);
  CHECK(overlapping[0].size() == 2);
  CHECK(overlapping[1][0].to == 2000'000);
}

TEST_CASE("A track without slices still has its lane") { CHECK(lay_out({}).size() == 1); }

TEST_CASE("Back to back slices of any length stay disjoint as every viewer reads them") {
  std::mt19937_64 random(7);
  for (const Picoseconds origin :
       {Picoseconds{0}, Picoseconds{10'000'000'000'003}, Picoseconds{3'000'000'000'000'000}}) {
    std::vector<Slice> slices;
    Picoseconds time = origin;
    for (int i = 0; i < 20000; ++i) {
      const Picoseconds length = static_cast<Picoseconds>(random() % (i % 2 ? 5000 : 50'000'000));
      slices.push_back(slice(time, time + length));
      time += length;
    }
    const auto lanes = lay_out(slices);
    REQUIRE(lanes.size() == 1);
    int broken = 0;
    Picoseconds shortened = 0;
    for (std::size_t i = 0; i + 1 < lanes[0].size(); ++i) {
      const Slice &s = lanes[0][i], &next = lanes[0][i + 1];
      // As read from the text: doubles; whole ns, cut or rounded.
      const double ts = std::strtod(microseconds(s.from).c_str(), nullptr);
      const double dur = std::strtod(microseconds(s.to - s.from).c_str(), nullptr);
      const double limit = std::strtod(microseconds(next.from).c_str(), nullptr);
      if (ts + dur > limit) ++broken;
      if (std::floor(ts * 1e3) + std::floor(dur * 1e3) > std::floor(limit * 1e3)) ++broken;
      if (std::round(ts * 1e3) + std::round(dur * 1e3) > std::round(limit * 1e3)) ++broken;
      CHECK(s.from == slices[i].from);
      shortened = std::max(shortened, slices[i].to - s.to);
    }
    CHECK(broken == 0);
    CHECK(shortened <= 1000);
    CHECK(shortened > 0);  // the test has met the case
  }
}

}  // namespace hyperoffload
