#include "planner/cost/plan_index.h"

#include <algorithm>
#include <tuple>

namespace hyperoffload {
namespace {

// Fills `lists` from (index, item) pairs, keeping their order within each index.
template <class T>
void gather(Lists<T>* lists, int count, const std::vector<std::pair<std::int32_t, T>>& pairs) {
  lists->begin.assign(count + 1, 0);
  for (const auto& pair : pairs) ++lists->begin[pair.first + 1];
  for (int i = 0; i < count; ++i) lists->begin[i + 1] += lists->begin[i];
  lists->items.resize(pairs.size());
  std::vector<std::uint32_t> next(lists->begin.begin(), lists->begin.end() - 1);
  for (const auto& pair : pairs) lists->items[next[pair.first]++] = pair.second;
}

bool first_has(const Action& action) { return action.scope != IterationScope::kLater; }
bool later_has(const Action& action) { return action.scope != IterationScope::kFirst; }

// Walks one tensor's actions and accesses in program order, for one kind of iteration.
struct TensorOrder {
  const FlatGraph& graph;
  const Plan& plan;
  std::span<const Access> accesses;
  std::span<const std::int32_t> actions;

  // Sets the place of each action that `has` selects; returns {count, 1 + rank of the last non-store}.
  template <class Has>
  std::pair<std::int32_t, std::int32_t> put(Has has, std::vector<std::int32_t>& place) const {
    std::int32_t count = 0, last = 0, at = -1;
    for (std::int32_t a : actions) {
      const Action& action = plan.actions[a];
      if (!has(action)) continue;
      at = std::max(at, action.after_op.value);
      place[a] = at;
      ++count;
      if (action.kind != ActionKind::kStore) last = count;
    }
    return {count, last};
  }

  // Calls gate(k, needed) for each access k: how many actions stand before it that it waits for.
  template <class Has, class Put>
  void gates(Has has, const std::vector<std::int32_t>& place, Put put) const {
    std::size_t next = 0;
    std::int32_t seen = 0, seen_no_store = 0;
    for (std::size_t k = 0; k < accesses.size(); ++k) {
      const int op = accesses[k].op.value;
      for (; next < actions.size(); ++next) {
        const std::int32_t a = actions[next];
        if (!has(plan.actions[a])) continue;
        if (place[a] >= op) break;
        ++seen;
        if (plan.actions[a].kind != ActionKind::kStore) seen_no_store = seen;
      }
      const bool all = accesses[k].writes || graph.in_pool[op];
      put(k, all ? seen : seen_no_store);
    }
  }
};

// Ops an action waits for besides its after_op: the last write before its place; a detach also the
// reads since. With one engine whatever stands before the place is done when the place's op is, and
// that op is the after_op of this action or of an earlier one of the tensor.
void add_waits(const FlatGraph& graph, const Action& action, std::int32_t a, std::int32_t place,
               std::span<const Access> accesses, std::vector<std::pair<std::int32_t, std::int32_t>>& waits) {
  if (graph.engines == 1) return;
  auto end = std::upper_bound(accesses.begin(), accesses.end(), place,
                              [](int p, const Access& access) { return p < access.op.value; });
  for (auto it = end; it != accesses.begin();) {
    --it;
    if (it->writes || action.kind == ActionKind::kDetach) waits.emplace_back(a, it->op.value);
    if (it->writes) break;
  }
}

}  // namespace

PlanIndex::PlanIndex(const FlatGraph& graph, const Plan& plan)
    : counts(graph.tensors), starts_in_pool(graph.bound_to_pool) {
  const int n = static_cast<int>(plan.actions.size());
  std::vector<std::int32_t> place_first(n, -1), place_later(n, -1);  // by action
  for (TensorId t : plan.initial_pool) starts_in_pool[t.index()] = 1;

  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  pairs.reserve(n);
  for (int a = 0; a < n; ++a) {
    const Action& action = plan.actions[a];
    pairs.emplace_back(action.tensor.value, a);
    if (action.kind == ActionKind::kPrefetch) loads.push_back(a);
    if (action.kind == ActionKind::kStore) stores.push_back(a);
  }
  gather(&by_tensor, graph.tensors, pairs);

  std::vector<std::pair<std::int32_t, Gate>> gate_pairs;
  std::vector<std::pair<std::int32_t, std::int32_t>> first_pairs, later_pairs;
  std::vector<Gate> own;
  for (int t = 0; t < graph.tensors; ++t) {
    const auto actions = by_tensor[t];
    if (actions.empty()) continue;
    const TensorOrder order{graph, plan, graph.graph->accesses(TensorId(t)), actions};
    std::tie(counts[t].first, counts[t].last_first) = order.put(first_has, place_first);
    std::tie(counts[t].later, counts[t].last_later) = order.put(later_has, place_later);
    own.assign(order.accesses.size(), Gate{t, 0, 0, false});
    order.gates(first_has, place_first, [&](std::size_t k, std::int32_t needed) { own[k].first = needed; });
    order.gates(later_has, place_later, [&](std::size_t k, std::int32_t needed) { own[k].later = needed; });
    for (std::size_t k = 0; k < own.size(); ++k) {
      const int op = order.accesses[k].op.value;
      own[k].all = order.accesses[k].writes || graph.in_pool[op];
      gate_pairs.emplace_back(op, own[k]);
    }
    for (std::int32_t a : actions) {
      add_waits(graph, plan.actions[a], a, place_first[a], order.accesses, first_pairs);
      add_waits(graph, plan.actions[a], a, place_later[a], order.accesses, later_pairs);
    }
  }
  gather(&gates, graph.ops, gate_pairs);
  gather(&waits_first, n, first_pairs);
  gather(&waits_later, n, later_pairs);

  pairs.clear();
  for (int a = 0; a < n; ++a) {
    if (plan.actions[a].kind != ActionKind::kDetach) continue;
    if (!plan.actions[a].after_op.is_none()) pairs.emplace_back(plan.actions[a].after_op.value, a);
    for (std::int32_t op : waits_first[a]) pairs.emplace_back(op, a);
    for (std::int32_t op : waits_later[a]) pairs.emplace_back(op, a);
    if (plan.actions[a].after_op.is_none()) start_detaches.push_back(a);
  }
  gather(&detaches, graph.ops, pairs);
}

}  // namespace hyperoffload
