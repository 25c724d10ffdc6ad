// Times the transfers of the chosen evictions by an event replay: stores in the given order, loads in order
// of need, each as early as memory allows.
//
// Ops keep the durations of a timeline without stalls, and wait as they will in the plan's walk. A load starts
// when its link is free, its gap is open, its bytes are stored, and HBM, as now known and as expected up to its
// use (pending stores give back their bytes when they were expected to; late ones are put off), has room for
// it; pieces of one tensor that fit together move as one. What an op waits for may come while what it writes has no room yet. What starts is anchored behind all that had ended by
// then, so that program order finds the same room. A repeated body is replayed three times and the last is
// kept. What is put off while an op waits for room may find that room in the plan before the op does; then the
// plan is slower than its replay. `firm` puts it off until that op has ended. What may not be loaded before an op has told that it is
// read (`known_after`) lets others go first till then. O((positions + units) log). One engine only, no ops in the pool:
// else it says nothing.
#pragma once

#include <optional>
#include <vector>

#include "planner/analysis/liveness.h"
#include "planner/cost/step_clock.h"
#include "planner/passes/place_transfers.h"

namespace hyperoffload {

struct ReplayInput {
  const std::vector<char>& evicted;          // by unit
  const std::vector<std::int32_t>& from;     // by unit: the position from which it is expected to be away
  const std::vector<StorePlacement>& stores;  // in queue order
  const std::vector<std::int32_t>& loads;    // units, in order of need
  bool firm = false;
  // By unit, or none: the position before which its load doesn't start. Those that may start go in order of need.
  const std::vector<std::int32_t>& not_before;
};

struct Replayed {
  Placements placements;
  StepClock clock;  // with the stalls it found
};

std::optional<Replayed> replay_placement(const FlatGraph& graph, const Liveness& liveness, const StepClock& ideal,
                                         const ReplayInput& input);

}  // namespace hyperoffload
