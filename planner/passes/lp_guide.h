// What the linear relaxation (bound/lp_bound.h) would do, as a guide: which share of a tensor is away in which gap,
// from when on, and where it waits.
//
// In a cold pass a tensor starts in the pool or in HBM as a whole, but the relaxation takes parts: the starts it is
// surest of are decided, and it is solved again for the others, till all are; then the tree of all decisions
// (bound/branch_starts.h) is searched for better ones. From the solution come two things: `flows`, its schedule slot by slot,
// which write_guide makes a plan of, and `away`, from which round_guide takes whole
// pieces, those that leave first being a version's first pieces, so that one store serves all their gaps. What
// rounding leaves too much is for choose_evictions, the timing for place_transfers.
// Traces of more than kGuidedOps ops are seen at a few hundred boundaries only (2,000 where all that moves is used once a turn), and what behaves alike there is one
// unit of the program, so that 100,000 ops take hardly longer than 1,000: there are no flows, what one tensor of a unit
// gets too much in rounding the next gets less, and of very long ones rounding alone decides starts.
// Of `known_after` it knows which loads can't begin yet (engine_view.h), but writes no flows then. One engine, no ops in the
// pool: else there is none, nor where a long trace's program takes too much work. O(solves of the program): 0.3 s for 100
// ops, 1 s for 160, 1.5 s for 200, 0.02-1 s for more than kGuidedOps. Weakness: most of it is the search for starts; pinned
// tensors and the pool's capacity are unknown to it; coarse boundaries don't see shorter gaps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/analysis/liveness.h"
#include "planner/cost/step_clock.h"
#include "planner/passes/fill_forward.h"

namespace hyperoffload {

inline constexpr int kGuidedOps = 250;  // up to here position by position

struct LpGuide {
  struct Away {  // positions; the gap is named by the access before it
    std::int32_t tensor, open, from;
    double share;
    int group;  // one gap of a unit: its tensors share the rounding
  };
  std::vector<Away> away;
  // The schedule itself: shares [from, to) of a tensor that go the same way; slots as in offload_lp.h, 2k before op k,
  // 2k + 1 beside it.
  struct Flow {
    struct Away {
      int first, load, due;  // slots: from the end of which on it is away, in which it is loaded (-1: never), at most
      bool absent;           // it starts in the pool
    };
    std::int32_t tensor;
    double from, to;
    int store;  // slot; -1: none
    std::vector<Away> away;
  };
  std::vector<Flow> flows;
  std::vector<std::int32_t> from_pool;  // tensors
  std::vector<double> waits;  // by position: seconds before it
  double least_stall = 0;     // proven: no plan that settles stalls less
  std::vector<LpGuide> with_margin;  // the same for a little less HBM: rounding takes the rest
};

struct GuideEffort {
  int tries;    // programs solved in search of a short trace's better starts, at most
  double work;  // pivots x rows that the program of a long one may take
};

std::optional<LpGuide> lp_guide(const FlatGraph& graph, const Liveness& liveness,
                                const std::vector<std::int32_t>& rank, double ideal, const GuideEffort& effort);

Filled round_guide(const LpGuide& guide, const Liveness& liveness, const StepClock& ideal);

}  // namespace hyperoffload
