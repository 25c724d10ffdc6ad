// Chooses evictions while it walks forward in time: a busy link is never left idle as long as swapping does
// no harm.
//
// The sweep of choose_evictions moves as little as possible, and so bunches the misses: the link idles
// before them. Here, whenever the read link is free, the piece that is missed first is loaded, in place of the
// clean pieces that are used last, if those are used later than it is (Aggressive of Cao, Felten, Karlin
// and Li, "A study of integrated prefetching and caching strategies", 1995). Whenever the write link is free,
// the dirty piece that is used last is copied ahead. An op waits for what it reads and for room; its wait
// shifts all that comes behind it, so the timeline that results knows its stalls.
// A repeated body is walked until its start is forgotten. Result: the evictions of one iteration, in the order
// in which they happen, and the timeline, for choose_evictions to complete and place_transfers to place.
// O((positions + units) log). Weakness: moves more than needed where the link has time to spare; blind to
// the pool's capacity, to ops in the pool and to `known_after` (then it finds nothing).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/analysis/liveness.h"
#include "planner/cost/step_clock.h"

namespace hyperoffload {

struct Eviction {
  std::int32_t unit;
  std::int32_t position;  // from which it is away, on its gap's axis
  std::int32_t back = -1;  // its load starts no earlier than this position; -1: whenever there is room
};

struct Filled {
  std::vector<Eviction> evictions;  // in the order in which they happened
  StepClock clock;
};

std::optional<Filled> fill_forward(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                                   const std::vector<std::int32_t>& rank);

}  // namespace hyperoffload
