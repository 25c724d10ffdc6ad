#include "app/recompute_choice.h"

#include <fmt/format.h>

#include <limits>
#include <map>

#include "sim/model/error.h"
#include "sim/policy/recompute.h"

namespace hyperoffload {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

// Times of plans by which layers compute again, kNone where there is no plan; and the best, fewest layers first.
class Times {
 public:
  Times(const Graph& graph, const PlanProgram& plan) : graph_(graph), plan_(plan) {}

  double operator()(int layers, Recomputed which) {
    const auto [at, fresh] = known_.emplace(std::pair(layers, layers == 0 ? Recomputed::kFirst : which), kNone);
    if (!fresh) return at->second;
    try {
      const Plan plan = layers == 0 ? plan_(graph_) : plan_(with_recompute(graph_, layers, which));
      at->second = plan.prediction->iteration.value;
      if (layers == 0) ideal_ = plan.prediction->ideal.value;
    } catch (const InfeasibleError& error) {
      if (!reason_) reason_ = error;
    }
    return at->second;
  }
  double ideal() const { return ideal_; }
  std::pair<int, Recomputed> best() const {
    auto best = known_.begin();
    for (auto at = known_.begin(); at != known_.end(); ++at)
      if (at->second < best->second) best = at;
    if (best->second == kNone) throw *reason_;
    return best->first;
  }

 private:
  const Graph& graph_;
  const PlanProgram& plan_;
  std::map<std::pair<int, Recomputed>, double> known_;
  std::optional<InfeasibleError> reason_;
  double ideal_ = 0;
};

void search(Times& time, int most, Recomputed which) {
  int low = 0, high = most;
  while (high - low > kFewLayers) {
    const int left = low + (high - low) / 3, right = high - (high - low) / 3;
    if (time(left, which) <= time(right, which) && time(left, which) < kNone)
      high = right;
    else
      low = left;
  }
  for (int layers = low; layers <= high; ++layers) time(layers, which);
}

}  // namespace

RecomputeChoice choose_recompute(const Graph& graph, std::optional<int> layers, const PlanProgram& plan) {
  RecomputeChoice choice;
  if (layers == 0) return choice;
  if (const int most = recomputable_layers(graph); layers && *layers > most)
    throw InputError("recompute", std::to_string(*layers), fmt::format("at most {}, the layers that can be computed again", most));
  Times time(graph, plan);
  if (layers || time(0, Recomputed::kFirst) > 1.001 * time.ideal())  // less can't be won than plans differ by anyway
    for (Recomputed which : {Recomputed::kFirst, Recomputed::kSpread})
      layers ? void(time(*layers, which)) : search(time, recomputable_layers(graph), which);
  const auto [most_useful, which] = time.best();
  choice.layers = most_useful;
  if (choice.layers > 0) choice.graph = with_recompute(graph, choice.layers, which);
  return choice;
}

}  // namespace hyperoffload
