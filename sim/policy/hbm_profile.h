// What static baselines reckon with: HBM bytes by op, before anything is moved.
//
// On one engine the plan checker's replay takes exactly these. With several engines it also charges an op with what
// later ops that don't depend on it may take before it (sim/model/later_ops.h), the prefetches behind those
// included; so a choice of absences changes what has to be spared elsewhere. fit_absences() chooses again with the
// charges of its last choice until they no longer grow. O(rounds x (choice + ops x engines)), rounds <= 8.
#pragma once

#include <functional>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/plan.h"
#include "sim/policy/absences.h"

namespace hyperoffload {

// At each op: tensors from birth to death, inputs from the start, persistent ones always, its workspace.
std::vector<Bytes> resident_profile(const Graph& graph);

// What an absence spares: the profile falls by the tensor's bytes at the ops of one or two half-open ranges.
struct Spared {
  std::size_t from = 0, to = 0;            // behind the access it leaves, up to the op its load starts at
  std::size_t again_from = 0, again_to = 0;  // of one that wraps: in the next iteration
};
Spared spared_by(const Graph& graph, const Stretch& stretch, const Absence& absence);

// `choose` gets the profile to bring down and returns what to move. Single engine: called once. Persistent tensors that
// nothing accesses start in the pool.
Plan fit_absences(const Graph& graph, int iterations,
                  const std::function<std::vector<Absence>(const std::vector<Bytes>&)>& choose);

}  // namespace hyperoffload
