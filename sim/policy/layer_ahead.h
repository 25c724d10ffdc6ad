// `layer_ahead`: weight streaming as serving engines do it (vLLM's prefetch offloader: `offload_group_size`,
// `offload_num_in_group`, `offload_prefetch_step`; behaviour as told in vllm-project/vllm-ascend pull 11945).
//
// Layers in the order they run, in groups of `group`; the last `offload` of each group live in the pool. When an
// offloaded layer has run, its place is free and the copy of the `step`-th next offloaded layer starts; the first
// `step` are copied at the start. Copies go one after another. So with C compute and T copy a layer, groups of 4,
// 2 offloaded of 8 layers: step 1 stalls 2T + 2max(0, T - 2C) a pass, more steps make a pass max(8C, 4T).
//
// A layer is what ops call `layer`; its weights are those that only its ops and ops without a layer (an optimizer)
// access. Where a trace runs layers more than once (backward) each run counts as one in the row of offloaded layers.
// `offload` 0: the fewest that fit (none if all fits); `step` 0: as many as `offload`, the advice in that pull.
// Not as there: no fixed buffers, bytes are taken when a copy starts; where HBM is short a copy waits for room, and a
// plan that could get stuck is refused. Only weights move. O(accesses), times `group` to find `offload`.
#pragma once

#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

struct LayerAheadOptions {
  int group = 4;
  int offload = 0;
  int step = 0;
};

// InfeasibleError for a trace without layers, and where no `offload` fits.
StaticPlan layer_ahead(const Graph& graph, const Hardware& hardware, int iterations, const LayerAheadOptions& options);

// Which layers (by their place in the order in which they run) live in the pool.
std::vector<int> offloaded_layers(int layers, int group, int offload);

}  // namespace hyperoffload
