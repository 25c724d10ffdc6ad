// A plan as vLLM's settings for weights on the host, as far as it can be said that way.
//
// The prefetch backend offloads the last num_in_group layers of each group of group_size, and starts the copy
// of the prefetch_step-th next offloaded layer when an offloaded one has run (vllm/config/offload.py,
// PrefetchOffloadConfig). When the layers whose weights the plan loads form such a pattern, these three are
// given; else cpu_offload_gb (GiB of weights, taken from the first layers on). `remarks` say what is lost:
// other tensors, parts of layers, other anchors.
#pragma once

#include "sim/export/schedule.h"

namespace hyperoffload {

Exported plan_to_vllm_settings(const Plan& plan, const Graph& graph);

}  // namespace hyperoffload
