#include "planner/cost/tensor_progress.h"

namespace hyperoffload {

TensorProgress::TensorProgress(const FlatGraph& graph, const Plan& plan, const PlanIndex& index, int iterations)
    : graph_(graph),
      plan_(plan),
      index_(index),
      iterations_(iterations),
      done_(graph.tensors),
      next_(graph.tensors),
      next_iteration_(graph.tensors),
      last_action_(graph.tensors, -1),
      last_action_end_(graph.tensors),
      accesses_done_(graph.tensors),
      lives_(graph.tensors) {
  for (int t = 0; t < graph.tensors; ++t) settle(t);
}

std::int64_t TensorProgress::needed(const Gate& gate, int iteration) const {
  const TensorActions& c = index_.counts[gate.tensor];
  const int own = iteration == 0 ? gate.first : gate.later;
  const std::int64_t before = actions_before(gate.tensor, iteration);
  if (own > 0) return before + own;
  if (gate.all || iteration == 0) return before;
  if (iteration >= 2 && c.last_later > 0) return actions_before(gate.tensor, iteration - 1) + c.last_later;
  return c.last_first;
}

void TensorProgress::finish(int tensor, int action, double now) {
  ++done_[tensor];
  ++next_[tensor];
  settle(tensor);
  last_action_[tensor] = action;
  last_action_end_[tensor] = now;
}

void TensorProgress::settle(int tensor) {
  const auto actions = index_.by_tensor[tensor];
  std::int32_t& iteration = next_iteration_[tensor];
  while (iteration < iterations_ && !actions.empty()) {
    for (std::int32_t& next = next_[tensor]; next < static_cast<int>(actions.size()); ++next)
      if (plan_.actions[actions[next]].in_iteration(iteration)) return;
    next_[tensor] = 0;
    ++iteration;
    if (iteration > 0 && index_.counts[tensor].later == 0) break;
  }
  iteration = INT_MAX;
}

bool TensorProgress::life_over(int tensor) const {
  return accesses_done_[tensor] >= static_cast<int>(graph_.graph->accesses(TensorId(tensor)).size()) &&
         all_done_before(tensor, lives_[tensor] + 1);
}

void TensorProgress::begin_life(int tensor) {
  accesses_done_[tensor] = 0;
  ++lives_[tensor];
}

void TensorProgress::skip(int iterations, double seconds) {
  for (int t = 0; t < graph_.tensors; ++t) {
    lives_[t] += iterations;
    done_[t] += static_cast<std::int64_t>(iterations) * index_.counts[t].later;
    if (next_iteration_[t] != INT_MAX) next_iteration_[t] += iterations;
    last_action_end_[t] += seconds;
  }
}

}  // namespace hyperoffload
