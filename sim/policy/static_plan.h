// What a static baseline makes of a graph before time runs: a plan, replayed as any plan is.
//
// A baseline is a plain function (Graph, Hardware, iterations, its options) -> StaticPlan. It uses the
// machine's declared figures and its own rules only, and need not succeed: InfeasibleError where its rules
// leave it short, and what it returns must still pass check_plan (app/evaluate.cc sees to that).
#pragma once

#include <optional>

#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct StaticPlan {
  Plan plan;
  // Where the policy rewrites the program (recomputed ops, an optimizer on the host): what the plan is for.
  // The ideal time stays that of the trace as given.
  std::optional<Graph> graph;
  bool one_copy_stream = false;  // one transfer at a time, whatever its direction (Hardware::transfer_engines)
};

}  // namespace hyperoffload
