#include "planner/decision_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/analysis/flat_graph.h"
#include "planner/analysis/liveness.h"
#include "planner/cost/walk.h"

namespace hyperoffload {
namespace {

std::string scaled(double value, double base, const std::vector<const char*>& units) {
  std::size_t u = 0;
  while (u + 1 < units.size() && value >= base) {
    value /= base;
    ++u;
  }
  return fmt::format("{:.3g} {}", value, units[u]);
}

class Explainer {
 public:
  Explainer(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations)
      : graph_(graph),
        flat_(graph, hardware),
        plan_(plan),
        iterations_(iterations),
        walk_(walk_plan(flat_, plan, {iterations, WalkRecord::kLastIteration, false})),
        ideal_(walk_plan(flat_, Plan{}, {1, WalkRecord::kNothing, true}).last_iteration) {}

  DecisionLog run();

 private:
  std::string op_name(OpId op) const { return graph_.op(op).name; }
  std::string tensor_name(const Action& action) const;
  std::string anchor(const Action& action) const {
    return action.after_op.is_none() ? "from the start" : "behind " + op_name(action.after_op);
  }
  std::string gap(const Action& action) const;
  std::string action_line(std::size_t a) const;
  std::string transfer_words(std::size_t a) const;
  void summary();
  void index();

  const Graph& graph_;
  const FlatGraph flat_;
  const Plan& plan_;
  const int iterations_;
  const Walk walk_;
  const double ideal_;
  std::vector<const TransferWalk*> transfer_;  // by action, of the last iteration seen
  std::vector<double> exposed_;                // by action: time ops waited for it
  std::vector<std::string> waiter_;            // by action: the op that waited
  DecisionLog log_;
};

std::string Explainer::tensor_name(const Action& action) const {
  const Tensor& t = graph_.tensor(action.tensor);
  const bool whole = action.bytes() == t.bytes;
  return whole ? fmt::format("{} ({})", t.name, show_bytes(static_cast<double>(t.bytes.value)))
               : fmt::format("{} [{}, {}) ({} of {})", t.name, action.from.value, action.to.value,
                             show_bytes(static_cast<double>(action.bytes().value)),
                             show_bytes(static_cast<double>(t.bytes.value)));
}

// The two accesses around the action's place, on the circle of iterations if there are several.
std::string Explainer::gap(const Action& action) const {
  const auto accesses = graph_.accesses(action.tensor);
  if (accesses.empty()) return "never used";
  const int place = action.after_op.value;
  auto next =
      std::find_if(accesses.begin(), accesses.end(), [&](const Access& x) { return x.op.value > place; });
  const bool persistent = graph_.tensor(action.tensor).persistent && iterations_ > 1;
  const std::string from = next != accesses.begin() ? op_name(std::prev(next)->op)
                           : persistent             ? op_name(accesses.back().op) + " (iteration before)"
                                                    : "the start";
  const std::string to = next != accesses.end() ? op_name(next->op)
                         : persistent           ? op_name(accesses.front().op) + " (next iteration)"
                                                : "the end";
  return fmt::format("idle from {} to {}", from, to);
}

void Explainer::index() {
  transfer_.assign(plan_.actions.size(), nullptr);
  exposed_.assign(plan_.actions.size(), 0);
  waiter_.assign(plan_.actions.size(), "");
  for (const TransferWalk& transfer : walk_.transfers) transfer_[transfer.action] = &transfer;
  for (const OpWalk& op : walk_.ops) {
    if (op.waited_action < 0 || op.resident <= op.ready) continue;
    exposed_[op.waited_action] += op.resident - op.ready;
    waiter_[op.waited_action] = op_name(OpId(op.op));
  }
}

std::string Explainer::transfer_words(std::size_t a) const {
  const TransferWalk* t = transfer_[a];
  if (t == nullptr) return "not under way in the last iteration";
  std::string words = fmt::format("takes {}", show_seconds(t->end - t->start));
  const std::int64_t bytes = plan_.actions[a].bytes().value;
  const bool load = plan_.actions[a].kind == ActionKind::kPrefetch;
  const double alone = load ? flat_.machine.load_seconds(bytes) : flat_.machine.store_seconds(bytes);
  if (t->end - t->start > alone * (1 + 1e-6))
    words += fmt::format(" ({} alone: HBM is shared)", show_seconds(alone));
  if (t->start - t->queued > 1e-9 * walk_.last_iteration)
    words += fmt::format(", waits {} for room", show_seconds(t->start - t->queued));
  if (exposed_[a] <= 0) return words + ", hidden";
  return words + fmt::format(", exposed: {} waits {} for it", waiter_[a], show_seconds(exposed_[a]));
}

std::string Explainer::action_line(std::size_t a) const {
  const Action& action = plan_.actions[a];
  std::string line = fmt::format("{} {} {}", to_string(action.kind), tensor_name(action), anchor(action));
  if (action.scope != IterationScope::kEvery)
    line += action.scope == IterationScope::kFirst ? " (first iteration only)" : " (later iterations only)";
  switch (action.kind) {
    case ActionKind::kDetach:
      return line + fmt::format(": {}; a valid pool copy exists", gap(action));
    case ActionKind::kStore:
      return line + fmt::format(": no valid pool copy yet; {}", transfer_words(a));
    case ActionKind::kPrefetch:
      break;
  }
  if (!action.before_op.is_none()) line += " for " + op_name(action.before_op);
  return line + ": " + transfer_words(a);
}

void Explainer::summary() {
  const Liveness liveness(flat_, {iterations_ > 1, 0});
  const auto peak = std::max_element(liveness.resident.begin(), liveness.resident.end());
  const int position = static_cast<int>(peak - liveness.resident.begin());
  const std::string where = position == 0 ? "the iteration's start" : op_name(OpId(position - 1));
  const std::int64_t over = *peak - flat_.machine.hbm;
  log_.lines.push_back(fmt::format(
      "everything resident needs {} at {}; HBM has {}: {}", show_bytes(static_cast<double>(*peak)), where,
      show_bytes(static_cast<double>(flat_.machine.hbm)),
      over > 0 ? show_bytes(static_cast<double>(over)) + " too little" : "enough, nothing need move"));
  if (plan_.actions.empty() && plan_.initial_pool.empty()) return;
  double loaded = 0, stored = 0;
  for (const Action& action : plan_.actions) {
    if (!action.in_iteration(iterations_ - 1)) continue;
    if (action.kind == ActionKind::kPrefetch) loaded += static_cast<double>(action.bytes().value);
    if (action.kind == ActionKind::kStore) stored += static_cast<double>(action.bytes().value);
  }
  const double stall = walk_.last_iteration - ideal_;
  log_.lines.push_back(fmt::format("an iteration loads {} and stores {}; {} start in the pool",
                                   show_bytes(loaded), show_bytes(stored), plan_.initial_pool.size()));
  log_.lines.push_back(fmt::format("iteration {} against {} with everything in HBM: {} slower ({:.3g} %)",
                                   show_seconds(walk_.last_iteration), show_seconds(ideal_),
                                   show_seconds(stall), ideal_ > 0 ? 100 * stall / ideal_ : 0));
  const double link = loaded / std::min(flat_.machine.read_bandwidth, flat_.machine.hbm_bandwidth);
  if (stall > 1e-3 * ideal_ && link > 0.9 * walk_.last_iteration)
    log_.lines.push_back(fmt::format("bound by the link: {} take {} at {}/s, whatever the plan",
                                     show_bytes(loaded), show_seconds(link),
                                     show_bytes(flat_.machine.read_bandwidth)));
  if (flat_.machine.estimate)
    log_.lines.push_back("an estimate: NPUs share a pool port, an equal share at all times is assumed");
}

DecisionLog Explainer::run() {
  index();
  summary();
  for (std::size_t a = 0; a < plan_.actions.size(); ++a) log_.lines.push_back(action_line(a));
  return std::move(log_);
}

}  // namespace

std::string show_bytes(double bytes) { return scaled(bytes, 1000, {"B", "kB", "MB", "GB", "TB", "PB"}); }

std::string show_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds >= 1) return fmt::format("{:.4g} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} us", seconds * 1e6);
}

std::string to_text(const DecisionLog& log) {
  std::string text;
  for (const std::string& line : log.lines) text += line + "\n";
  return text;
}

DecisionLog explain_actions(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations) {
  return Explainer(graph, hardware, plan, iterations).run();
}

std::string explain_plan(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations) {
  return to_text(explain_actions(graph, hardware, plan, iterations));
}

}  // namespace hyperoffload
