// How far each tensor has come in a walk: which of its actions are done, which is next, and how much of its life is left.
//
// A tensor's actions take effect one after another, in file order, an iteration's before the next one's. A *life* of a
// non-persistent tensor ends when the iteration's last access of it and all its actions up to then are done.
// Iterations count from 0. O(1) a question; moving on to the next action passes over those of other iterations.
#pragma once

#include <climits>
#include <cstdint>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "planner/cost/plan_index.h"
#include "sim/model/plan.h"

namespace hyperoffload {

class TensorProgress {
 public:
  TensorProgress(const FlatGraph& graph, const Plan& plan, const PlanIndex& index, int iterations);

  // Whether the access of that iteration need not wait for actions any more.
  bool open(const Gate& gate, int iteration) const { return done_[gate.tensor] >= needed(gate, iteration); }
  bool all_done_before(int tensor, int iteration) const { return done_[tensor] >= actions_before(tensor, iteration); }

  // The next action and its iteration; INT_MAX: there is none.
  int next_iteration(int tensor) const { return next_iteration_[tensor]; }
  int next_action(int tensor) const { return index_.by_tensor[tensor][next_[tensor]]; }
  bool is_next(int tensor, int action, int iteration) const {
    return next_iteration(tensor) == iteration && next_action(tensor) == action;
  }
  void finish(int tensor, int action, double now);
  int last_action(int tensor) const { return last_action_[tensor]; }  // done last; -1: none
  double last_action_end(int tensor) const { return last_action_end_[tensor]; }

  void count_access(int tensor) { ++accesses_done_[tensor]; }
  bool life_over(int tensor) const;
  void begin_life(int tensor);  // the next one

  // As if so many iterations more, which take so long, had gone by, each like the last one.
  void skip(int iterations, double seconds);

 private:
  std::int64_t actions_before(int tensor, int iteration) const {
    const TensorActions& c = index_.counts[tensor];
    return iteration == 0 ? 0 : c.first + static_cast<std::int64_t>(iteration - 1) * c.later;
  }
  std::int64_t needed(const Gate& gate, int iteration) const;
  void settle(int tensor);

  const FlatGraph& graph_;
  const Plan& plan_;
  const PlanIndex& index_;
  const int iterations_;
  std::vector<std::int64_t> done_;                     // by tensor: actions, of all iterations
  std::vector<std::int32_t> next_, next_iteration_;    // by tensor: place in its list
  std::vector<std::int32_t> last_action_;
  std::vector<double> last_action_end_;
  std::vector<std::int32_t> accesses_done_, lives_;    // by tensor: of this life; lives that ended
};

}  // namespace hyperoffload
