// What the linear relaxation (bound/lp_bound.h) would do, as a guide: which share of a tensor is away in which gap,
// from when on, and where it waits.
//
// In a cold pass a tensor starts in the pool or in HBM as a whole, but the relaxation takes parts: the starts it is
// surest of are decided, and it is solved again for the others, till all are; then some decisions are tried the other
// way. round_guide turns shares into whole
// pieces, those that leave first being a version's first pieces, so that one store serves all their gaps. What
// rounding leaves too much is for choose_evictions, the timing for place_transfers.
// One engine, no ops in the pool, no `known_after`, at most kGuidedOps ops: else there is none. O(solves of the
// program): 0.3 s for 100 ops, 2 s for 160. Weakness: shares are even over pieces; where time is short between ops, whole
// pieces come late.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/analysis/liveness.h"
#include "planner/cost/step_clock.h"
#include "planner/passes/fill_forward.h"

namespace hyperoffload {

inline constexpr int kGuidedOps = 160;

struct LpGuide {
  struct Away {  // positions; the gap is named by the access before it
    std::int32_t tensor, open, from;
    double share;
  };
  std::vector<Away> away;
  std::vector<double> waits;  // by position: seconds before it
  double least_stall = 0;     // proven: no plan that settles stalls less
};

// `tries`: how many decisions are looked at again.
std::optional<LpGuide> lp_guide(const FlatGraph& graph, const Liveness& liveness,
                                const std::vector<std::int32_t>& rank, double ideal, int tries);

Filled round_guide(const LpGuide& guide, const Liveness& liveness, const StepClock& ideal);

}  // namespace hyperoffload
