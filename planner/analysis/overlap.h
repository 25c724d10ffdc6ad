// What engines that overlap add to an op's need of room, so that no timing can get stuck.
//
// The rule of the plan checker: an op that takes HBM is charged with what every later op that does not
// depend on it takes, and with the prefetches anchored on those. The charge for births and workspace is
// fixed (`charge`); a prefetch behind position a therefore counts from `counts_from[a]`: from a + 1, or
// from the first op before a that a does not depend on. Position 0 stands for the
// iteration's start: what is anchored there counts from there. With one engine nothing is added.
// Positions as in memory_profile.h. O((ops + dependencies) x engines).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/analysis/flat_graph.h"

namespace hyperoffload {

struct Overlap {
  explicit Overlap(const FlatGraph& graph);

  std::vector<std::int32_t> counts_from;    // by position
  std::vector<std::int32_t> written_early;  // by position: from where bytes missing at a pure write count
  std::vector<std::int64_t> charge;         // by position
};

}  // namespace hyperoffload
