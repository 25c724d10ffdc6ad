#include "planner/passes/late_changes.h"

#include <algorithm>

namespace hyperoffload {

std::vector<std::pair<int, OpId>> copies_in_the_way(const FlatGraph& graph, const Walk& walk) {
  std::vector<std::pair<int, OpId>> found;
  std::size_t from = 0;  // transfers start in order, and so do ops; but either may overlap
  for (const OpWalk& op : walk.ops) {
    const double alone = graph.cost[op.op].alone.value;
    if (op.end - op.start <= alone * (1 + 1e-9)) continue;
    while (from < walk.transfers.size() && walk.transfers[from].end <= op.start && graph.engines == 1) ++from;
    for (std::size_t i = from; i < walk.transfers.size() && walk.transfers[i].start < op.end; ++i)
      if (walk.transfers[i].end > op.start) found.emplace_back(walk.transfers[i].action, OpId(op.op));
  }
  return found;
}

Plan moved_behind(Plan plan, int action, OpId op) {
  std::vector<Action>& actions = plan.actions;
  actions[action].after_op = op;
  const auto first = actions.begin() + action;
  const auto later = std::find_if(first + 1, actions.end(), [&](const Action& a) { return a.after_op > op; });
  std::rotate(first, first + 1, later);
  return plan;
}

void postpone(const FlatGraph& graph, BestPlan& best, double enough, int tries) {
  for (bool better = true; better && tries > 0 && best.seconds() > enough;) {
    better = false;
    for (const auto& [action, op] : copies_in_the_way(graph, best.walk())) {
      if (tries-- <= 0 || best.no_work_left()) return;
      if ((better = best.improve(moved_behind(best.plan(), action, op)))) break;
    }
  }
}

namespace {

// Whether what it loads is known to be read only once another op is done.
bool known_late(const Graph& graph, const Action& action) {
  return !action.before_op.is_none() && graph.op(action.before_op).known_after.has_value();
}

}  // namespace

void hasten(const FlatGraph& graph, BestPlan& best, double enough, int tries) {
  for (bool better = true; better && tries > 0 && best.seconds() > enough;) {
    better = false;
    std::vector<int> waited;
    for (const OpWalk& op : best.walk().ops)
      if (op.waited_action >= 0 && op.resident > op.ready) waited.push_back(op.waited_action);
    for (int action : waited) {
      for (int earlier = 1; earlier <= 3 && tries > 0 && !best.no_work_left(); ++earlier) {
        Plan changed = best.plan();
        Action& moved = changed.actions[action];
        if (moved.kind != ActionKind::kPrefetch || moved.after_op.is_none() || known_late(*graph.graph, moved)) break;
        const int after = moved.after_op.value - earlier;
        moved.after_op = after < 0 ? OpId::none() : OpId(after);
        --tries;
        if (!best.improve(std::move(changed))) continue;
        better = true;
        break;
      }
    }
  }
}

}  // namespace hyperoffload
