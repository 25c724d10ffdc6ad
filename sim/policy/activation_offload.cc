#include "sim/policy/activation_offload.h"

#include <algorithm>

#include "sim/policy/absences.h"
#include "sim/policy/fewest.h"
#include "sim/policy/phases.h"

namespace hyperoffload {
namespace {

// A stretch from the forward to the backward pass, and where its load starts.
struct Saved {
  Absence absence;
  int place = 0;  // of the layer that wrote it, in the order in which layers first run
};

class SavedActivations {
 public:
  explicit SavedActivations(const Graph& graph) : graph_(graph), runs_(graph.ops().size(), OpId::none()) {
    OpId run, before;  // first ops of the present backward run and of the one before it
    int layer = -1;
    for (std::size_t i = 0; i < graph.ops().size(); ++i) {
      const Op& op = graph.ops()[i];
      if (runs_forward(op) && op.layer >= 0 && place_of(op.layer) == layers_.size()) layers_.push_back(op.layer);
      if (!runs_backward(op) || op.layer < 0) continue;
      if (run.is_none() || op.layer != layer) {
        before = run;
        run = OpId(i);
        layer = op.layer;
      }
      runs_[i] = before;
    }
  }

  int layers() const { return static_cast<int>(layers_.size()); }

  std::vector<Saved> find(Bytes smallest) const {
    std::vector<Saved> all;
    for (const Stretch& s : stretches(graph_)) {
      const Tensor& tensor = graph_.tensor(s.tensor);
      const Op& from = graph_.op(s.from);
      if (tensor.persistent || tensor.kind == TensorKind::kInput || tensor.bytes < smallest) continue;
      if (!runs_forward(from) || from.layer < 0 || !runs_backward(graph_.op(s.to))) continue;
      const OpId run = runs_[s.to.index()];
      if (run.is_none()) continue;
      const OpId load_after = load_point(graph_, run);  // as the run before its own starts
      if (load_after <= s.from) continue;               // no layer between: it would come back at once
      const int layer = graph_.op(graph_.accesses(s.tensor).front().op).layer;
      all.push_back({{s.tensor, s.access, load_after}, static_cast<int>(place_of(layer >= 0 ? layer : from.layer))});
    }
    return all;
  }

 private:
  std::size_t place_of(int layer) const {
    return static_cast<std::size_t>(std::find(layers_.begin(), layers_.end(), layer) - layers_.begin());
  }

  const Graph& graph_;
  std::vector<int> layers_;
  std::vector<OpId> runs_;  // per backward op of a layer: the first op of the backward run before its own
};

}  // namespace

StaticPlan activation_offload(const Graph& graph, const Hardware& hardware, int iterations,
                              const ActivationOffloadOptions& options) {
  const SavedActivations activations(graph);
  const std::vector<Saved> saved = activations.find(options.smallest);
  if (saved.empty())
    throw InfeasibleError(fmt::format("activation_offload finds nothing of {} B or more that a layer's forward pass "
                                      "leaves to its backward pass: ops need `layer` and `phase`",
                                      options.smallest.value));
  const auto plan_with = [&](int layers) {
    std::vector<Absence> absences;
    for (const Saved& s : saved)
      if (s.place < layers) absences.push_back(s.absence);
    return StaticPlan{plan_absences(graph, absences, iterations), {}, false};
  };
  if (options.layers > 0) return plan_with(options.layers);
  return fewest_that_fit(graph, hardware, iterations, activations.layers(), plan_with,
                         "activation_offload does not fit even with the activations of all layers moved");
}

}  // namespace hyperoffload
