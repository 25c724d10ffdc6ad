// Whether the job can be done at all: every op's working set, and what all inputs take together, must
// fit HBM. The message of the InfeasibleError names step, tier, bytes short and the largest residents.
// O(ops + accesses of one op).
#pragma once

#include "planner/analysis/flat_graph.h"
#include "planner/analysis/liveness.h"

namespace hyperoffload {

void check_capacity(const FlatGraph& graph, const Liveness& liveness);

// Nothing more can leave at this position; `pool`: since the pool has no room for it.
[[noreturn]] void throw_infeasible(const FlatGraph& graph, const Liveness& liveness, int position, bool pool);

}  // namespace hyperoffload
