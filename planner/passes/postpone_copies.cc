#include "planner/passes/postpone_copies.h"

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

WrittenPlan moved_behind(WrittenPlan written, int action, OpId op) {
  std::vector<Action>& actions = written.plan.actions;
  actions[action].after_op = op;
  const auto first = actions.begin() + action;
  const auto later = std::find_if(first + 1, actions.end(), [&](const Action& a) { return a.after_op > op; });
  const auto unit = written.unit.begin();
  if (!written.unit.empty()) std::rotate(unit + action, unit + action + 1, unit + (later - actions.begin()));
  std::rotate(first, first + 1, later);
  return written;
}

}  // namespace hyperoffload
