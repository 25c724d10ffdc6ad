#include "sim/policy/layer_runs.h"

#include <algorithm>

namespace hyperoffload {
namespace {

int layer_of(const Graph& graph, TensorId t) {
  const Tensor& tensor = graph.tensor(t);
  if (tensor.kind != TensorKind::kWeight || !tensor.persistent) return -1;
  int layer = -1;
  for (const Access& access : graph.accesses(t)) {
    const int named = graph.op(access.op).layer;
    if (named < 0 || named == layer) continue;
    if (layer >= 0) return -1;  // shared
    layer = named;
  }
  return layer;
}

}  // namespace

Layers find_layers(const Graph& graph) {
  Layers layers;
  for (std::size_t t = 0; t < graph.tensors().size(); ++t)
    layers.of_tensor.push_back(layer_of(graph, TensorId(t)));
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const Op& op = graph.ops()[i];
    std::vector<int> here;
    for (const auto* list : {&op.reads, &op.writes})
      for (TensorId t : *list)
        if (layers.of_tensor[t.index()] >= 0) here.push_back(layers.of_tensor[t.index()]);
    std::sort(here.begin(), here.end());
    here.erase(std::unique(here.begin(), here.end()), here.end());
    for (int layer : here) {
      if (layers.runs.empty() || layers.runs.back().layer != layer) layers.runs.push_back({layer, OpId(i), OpId(i)});
      layers.runs.back().last = OpId(i);
      if (std::find(layers.order.begin(), layers.order.end(), layer) == layers.order.end())
        layers.order.push_back(layer);
    }
    if (here.empty() && !layers.runs.empty() && op.layer == layers.runs.back().layer)
      layers.runs.back().last = OpId(i);
  }
  return layers;
}

}  // namespace hyperoffload
