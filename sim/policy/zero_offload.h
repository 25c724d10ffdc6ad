// `zero_offload`: the optimizer and its states on the host (ZeRO-Offload, arXiv 2101.06840, without its delayed update).
//
// The program is rewritten: optimizer ops run on engine `host` in the pool, at the speed of the machine's `host`. Their
// states live there; a gradient that they read is copied out behind its last write, beside the backward pass, and
// given up; the weights that they write leave HBM behind their last use and come back, updated, as each is done.
// Everything else stays in HBM: where that is short the policy does not fit. The ideal time stays that of the trace as
// given, with the optimizer on the NPU; what the host takes longer is `other_s` among the stalls.
// O(accesses).
#pragma once

#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

// InfeasibleError for a trace without optimizer, a machine without `host`, and optimizer ops given by duration alone.
StaticPlan zero_offload(const Graph& graph, const Hardware& hardware, int iterations);

}  // namespace hyperoffload
