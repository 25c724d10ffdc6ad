// `flash_neuron`: FlashNeuron's offloading (Bae et al., FAST 2021), its first phase: linear tensor selection.
//
// Weights stay. What forward makes and backward reads is offloaded in the order forward makes it, until what is
// left fits beside the weights and the largest working set of an op. It leaves behind its last use in forward.
// In backward tensors come back in the order of their uses, as soon as the room that is free beyond the largest
// working set takes them; one that never found such room is loaded right before its use. The rules in this
// detail are those of G10's re-creation (github.com/platformxlab/G10 at c42dfb1, analysis.cc), which the paper's
// section on the scheduler agrees with.
// Not as there: the pool for the SSD; no compression (the second phase); no fragments of HBM (it allocates from
// both ends); ours does not hold backward up until every store has ended.
// Backward begins at the first op of that phase; where no op has it, at the one with the most live bytes (ours). O(accesses + ops + offloaded x log).
#pragma once

#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

// InfeasibleError when the weights and the largest working set leave no room, or when all that may be
// offloaded isn't enough.
StaticPlan flash_neuron(const Graph& graph, const Hardware& hardware, int iterations);

}  // namespace hyperoffload
