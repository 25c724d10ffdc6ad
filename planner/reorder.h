// Plans on other orders of the ops, where dependencies let them move, and takes the best.
//
// Dependencies are those of sim/model/plan_order.h (data as the trace has it, `after`, `known_after`); each
// engine runs its ops in the new order. Orders come from list scheduling: of the ops that could come next
// take, in program order unless the rule finds a better one,
//   kFreeFirst   one that frees more than it takes (updates right behind their gradients),
//   kGrowLast    the one that adds least (weight gradients and branches wait until they are needed),
//   kReuse       one that reads what the op before read (micro-batches share a layer's weights).
// An order is kept if its plan is faster, or as fast with a lower peak. Cost: a search an order,
// O((ops + accesses) window) for each order. Weakness: a few fixed rules, no search over orders.
#pragma once

#include <vector>

#include "planner/planner.h"

namespace hyperoffload {

enum class OrderRule { kFreeFirst, kGrowLast, kReuse };
inline constexpr OrderRule kOrderRules[] = {OrderRule::kFreeFirst, OrderRule::kGrowLast, OrderRule::kReuse};

std::vector<OpId> order_by(const Graph& graph, OrderRule rule);

// As make_plan; `plan.order` is empty where program order is best. The bound is for the plan's order.
PlanOutcome make_reordered_plan(const Graph& graph, const Hardware& hardware, const PlannerOptions& options);

}  // namespace hyperoffload
