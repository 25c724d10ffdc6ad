// What the trace's phase is measured in, from the trace's `meta` and the time of one iteration.
//
// `meta` is free content; looked at are `phase` ("train", "prefill", "decode", "mixed"), `batch`,
// `sequence`, `steps`, `tokens` and `samples` (of one iteration of this trace). Without `tokens`: batch x
// sequence, for decode batch x steps; without `samples`: batch. An iteration of decode or mixed gives each
// decoding sample `steps` tokens: the time of one is the iteration's over `steps`. Those samples don't end
// in it, nor do the prompts beside them: no samples a second there, and no time to first token. What is
// missing, or of another type, is left out. Model FLOPs utilisation needs no meta: the trace's FLOPs on
// the NPU over iteration x declared compute.
#pragma once

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/report/result.h"

namespace hyperoffload {

Throughput throughput_of(const Graph& graph, const Hardware& hardware, Seconds iteration);

}  // namespace hyperoffload
