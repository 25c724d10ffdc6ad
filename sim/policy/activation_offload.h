// `activation_offload`: activations go out as the forward pass is done with them and come back one layer ahead of the
// backward pass, as Megatron/TransformerEngine's CPU offloading of the first N layers and torchtune's streamed
// OffloadActivations do (NVIDIA/Megatron-LM `cpu_offloading_num_layers`; pytorch/torchtune `OffloadActivations`,
// which leaves alone what is smaller than 1,024 bytes).
//
// What a layer's forward ops write and backward ops read leaves behind its last use forward. It is loaded from when the
// backward run before its own begins: the previous layer is reloaded while this one runs. What comes back at once (the
// last layers') stays. `layers`: those of so many layers, first ones first; 0: the fewest that fit, none if all fits.
// Not as there: no fixed stash of tensors in flight; copies wait for room. O(accesses), times log(layers).
#pragma once

#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

struct ActivationOffloadOptions {
  int layers = 0;
  Bytes smallest{1024};
};

// InfeasibleError for a trace without layers or without a backward pass, and where all layers don't suffice.
StaticPlan activation_offload(const Graph& graph, const Hardware& hardware, int iterations,
                              const ActivationOffloadOptions& options);

}  // namespace hyperoffload
