#include "planner/reorder.h"

#include <algorithm>
#include <optional>
#include <set>

#include "planner/decision_log.h"
#include "sim/model/check.h"
#include "sim/model/error.h"
#include "sim/model/plan_order.h"

namespace hyperoffload {
namespace {

constexpr int kWindow = 64;  // how many ready ops are compared

struct Dependencies {
  std::vector<std::vector<std::int32_t>> next;
  std::vector<std::int32_t> open;  // how many come before

  explicit Dependencies(const Graph& graph) : next(graph.ops().size()), open(graph.ops().size()) {
    const auto add = [&](OpId earlier, OpId later) {
      next[earlier.index()].push_back(later.value);
      ++open[later.index()];
    };
    for (std::size_t i = 0; i < graph.ops().size(); ++i) {
      for (OpId after : graph.ops()[i].after) add(after, OpId(i));
      if (graph.ops()[i].known_after) add(*graph.ops()[i].known_after, OpId(i));
    }
    for (std::size_t t = 0; t < graph.tensors().size(); ++t)
      for_each_data_dependency(graph.accesses(TensorId(t)),
                               [&](const Access& earlier, const Access& later) { add(earlier.op, later.op); });
  }
};

class Scheduler {
 public:
  Scheduler(const Graph& graph, OrderRule rule) : graph_(graph), rule_(rule), depends_(graph), accessed_by_(graph.ops().size()) {
    for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
      left_.push_back(static_cast<std::int32_t>(graph.accesses(TensorId(t)).size()));
      for (const Access& a : graph.accesses(TensorId(t)))
        accessed_by_[a.op.index()].push_back({static_cast<std::int32_t>(t), a.reads});
    }
    started_.assign(graph.tensors().size(), 0);
    last_read_.assign(graph.tensors().size(), -1);
  }

  std::vector<OpId> run() {
    std::set<int> ready;
    for (std::size_t i = 0; i < graph_.ops().size(); ++i)
      if (depends_.open[i] == 0) ready.insert(static_cast<int>(i));
    std::vector<OpId> order;
    while (!ready.empty()) {
      const int op = choose(ready);
      ready.erase(op);
      order.push_back(OpId(op));
      take(op, static_cast<int>(order.size()));
      for (int later : depends_.next[op])
        if (--depends_.open[later] == 0) ready.insert(later);
    }
    HYPER_CHECK(order.size() == graph_.ops().size(), "ops that wait for each other");
    return order;
  }

 private:
  struct Touch {
    std::int32_t tensor;
    bool reads;
  };
  bool lives_and_dies(int tensor) const { return !graph_.tensor(TensorId(tensor)).persistent; }
  // Bytes it leaves behind beyond those it found.
  std::int64_t growth(int op) const {
    std::int64_t sum = 0;
    for (const Touch& touch : accessed_by_[op]) {
      if (!lives_and_dies(touch.tensor)) continue;
      const std::int64_t bytes = graph_.tensor(TensorId(touch.tensor)).bytes.value;
      if (!started_[touch.tensor] && !graph_.is_input(TensorId(touch.tensor))) sum += bytes;
      if (left_[touch.tensor] == 1) sum -= bytes;
    }
    return sum;
  }
  std::int64_t shared(int op) const {
    std::int64_t sum = 0;
    for (const Touch& touch : accessed_by_[op])
      if (touch.reads && !lives_and_dies(touch.tensor) && taken_ > 0 && last_read_[touch.tensor] == taken_)
        sum += graph_.tensor(TensorId(touch.tensor)).bytes.value;
    return sum;
  }
  int choose(const std::set<int>& ready) const {
    int best = *ready.begin(), seen = 0;
    std::int64_t best_value = 0;
    for (int op : ready) {
      if (++seen > kWindow) break;
      std::int64_t value = rule_ == OrderRule::kReuse ? shared(op) : -growth(op);
      if (rule_ == OrderRule::kFreeFirst) value = std::max<std::int64_t>(value, 0);
      if (seen > 1 && value <= best_value) continue;
      best = op;
      best_value = value;
    }
    return best;
  }
  void take(int op, int count) {
    taken_ = count;
    for (const Touch& touch : accessed_by_[op]) {
      started_[touch.tensor] = 1;
      --left_[touch.tensor];
      if (touch.reads) last_read_[touch.tensor] = count;
    }
  }

  const Graph& graph_;
  const OrderRule rule_;
  Dependencies depends_;
  std::vector<std::vector<Touch>> accessed_by_;
  std::vector<std::int32_t> left_, last_read_;
  std::vector<char> started_;
  int taken_ = 0;
};

// The plan for the reordered trace, told in the trace's own ops.
Plan in_own_ops(Plan plan, const std::vector<OpId>& order) {
  const auto own = [&](OpId op) { return op.is_none() ? op : order[op.index()]; };
  for (Action& action : plan.actions) {
    action.after_op = own(action.after_op);
    action.before_op = own(action.before_op);
  }
  for (Address& address : plan.addresses) address.op = own(address.op);
  plan.order = order;
  plan.bound->order = "plan";
  return plan;
}

}  // namespace

std::vector<OpId> order_by(const Graph& graph, OrderRule rule) { return Scheduler(graph, rule).run(); }

PlanOutcome make_reordered_plan(const Graph& graph, const Hardware& hardware, const PlannerOptions& options) {
  std::optional<PlanOutcome> best;
  std::optional<InfeasibleError> reason;
  const auto consider = [&](PlanOutcome outcome) {
    const auto better = [&](const Prediction& a, const Prediction& b) {
      const double tie = 1e-9 * b.iteration.value;
      return a.iteration.value < b.iteration.value - tie ||
             (a.iteration.value <= b.iteration.value + tie && a.hbm_peak < b.hbm_peak);
    };
    if (!best || better(*outcome.plan.prediction, *best->plan.prediction)) best = std::move(outcome);
  };
  try {
    consider(make_plan(graph, hardware, options));
  } catch (const InfeasibleError& error) {  // another order may need less
    reason = error;
  }
  for (OrderRule rule : kOrderRules) {
    Plan moved;
    moved.order = order_by(graph, rule);
    if (std::is_sorted(moved.order.begin(), moved.order.end())) continue;
    const Reordered other = reorder(graph, moved);
    try {
      PlanOutcome outcome = make_plan(other.graph, hardware, options);
      outcome.plan = in_own_ops(std::move(outcome.plan), moved.order);
      consider(std::move(outcome));
    } catch (const InfeasibleError&) {
    }
  }
  if (!best) throw *reason;
  return std::move(*best);
}

}  // namespace hyperoffload
