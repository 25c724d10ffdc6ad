#include "sim/report/intervals.h"

#include "test/support/catch.h"

namespace hyperoffload {
namespace {

Interval span(double from, double to) { return {Seconds(from), Seconds(to)}; }

}  // namespace

TEST_CASE("overlap is the common part of two intervals, 0 where they only touch") {
  CHECK(overlap(span(1, 5), span(3, 9)) == Seconds(2));
  CHECK(overlap(span(3, 9), span(1, 5)) == Seconds(2));
  CHECK(overlap(span(1, 3), span(3, 9)) == Seconds(0));
  CHECK(overlap(span(1, 2), span(4, 9)) == Seconds(0));
}

TEST_CASE("An interval set counts overlapping parts once, whatever their order") {
  const IntervalSet set({span(8, 9), span(1, 3), span(2, 4), span(4, 5), span(6, 6)});
  REQUIRE(set.parts().size() == 2);  // [1, 5) and [8, 9)
  CHECK(set.covered(span(0, 10)) == Seconds(4 + 1));
  CHECK(set.covered(span(2, 8.5)) == Seconds(3 + 0.5));
  CHECK(set.covered(span(5, 8)) == Seconds(0));
  CHECK(set.covered(span(4, 4)) == Seconds(0));
  CHECK(IntervalSet({}).covered(span(0, 10)) == Seconds(0));
}

}  // namespace hyperoffload
