// What an op asks of the machine: the one rule that turns a trace's figures into demand, used by the
// replay, the planner's walk and the bounds alike.
//
// An op with `duration` computes for that long; `hbm_bytes` beside it is demand spread over that
// time, so its HBM flow is capped at hbm_bytes/duration (and never above the HBM bandwidth: the
// duration is its time alone). An op with `flops` and/or `hbm_bytes` computes flops/compute and moves
// hbm_bytes as fast as HBM lets it, both at once: it ends at the later of the two (roofline).
// Ops with `memory: pool` run on the host: they load no HBM.
#pragma once

#include "sim/model/graph.h"
#include "sim/model/hardware.h"

namespace hyperoffload {

struct OpCost {
  Seconds compute;              // time on the engine itself
  Bytes hbm_bytes;              // to move through HBM meanwhile; 0: none
  BytesPerSecond hbm_rate_cap;  // of that flow; the HBM bandwidth when not capped
  Seconds alone;                // max(compute, hbm_bytes / hbm_rate_cap)
};

// InputError if a `memory: pool` op has flops or hbm_bytes but the machine no `host`.
OpCost op_cost(const Op& op, const Hardware& hardware);

}  // namespace hyperoffload
