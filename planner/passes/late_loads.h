// Lets loads start no earlier than they have to, so that what is in HBM early has no place to be given.
//
// A plan anchors a load behind the earliest op after which it may go; with room to spare it then starts earlier than
// planned, and holds bytes that something else could lie on. On the plan's own timeline each load gets its latest start
// (its reader waits no longer than before, and neither does the next load of the queue), and is anchored behind
// the last op that ended by then, in every iteration. Order and bytes of all transfers stay.
// O(walk + actions log ops). Weakness: a late load has no time to spare for what the timeline doesn't know (`--slack`
// gives it some: the timeline is then that of slower links).
#pragma once

#include "planner/analysis/flat_graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

// The plan must keep every rule on the graph's machine. So does what comes out; it is the plan as it was where late loads
// would break one (engines that overlap), or make the last iteration more than kLonger longer (copies share HBM with ops).
inline constexpr double kLonger = 1e-3;
Plan late_loads(const FlatGraph& graph, int iterations, Plan plan);

}  // namespace hyperoffload
