// Graphs and plans in a line a tensor, op or action, for tests:
//   tensors  "w0 weight 10"  "w1 weight 10 pool"  "g other 4 persistent"     name, kind, bytes, flags
//   ops      "op1 reads=w0,x writes=y workspace=3 engine=comm memory=pool after=op0"
//   actions  "prefetch w0 after=op1 before=op3 range=0:5 iteration=first"
// Every op takes 1 us; engine "compute" unless it says otherwise.
#pragma once

#include <string>
#include <vector>

#include "sim/model/check_plan.h"
#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

using Lines = std::vector<std::string>;

Graph tiny_graph(const Lines& tensors, const Lines& ops);
Plan tiny_plan(const Graph& graph, const Lines& actions, const Lines& initial_pool = {});
// The inverse, for messages: "op0: ...; prefetch w0 ...".
std::string tiny_words(const Graph& graph, const Plan& plan);

// The names of the broken rules, in the order of the report.
Lines rules(const std::vector<Violation>& broken);
std::vector<Violation> check_tiny(const Graph& graph, const Plan& plan, std::int64_t hbm, std::int64_t pool,
                                  int iterations = 1);

}  // namespace hyperoffload
