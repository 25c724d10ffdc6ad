// Where a plan's actions stand in one iteration: the body that iteration repeats.
//
// An action stands right behind its `after_op`, or behind its tensor's previous action in the file
// where that one stands later. Only actions of this iteration count: one that is restricted to other
// iterations moves nobody. An action behind op b comes after b's accesses and before op b+1's; those
// behind the iteration's start come before op 0. O(ops + tensors + actions).
#pragma once

#include <span>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct PlanBody {
  std::vector<OpId> behind;        // per plan action: the op it stands behind; none: the iteration's start
  std::vector<int> rank;           // per plan action: its place in of_tensor(); -1: not in this iteration
  std::vector<int> loads, stores;  // the two queues: action indices in file order

  // Action indices of one tensor, and those behind one op (none: the start); both in file order.
  std::span<const int> of_tensor(TensorId t) const { return slice(by_tensor_, tensor_begin_, t.index()); }
  std::span<const int> behind_op(OpId op) const {
    return slice(by_op_, op_begin_, static_cast<std::size_t>(op.value + 1));
  }

  friend PlanBody place_actions(const Graph& graph, const Plan& plan, int iteration);

 private:
  static std::span<const int> slice(const std::vector<int>& data, const std::vector<int>& begin,
                                    std::size_t i) {
    return {data.data() + begin[i], data.data() + begin[i + 1]};
  }
  std::vector<int> by_tensor_, tensor_begin_, by_op_, op_begin_;
};

PlanBody place_actions(const Graph& graph, const Plan& plan, int iteration);

// Per tensor: persistent, and in the pool (only, with a valid copy) before the first iteration.
std::vector<bool> starts_in_pool(const Graph& graph, const Plan& plan);

}  // namespace hyperoffload
