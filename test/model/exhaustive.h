// A second opinion on a plan for tiny graphs: every interleaving of ops and transfers, byte by byte.
//
// Knows the trace's and the plan's rules only, none of the checker's shortcuts: ops and transfers
// start and end in any order their waits and the room allow; what may start may also start later.
// Detaches, deaths and what follows from them happen at once. Exponential: a handful of ops, actions
// and bytes.
#pragma once

#include <string>

#include "sim/model/check_plan.h"
#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct Opinion {
  bool yes = true;
  std::string why;  // the first rule broken or the state nothing moves in
  int states = 0;
};

// Rules are judged with room for all, so that a transfer that never starts is judged too; being stuck
// with the given room.
Opinion explore(const Graph& graph, const Plan& plan, const CheckLimits& limits, int iterations);

}  // namespace hyperoffload
