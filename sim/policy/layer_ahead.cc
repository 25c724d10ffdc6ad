#include "sim/policy/layer_ahead.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "sim/policy/absences.h"
#include "sim/policy/layer_runs.h"

namespace hyperoffload {
namespace {

// The runs of offloaded layers, one after another; neighbours of the same layer are one.
class Streaming {
 public:
  Streaming(const Graph& graph, const Layers& layers, const std::vector<int>& offloaded)
      : graph_(graph), layers_(layers) {
    for (const LayerRun& run : layers.runs) {
      if (!std::binary_search(offloaded.begin(), offloaded.end(), run.layer)) continue;
      if (!runs_.empty() && runs_.back().layer == run.layer)
        runs_.back().last = run.last;
      else
        runs_.push_back(run);
    }
    offloaded_ = offloaded;
  }

  std::vector<Absence> absences(int step) const {
    std::vector<Absence> all;
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t)
      if (std::binary_search(offloaded_.begin(), offloaded_.end(), layers_.of_tensor[t])) add(TensorId(t), step, all);
    return all;
  }

 private:
  // The run that an access lies in: the layer's last one that has begun.
  int run_at(int layer, OpId op) const {
    int found = 0;
    for (std::size_t r = 0; r < runs_.size() && runs_[r].first <= op; ++r)
      if (runs_[r].layer == layer) found = static_cast<int>(r);
    return found;
  }

  void add(TensorId t, int step, std::vector<Absence>& all) const {
    const auto accesses = graph_.accesses(t);
    const int layer = layers_.of_tensor[t.index()];
    const int count = static_cast<int>(runs_.size());
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const bool wraps = i + 1 == accesses.size();
      const int here = run_at(layer, accesses[i].op);
      const int next = wraps ? run_at(layer, accesses[0].op) + count : run_at(layer, accesses[i + 1].op);
      if (next == here) continue;
      const int behind = std::max(here, next - step);  // not before it has left
      const OpId load_after = runs_[static_cast<std::size_t>(behind % count)].last;
      all.push_back({t, static_cast<int>(i), load_after, wraps && behind < count});
    }
  }

  const Graph& graph_;
  const Layers& layers_;
  std::vector<LayerRun> runs_;
  std::vector<int> offloaded_;  // layers, sorted
};

}  // namespace

std::vector<int> offloaded_layers(int layers, int group, int offload) {
  std::vector<int> places;
  for (int k = 0; k < layers; ++k)
    if (k % group >= group - offload) places.push_back(k);
  return places;
}

StaticPlan layer_ahead(const Graph& graph, const Hardware& hardware, int iterations,
                       const LayerAheadOptions& options) {
  if (options.offload > options.group)
    throw InputError("policy layer_ahead", fmt::format("offload={} with group={}", options.offload, options.group),
                     "at most the layers of a group");
  const Layers layers = find_layers(graph);
  if (layers.order.empty())
    throw InfeasibleError("layer_ahead finds no layer's weights: no op that reads a weight says its `layer`");
  const auto plan_with = [&](int offload) {
    std::vector<int> offloaded;
    for (int k : offloaded_layers(static_cast<int>(layers.order.size()), options.group, offload))
      offloaded.push_back(layers.order[static_cast<std::size_t>(k)]);
    std::sort(offloaded.begin(), offloaded.end());
    const int step = options.step > 0 ? options.step : std::max(1, offload);
    return plan_absences(graph, Streaming(graph, layers, offloaded).absences(step), iterations);
  };
  if (options.offload > 0) return {plan_with(options.offload), {}, false};
  const CheckLimits limits = limits_of(hardware);
  std::string reason;
  for (int offload = 0; offload <= options.group; ++offload) {
    Plan plan = plan_with(offload);
    const auto broken = check_plan(graph, plan, limits, iterations);
    if (broken.empty()) return {std::move(plan), {}, false};
    reason = broken.front().message;
  }
  throw InfeasibleError("layer_ahead does not fit even with all layers' weights in the pool: " + reason);
}

}  // namespace hyperoffload
