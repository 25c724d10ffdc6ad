// The search: choose evictions, place transfers, write the plan, walk it; again on other timelines.
//
// One pass plans on a guide timeline. Its plan's walk shows the stalls the guide didn't know; planning
// again on the walked timeline, on uniformly slowed ones, and with stalls smoothed over their
// neighbourhood gives other plans. The walk is the judge, and the first plan that can't be beaten (it
// meets the bound) ends the search.
#pragma once

#include "planner/analysis/flat_graph.h"
#include "planner/analysis/liveness.h"
#include "planner/cost/walk.h"
#include "planner/passes/write_plan.h"

namespace hyperoffload {

struct SearchOptions {
  int iterations = 1;
  int effort = 1;
  double least_stall = 0;  // proven: a plan that reaches it ends the search
};

struct Found {
  WrittenPlan written;
  Walk walk;
  std::int64_t piece_bytes = 0;  // how tensors were cut (0: whole)
  int passes = 0;                // plans walked
};

// The best plan found; HBM is exceeded somewhere and every position's working set fits.
Found search_plan(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options);

}  // namespace hyperoffload
