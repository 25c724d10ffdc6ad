#include "sim/model/plan_body.h"

#include <algorithm>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

// Groups `items` by key, keeping their order: a counting sort.
template <class Key>
void group(const std::vector<int>& items, std::size_t groups, Key key, std::vector<int>& data,
           std::vector<int>& begin) {
  begin.assign(groups + 1, 0);
  for (int item : items) ++begin[key(item) + 1];
  for (std::size_t g = 0; g < groups; ++g) begin[g + 1] += begin[g];
  data.resize(items.size());
  std::vector<int> next(begin.begin(), begin.end() - 1);
  for (int item : items) data[static_cast<std::size_t>(next[key(item)]++)] = item;
}

}  // namespace

PlanBody place_actions(const Graph& graph, const Plan& plan, int iteration) {
  PlanBody body;
  std::vector<int> items;
  body.behind.resize(plan.actions.size());
  body.rank.assign(plan.actions.size(), -1);
  std::vector<OpId> last_of(graph.tensors().size());
  std::vector<int> count_of(graph.tensors().size(), 0);
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Action& action = plan.actions[i];
    HYPER_CHECK(!action.tensor.is_none() && action.tensor.index() < graph.tensors().size(),
                "action without a tensor");
    HYPER_CHECK(action.after_op.is_none() || action.after_op.index() < graph.ops().size(),
                "after_op out of range");
    if (!action.in_iteration(iteration)) continue;
    OpId& last = last_of[action.tensor.index()];
    last = std::max(last, action.after_op);
    body.behind[i] = last;
    body.rank[i] = count_of[action.tensor.index()]++;
    items.push_back(static_cast<int>(i));
    if (action.kind == ActionKind::kPrefetch) body.loads.push_back(static_cast<int>(i));
    if (action.kind == ActionKind::kStore) body.stores.push_back(static_cast<int>(i));
  }
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  group(
      items, graph.tensors().size(), [&](int i) { return plan.actions[at(i)].tensor.index(); },
      body.by_tensor_, body.tensor_begin_);
  group(
      items, graph.ops().size() + 1, [&](int i) { return at(body.behind[at(i)].value + 1); }, body.by_op_,
      body.op_begin_);
  return body;
}

std::vector<bool> starts_in_pool(const Graph& graph, const Plan& plan) {
  std::vector<bool> in_pool(graph.tensors().size());
  for (TensorId t : plan.initial_pool) in_pool[t.index()] = true;
  for (std::size_t t = 0; t < in_pool.size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    in_pool[t] = tensor.persistent && (in_pool[t] || tensor.initial == Tier::kPool);
  }
  return in_pool;
}

}  // namespace hyperoffload
