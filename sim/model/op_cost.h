// What an op asks of the machine: the one rule that turns a trace's figures into demand, used by the
// replay, the planner's walk and the bounds alike.
//
// An op with `duration` computes for that long; `hbm_bytes` beside it is demand spread over that
// time, so its HBM flow is capped at hbm_bytes/duration (and never above the HBM bandwidth: the
// duration is its time alone). An op with `flops` and/or `hbm_bytes` computes flops/compute and moves
// hbm_bytes as fast as HBM lets it, both at once: it ends at the later of the two (roofline). The machine's
// efficiency for the op's kernel lowers either rate. A launch overhead comes before that: the op then is one
// with a duration of overhead + roofline over which its bytes are spread.
// A collective without duration, on a machine with `peer`: its streams over the fabric, and the roofline of
// what flops and hbm_bytes it has beside them; the later of the two. Its streams load HBM unless hbm_bytes
// says what it asks of HBM. Here they take their time alone (collective_alone); no launch overhead.
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
  Seconds fabric{};  // of `compute`: a collective's streams alone; 0: no collective over the fabric
};

// InputError if a `memory: pool` op has flops or hbm_bytes but the machine no `host`, or an op is only a
// collective but the machine has no `peer`. `rank`: for which NPU (groups may differ in their paths).
OpCost op_cost(const Op& op, const Hardware& hardware, int rank = 0);
// The same without the fabric's part: what the op asks of its own NPU.
OpCost local_cost(const Op& op, const Hardware& hardware);
bool over_fabric(const Op& op, const Hardware& hardware);

}  // namespace hyperoffload
