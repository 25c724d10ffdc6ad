// Which whole gaps leave HBM, by local search: a gap is kept, or leaves, whatever is then too much leaves in its stead, what
// is then needless stays; the event replay (replay_placement.h) judges, and what is slower is taken with a chance that falls.
//
// For whole tensors, where the sweep of choose_evictions and the rounded linear program are off by what a tensor more or
// less costs. A set is feasible if at each position what stays fits, as if all that leaves were away for all of its gap:
// the replay then waits for stores and room. The dice are the same for the same trace, whatever the order of its file.
// One engine, no ops in the pool. O(tries x (positions + units) log). Weakness: one gap's neighbourhood at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/passes/replay_placement.h"

namespace hyperoffload {

struct SwapStart {
  std::vector<char> evicted;  // by unit
  StepClock clock;            // that it was placed by
  Ticks period;               // an iteration of it
};

// The best set's placement, if better than the start's. `enough`: ticks of an iteration that need no improvement.
std::optional<Replayed> swap_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& ideal,
                                       const std::vector<std::int32_t>& rank, const SwapStart& start, int tries,
                                       Ticks enough);

}  // namespace hyperoffload
