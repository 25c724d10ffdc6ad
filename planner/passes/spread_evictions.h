// Evictions that stand evenly in time: for what is used turn after turn and doesn't fit, so that the link is short.
//
// There a part of all bytes must come every turn, whichever; what counts is that the link never idles and that little
// waits in HBM for its use. So reads are walked in time, an allowance grows with it, and a tensor that is read now leaves
// in the gap before if the allowance covers it. What has left before goes first: it has its copy, and little is stored.
// The allowance a second is the least with which half of all positions have room, by bisection: more moves more than the
// link carries, and choose_evictions does the rest. Gaps much longer than most leave in any case, as does what is never
// read again; gaps much shorter stay. The timeline is slowed to what these loads take.
// O((positions + gaps log) x rounds). Weakness: one rate for the whole trace; what would have to be stored each time stays.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/analysis/liveness.h"
#include "planner/cost/step_clock.h"
#include "planner/passes/fill_forward.h"

namespace hyperoffload {

// Tensors of fewer bytes stay. None where no rate makes room.
std::optional<Filled> spread_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                                       std::int64_t least_bytes);

}  // namespace hyperoffload
