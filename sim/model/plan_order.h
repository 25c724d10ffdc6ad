// A plan that moves ops: `order` is the program order it is made for.
//
// The new order must keep every dependency of the trace: data (read-after-write, write-after-read,
// write-after-write as the trace has them), `after` and `known_after`. Ops of one engine may change
// places otherwise. Reordering turns such a plan into one in program order: the same ops, op i being
// the i-th of `order`. O(ops + accesses + actions).
#pragma once

#include <vector>

#include "sim/model/check_plan.h"
#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct Reordered {
  Graph graph;
  Plan plan;  // op ids are those of `graph`; `order` is empty
};

// Empty: `order` is empty, or names each op once and keeps every dependency.
std::vector<Violation> check_order(const Graph& graph, const Plan& plan);
// Needs a non-empty order that check_order accepts.
Reordered reorder(const Graph& graph, const Plan& plan);

}  // namespace hyperoffload
