// Changes of a finished plan, one action at a time, while the walk says that they help.
//
// hasten: loads that ops wait for stand behind earlier ops.
// postpone: copies that take HBM bandwidth from an op stand behind it. A store that has until the next iteration may run
// beside an op that wants all of it, and the placements of the search, which time copies by their link alone, don't see
// what that costs.
// Each ends at `enough` seconds an iteration, after so many tries, or with the work left; a try is a walk and, where
// it is faster, a check of all rules. Weakness: one copy and one op at a time.
#pragma once

#include <utility>
#include <vector>

#include "planner/best_plan.h"

namespace hyperoffload {

void hasten(const FlatGraph& graph, BestPlan& best, double enough, int tries);
void postpone(const FlatGraph& graph, BestPlan& best, double enough, int tries);

// By op in order of start: {action, the op that it runs beside and makes longer}. Not what only the first iteration
// does. O(ops + transfers).
std::vector<std::pair<int, OpId>> copies_in_the_way(const FlatGraph& graph, const Walk& walk);
// With the action anchored on `op`, in its queue behind what is anchored there or before. It may break a rule.
Plan moved_behind(Plan plan, int action, OpId op);

}  // namespace hyperoffload
