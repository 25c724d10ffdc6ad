#include "app/layer_plan.h"

#include <algorithm>
#include <map>

namespace hyperoffload {
namespace {

struct Visit {
  int layer = 0;
  OpId last;                                      // its last reader of offloaded weights
  std::vector<std::pair<TensorId, OpId>> weights;  // each with its last reader in the visit
};

std::vector<Visit> visits_of(const Graph& graph, const std::vector<int>& layer_of) {
  std::vector<Visit> visits;
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const OpId op(static_cast<std::int32_t>(i));
    for (TensorId t : graph.op(op).reads) {
      const int layer = layer_of[t.index()];
      if (layer < 0) continue;
      if (visits.empty() || visits.back().layer != layer) visits.push_back({layer, op, {}});
      Visit& visit = visits.back();
      visit.last = op;
      const auto known = std::find_if(visit.weights.begin(), visit.weights.end(), [&](const auto& w) { return w.first == t; });
      if (known == visit.weights.end())
        visit.weights.emplace_back(t, op);
      else
        known->second = op;
    }
  }
  return visits;
}

Action action(const Graph& graph, ActionKind kind, TensorId tensor, OpId after) {
  Action action;
  action.kind = kind;
  action.tensor = tensor;
  action.after_op = after;
  action.to = graph.tensor(tensor).bytes;
  return action;
}

void prefetch(const Graph& graph, const Visit& visit, OpId after, IterationScope scope, std::vector<Action>& actions) {
  for (const auto& [tensor, last] : visit.weights) {
    actions.push_back(action(graph, ActionKind::kPrefetch, tensor, after));
    actions.back().scope = scope;
  }
}

}  // namespace

std::vector<LayerWeights> layer_weights(const Graph& graph) {
  std::map<int, LayerWeights> layers;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId t(static_cast<std::int32_t>(i));
    if (graph.tensor(t).kind != TensorKind::kWeight || graph.accesses(t).empty()) continue;
    const int layer = graph.op(graph.accesses(t)[0].op).layer;
    bool alone = layer >= 0;
    for (const Access& access : graph.accesses(t))
      alone = alone && !access.writes && graph.op(access.op).layer == layer && graph.op(access.op).memory == Tier::kHbm;
    if (!alone) continue;
    LayerWeights& found = layers[layer];
    found.layer = layer;
    found.weights.push_back(t);
    found.bytes += graph.tensor(t).bytes;
  }
  std::vector<LayerWeights> all;
  for (auto& [layer, found] : layers) all.push_back(std::move(found));
  return all;
}

Plan stream_layers(const Graph& graph, const std::vector<LayerWeights>& layers, int offloaded) {
  Plan plan;
  std::vector<int> layer_of(graph.tensors().size(), -1);
  const auto count = static_cast<std::size_t>(offloaded);
  for (std::size_t i = 0; i < count; ++i)
    for (const LayerWeights& layer = layers[(i + 1) * layers.size() / count - 1]; TensorId t : layer.weights) {
      layer_of[t.index()] = layer.layer;
      plan.initial_pool.push_back(t);
    }
  std::sort(plan.initial_pool.begin(), plan.initial_pool.end());
  const std::vector<Visit> visits = visits_of(graph, layer_of);
  const std::size_t n = visits.size();
  // Behind which visit a visit's weights may start to come.
  const auto anchor = [&](std::size_t w) {
    const std::size_t before = (w + n - 1) % n;
    return visits[before].layer == visits[w].layer ? before : (w + 2 * n - 2) % n;
  };
  std::vector<std::vector<std::size_t>> behind(n);
  for (std::size_t w = 0; w < n; ++w) {
    behind[anchor(w)].push_back(w);
    if (anchor(w) >= w) prefetch(graph, visits[w], OpId(), IterationScope::kFirst, plan.actions);
  }
  for (std::size_t v = 0; v < n; ++v) {
    for (const auto& [tensor, last] : visits[v].weights)
      plan.actions.push_back(action(graph, ActionKind::kDetach, tensor, last));
    // Two visits may wait for this one; the next comes first.
    std::sort(behind[v].begin(), behind[v].end(), [&](std::size_t a, std::size_t b) { return (a + n - v - 1) % n < (b + n - v - 1) % n; });
    for (std::size_t w : behind[v]) prefetch(graph, visits[w], visits[v].last, IterationScope::kEvery, plan.actions);
  }
  return plan;
}

}  // namespace hyperoffload
