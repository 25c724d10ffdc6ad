// Addresses for a plan: every byte that comes into HBM gets a place, and the arena's height counts as what
// the plan takes of HBM, not the live bytes alone.
//
// *Source*: what brings bytes into HBM (sim/model/residency.h). Each has one address, in every iteration.
// Sources of one tensor whose pieces are in HBM at once are one item, since an op reads a tensor in one
// stretch: its pieces keep their distances, and what is free between them, or while the tensor is away,
// others may use. An item is as many rectangles as pieces come and go (planner/pack/pack.h).
//
// Time is the order of takes and frees, and there are two: that of the planner's own walk (what happens on
// private links), over as many iterations as it takes until two are alike; and that of the replay in program
// order, in which `check` judges. Items must not overlap in either, so one packing holds in both.
//
// O(events + packing). Weakness: behind shared links simulated time may order things otherwise; the replay
// verifies every address and says so.
#pragma once

#include <cstdint>
#include <functional>

#include "planner/analysis/flat_graph.h"
#include "planner/planner.h"
#include "sim/model/plan.h"

namespace hyperoffload {

// Gives the plan addresses, whatever height they take. The plan must keep every rule.
Arena give_addresses(const FlatGraph& graph, Plan& plan, int iterations);

// The same within HBM. Where the plan's arena is higher, plans again (with `plan_for`, which may throw
// InfeasibleError): with loads that start no earlier than they have to (passes/late_loads.h), for a little
// less HBM, until an arena fits, then for a little more between the last that fit and the first that didn't.
// So with whole tensors (a stretch that is partly there has room for pieces only: parts of tensors fragment most),
// with as much room with tensors that leave whole and move in pieces (a stream then needs no room for all of a tensor that
// has only begun to come), then with pieces, both packed only where they take less time than what fits. What stalls
// least is kept; at most kPlanAgain plans each. InfeasibleError if none fits.
inline constexpr int kPlanAgain = 8;
enum class Parts { kNone, kMoving, kAny };  // of a tensor, in HBM without the others
struct PlanRequest {
  std::int64_t hbm;
  Parts parts;
};
using PlanFor = std::function<Plan(const PlanRequest&)>;
Arena fit_addresses(const FlatGraph& graph, Plan& plan, int iterations, const PlanFor& plan_for);

}  // namespace hyperoffload
