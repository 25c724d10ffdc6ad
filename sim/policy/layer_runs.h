// Layers as a trace tells them: which weights are a layer's own, and when each layer runs.
//
// A weight belongs to a layer if all ops with a `layer` that access it name the same one. The *runs* follow program
// order: a run lasts while the weights that are accessed belong to one layer, and on through that layer's ops to the
// next run. A layer that runs forward and backward has two; an op that accesses several layers' weights makes a
// run of each. O(ops + accesses).
#pragma once

#include <vector>

#include "sim/model/graph.h"

namespace hyperoffload {

struct LayerRun {
  int layer = -1;  // as ops name it
  OpId first, last;
};

struct Layers {
  std::vector<int> of_tensor;   // per tensor: the layer whose weight it is, or -1
  std::vector<int> order;       // layers by their first run
  std::vector<LayerRun> runs;   // in program order
};

Layers find_layers(const Graph& graph);

}  // namespace hyperoffload
