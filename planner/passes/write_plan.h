// From placements to a plan: actions in an order that keeps both queues and every tensor's own sequence,
// and what starts where.
//
// One iteration: what leaves before its first use starts in the pool. A repeated body: the state at an
// iteration's border is the state to start in. A tensor of which nothing is resident there starts in the
// pool; one that is wholly resident starts in HBM and, where the body counts on a pool copy it would not
// have yet, is stored in the first iteration only; one of which only pieces are resident starts in the
// pool and loads those pieces in the first iteration only. Neighbouring pieces that move together
// become one action. O(actions log).
#pragma once

#include <vector>

#include "planner/analysis/liveness.h"
#include "planner/cost/step_clock.h"
#include "planner/passes/place_transfers.h"
#include "sim/model/plan.h"

namespace hyperoffload {

Plan write_plan(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                const std::vector<std::int32_t>& rank, const Placements& placements);

}  // namespace hyperoffload
