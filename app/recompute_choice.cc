#include "app/recompute_choice.h"

#include <fmt/format.h>

#include <limits>
#include <map>

#include "sim/model/error.h"
#include "sim/policy/recompute.h"

namespace hyperoffload {
namespace {

// Times of plans by the number of layers that compute again; infinite where there is none.
class Times {
 public:
  Times(const Graph& graph, const PlanProgram& plan) : graph_(graph), plan_(plan) {}

  double operator()(int layers) {
    const auto [at, fresh] = known_.emplace(layers, std::numeric_limits<double>::infinity());
    if (!fresh) return at->second;
    try {
      const Plan plan = layers == 0 ? plan_(graph_) : plan_(with_recompute(graph_, layers));
      at->second = plan.prediction->iteration.value;
      if (layers == 0) ideal_ = plan.prediction->ideal.value;
    } catch (const InfeasibleError& error) {
      if (!reason_) reason_ = error;
    }
    return at->second;
  }
  double ideal() const { return ideal_; }
  // The fewest layers of the fastest.
  int best() const {
    auto best = known_.begin();
    for (auto at = known_.begin(); at != known_.end(); ++at)
      if (at->second < best->second) best = at;
    if (best->second == std::numeric_limits<double>::infinity()) throw *reason_;
    return best->first;
  }

 private:
  const Graph& graph_;
  const PlanProgram& plan_;
  std::map<int, double> known_;
  std::optional<InfeasibleError> reason_;
  double ideal_ = 0;
};

int search(const Graph& graph, const PlanProgram& plan) {
  Times time(graph, plan);
  if (time(0) <= 1.001 * time.ideal()) return 0;
  int low = 0, high = recomputable_layers(graph);
  while (high - low > 3) {
    const int left = low + (high - low) / 3, right = high - (high - low) / 3;
    if (time(left) <= time(right) && time(left) < std::numeric_limits<double>::infinity())
      high = right;
    else
      low = left;
  }
  for (int layers = low; layers <= high; ++layers) time(layers);
  return time.best();
}

}  // namespace

RecomputeChoice choose_recompute(const Graph& graph, std::optional<int> layers, const PlanProgram& plan) {
  RecomputeChoice choice;
  if (layers == 0) return choice;
  if (const int most = layers ? recomputable_layers(graph) : 0; layers && *layers > most)
    throw InputError("recompute", std::to_string(*layers), fmt::format("at most {}, the layers that can be computed again", most));
  choice.layers = layers ? *layers : search(graph, plan);
  if (choice.layers > 0) choice.graph = with_recompute(graph, choice.layers);
  return choice;
}

}  // namespace hyperoffload
