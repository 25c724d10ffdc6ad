// Weight streaming as a plan: the weights of some layers live in the pool and come for each visit of their
// layer, at most two offloaded layers in HBM at once (the buffers that serving engines keep).
//
// A *visit* is a run of ops that read one offloaded layer's weights. The weights of a visit start to come
// when the visit two before it has ended (of the iteration before, for the first two), so the link is never
// idle while two buffers suffice to keep it busy; they leave behind their last reader. `n` of L layers are
// picked as evenly as goes, the last of each stretch. O(ops + actions).
#pragma once

#include <vector>

#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct LayerWeights {
  int layer = 0;
  std::vector<TensorId> weights;  // read by this layer alone, in HBM, written by none
  Bytes bytes;
};

// Layers with such weights, by number. Empty where ops name no layers.
std::vector<LayerWeights> layer_weights(const Graph& graph);

Plan stream_layers(const Graph& graph, const std::vector<LayerWeights>& layers, int offloaded);

}  // namespace hyperoffload
