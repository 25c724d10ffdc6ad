// A set of disjoint half-open time intervals [from, to), and how much of another one it covers.
//
// Built from intervals in any order, overlapping or not: O(n log n). A query is O(log n) by prefix
// sums; its rounding error is that of the sums up to it, about 1e-16 of the clock.
#pragma once

#include <vector>

#include "sim/model/units.h"

namespace hyperoffload {

struct Interval {
  Seconds from, to;
};

// The part of `a` inside `b`; 0 where they don't meet.
Seconds overlap(Interval a, Interval b);

class IntervalSet {
 public:
  explicit IntervalSet(std::vector<Interval> parts);
  Seconds covered(Interval window) const;
  const std::vector<Interval>& parts() const { return parts_; }

 private:
  Seconds covered_before(Seconds time) const;
  std::vector<Interval> parts_;  // disjoint, ascending, none empty
  std::vector<Seconds> before_;  // before_[i]: covered by parts_[0..i)
};

}  // namespace hyperoffload
