// Which copies of a plan make ops longer by taking HBM bandwidth from them, and the plan with one of them moved.
//
// A store that has until the next iteration may run beside an op that wants all of HBM's bandwidth, and the placements
// of the search, which time copies by their link alone, don't see what that costs. The caller judges by the walk.
// O(ops + transfers) for the walk's last iteration; O(actions) to move one. Weakness: one copy and one op at a time.
#pragma once

#include <utility>
#include <vector>

#include "planner/cost/walk.h"
#include "planner/passes/write_plan.h"

namespace hyperoffload {

// By op in order of start: {action, the op that it runs beside}. Not what only the first iteration does.
std::vector<std::pair<int, OpId>> copies_in_the_way(const FlatGraph& graph, const Walk& walk);
// With the action anchored on `op`, in its queue behind what is anchored there or before. It may break a rule.
WrittenPlan moved_behind(WrittenPlan written, int action, OpId op);

}  // namespace hyperoffload
