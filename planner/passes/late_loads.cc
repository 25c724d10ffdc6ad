#include "planner/passes/late_loads.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "planner/cost/walk.h"
#include "sim/model/check_plan.h"

namespace hyperoffload {
namespace {

// The first two iterations differ by what is marked `first`; later ones are like the third.
constexpr int kIterations = 3;
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kAny = std::numeric_limits<int>::max();

// When ops are over, by iteration and op: all up to it.
std::vector<std::vector<double>> ends_of(const FlatGraph& graph, const Walk& walk) {
  std::vector<std::vector<double>> ends;
  for (const OpWalk& op : walk.ops) {
    const auto iteration = static_cast<std::size_t>(op.iteration);
    if (iteration >= ends.size()) ends.resize(iteration + 1, std::vector<double>(graph.ops, kNever));
    ends[iteration][op.op] = op.end;
  }
  for (std::vector<double>& iteration : ends)
    for (std::size_t op = 1; op < iteration.size(); ++op)
      iteration[op] = std::max(iteration[op], iteration[op - 1]);
  return ends;
}

// By action: how many ops are over, in each iteration, when the load has to start at the latest; else kAny.
std::vector<int> latest_anchors(const FlatGraph& graph, const Walk& walk, const Plan& plan) {
  std::vector<std::vector<double>> uses(graph.tensors);
  for (const OpWalk& op : walk.ops)
    for (const FlatAccess& access : graph.accesses(op.op)) uses[access.tensor].push_back(op.start);
  for (std::vector<double>& of_tensor : uses) std::sort(of_tensor.begin(), of_tensor.end());
  const std::vector<std::vector<double>> ends = ends_of(graph, walk);
  std::vector<int> latest(plan.actions.size(), kAny);
  double next = kNever;  // start of the next load of the queue
  for (auto t = walk.transfers.rbegin(); t != walk.transfers.rend(); ++t) {
    const Action& action = plan.actions[t->action];
    if (action.kind != ActionKind::kPrefetch || t->iteration >= static_cast<int>(ends.size())) continue;
    double start = t->start;
    if (std::isfinite(t->end)) {
      const std::vector<double>& all = uses[action.tensor.index()];
      const auto use = std::lower_bound(all.begin(), all.end(), t->end * (1 - 1e-12));
      const double over = std::min(next, use == all.end() ? kNever : *use);
      if (std::isfinite(over)) start = std::max(start, over - (t->end - t->start));
    }
    next = start;
    const std::vector<double>& done = ends[t->iteration];
    const auto ops = std::upper_bound(done.begin(), done.end(), start * (1 + 1e-12)) - done.begin();
    latest[t->action] = std::min(latest[t->action], static_cast<int>(ops));
  }
  return latest;
}

}  // namespace

Plan late_loads(const FlatGraph& graph, int iterations, Plan plan) {
  const int some = std::min(iterations, kIterations);
  const Walk walk = walk_plan(graph, plan, {some, WalkRecord::kEverything});
  if (walk.stuck) return plan;
  Plan late = plan;
  const std::vector<int> latest = latest_anchors(graph, walk, plan);
  // From the last one back: the queue keeps its order, and a tensor's actions theirs.
  std::vector<int> tensors_next(graph.tensors, kAny);
  int queues_next = kAny;
  for (std::size_t a = late.actions.size(); a-- > 0;) {
    Action& action = late.actions[a];
    int anchor = action.after_op.is_none() ? 0 : action.after_op.value + 1;
    int& bar = tensors_next[action.tensor.index()];
    if (action.kind == ActionKind::kPrefetch && action.scope == IterationScope::kEvery) {
      if (latest[a] != kAny) anchor = std::max(anchor, std::min({latest[a], bar < anchor ? kAny : bar, queues_next}));
      action.after_op = anchor == 0 ? OpId::none() : OpId(anchor - 1);
      queues_next = anchor;
    }
    bar = anchor;
  }
  const CheckLimits limits{Bytes(graph.machine.hbm), Bytes(graph.machine.pool), graph.machine.allocation};
  if (!check_plan(*graph.graph, late, limits, iterations).empty()) return plan;
  const double longer = walk_plan(graph, late, {some, WalkRecord::kNothing}).last_iteration - walk.last_iteration;
  return longer <= kLonger * walk.last_iteration ? late : plan;
}

}  // namespace hyperoffload
