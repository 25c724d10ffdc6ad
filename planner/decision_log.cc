#include "planner/decision_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/analysis/flat_graph.h"
#include "planner/analysis/liveness.h"
#include "planner/cost/walk.h"
#include "planner/cost/walk_memory.h"
#include "sim/model/clock_noise.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

std::string three_digits(double bytes) {
  const std::vector<const char*> units = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t u = 0;
  for (; u + 1 < units.size() && bytes >= 1000; ++u) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, units[u]);
}

class Explainer {
 public:
  Explainer(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations)
      : graph_(graph),
        flat_(graph, hardware),
        plan_(plan),
        iterations_(iterations),
        taken_(graph.ops().size()),
        walk_(walk_plan(flat_, plan, {iterations, WalkRecord::kLastIteration, false,
                                      [this](int op, const WalkMemory& memory) {
                                        if (op >= 0) taken_[static_cast<std::size_t>(op)] = memory.hbm_used();
                                      }})),
        ideal_(walk_plan(flat_, Plan{}, {1, WalkRecord::kNothing, true}).last_iteration) {}

  DecisionLog run();
  DecisionLog about(const std::string& name);  // empty: there is nothing of that name

 private:
  void about_tensor(TensorId t);
  void about_gaps(TensorId t);
  std::string gap_words(TensorId t, const Access& before, const Access& after, bool wraps) const;
  std::string slack_words(std::size_t a) const;
  void about_op(OpId op);
  std::string operand_words(OpId op, TensorId t, bool reads) const;
  const OpWalk& walked(OpId op) const { return *op_[op.index()]; }
  std::string op_name(OpId op) const { return graph_.op(op).name; }
  std::string tensor_name(const Action& action) const;
  std::string anchor(const Action& action) const {
    return action.after_op.is_none() ? "from the start" : "behind " + op_name(action.after_op);
  }
  std::string gap(const Action& action) const;
  std::string action_line(std::size_t a) const;
  std::string transfer_words(std::size_t a) const;
  std::string hiding_rate(std::size_t a) const;
  std::string proven() const;
  void summary();
  void index();

  const Graph& graph_;
  const FlatGraph flat_;
  const Plan& plan_;
  const int iterations_;
  std::vector<std::int64_t> taken_;  // by op: bytes in HBM once it has taken its own
  const Walk walk_;
  const double ideal_;
  std::vector<const OpWalk*> op_;              // by op, of the last iteration
  std::vector<const TransferWalk*> transfer_;  // by action, of the last iteration seen
  std::vector<double> exposed_;                // by action: time ops waited for it
  std::vector<std::string> waiter_;            // by action: the op that waited
  DecisionLog log_;
};

std::string Explainer::tensor_name(const Action& action) const {
  const Tensor& t = graph_.tensor(action.tensor);
  const bool whole = action.bytes() == t.bytes;
  return whole ? fmt::format("{} ({})", t.name, show_bytes(t.bytes.value))
               : fmt::format("{} [{}, {}) ({} of {})", t.name, action.from.value, action.to.value,
                             show_bytes(action.bytes().value), show_bytes(t.bytes.value));
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
  op_.assign(graph_.ops().size(), nullptr);
  for (const OpWalk& op : walk_.ops) op_[static_cast<std::size_t>(op.op)] = &op;
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
  if (std::isinf(t->end)) return "still under way as the last op ends";
  std::string words = fmt::format("takes {}", show_seconds(t->end - t->start));
  const std::int64_t bytes = plan_.actions[a].bytes().value;
  const bool load = plan_.actions[a].kind == ActionKind::kPrefetch;
  const double alone = load ? flat_.machine.load_seconds(bytes) : flat_.machine.store_seconds(bytes);
  if (t->end - t->start > alone * (1 + 1e-6))
    words += fmt::format(" ({} alone: HBM is shared)", show_seconds(alone));
  if (t->start - t->queued > 1e-9 * walk_.last_iteration)
    words += fmt::format(", waits {} for room", show_seconds(t->start - t->queued));
  if (exposed_[a] <= 0) return words + ", hidden";
  return words + fmt::format(", exposed: {} waits {} for it{}", waiter_[a], show_seconds(exposed_[a]), hiding_rate(a));
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

std::string Explainer::proven() const {
  if (!plan_.bound || plan_.bound->stall.value <= 0) return "no stall is proven to be needed";
  return fmt::format("any plan is proven to be at least {} slower", show_seconds(plan_.bound->stall.value));
}

// The least bandwidth at which the transfer, started when it was, would not be waited for; empty: none, it starts too
// late or behind others.
std::string Explainer::hiding_rate(std::size_t a) const {
  const TransferWalk& t = *transfer_[a];
  const double left = t.end - t.flow_start - exposed_[a];
  if (left <= 1e-9 * walk_.last_iteration) return "";
  return fmt::format(", which would take {}/s or more if it started then",
                     three_digits(static_cast<double>(plan_.actions[a].bytes().value) / left));
}

void Explainer::summary() {
  const Liveness liveness(flat_, {iterations_ > 1, 0});
  const auto peak = std::max_element(liveness.resident.begin(), liveness.resident.end());
  const int position = static_cast<int>(peak - liveness.resident.begin());
  const std::string where = position == 0 ? "the iteration's start" : op_name(OpId(position - 1));
  const std::int64_t over = *peak - flat_.machine.hbm;
  log_.lines.push_back(fmt::format(
      "everything resident needs {} at {}; HBM has {}: {}", show_bytes(*peak), where, show_bytes(flat_.machine.hbm),
      over > 0 ? show_bytes(over) + " too little" : "enough, nothing need move"));
  if (plan_.actions.empty() && plan_.initial_pool.empty()) return;
  Bytes loaded, stored;
  for (const Action& action : plan_.actions) {
    if (!action.in_iteration(iterations_ - 1)) continue;
    if (action.kind == ActionKind::kPrefetch) loaded += action.bytes();
    if (action.kind == ActionKind::kStore) stored += action.bytes();
  }
  const double stall = walk_.last_iteration - ideal_;
  log_.lines.push_back(fmt::format("an iteration loads {} and stores {}; {} start in the pool",
                                   show_bytes(loaded.value), show_bytes(stored.value), plan_.initial_pool.size()));
  if (std::abs(stall) <= kClockNoise * ideal_)
    log_.lines.push_back(fmt::format("iteration {}, as with everything in HBM", show_seconds(walk_.last_iteration)));
  else
    log_.lines.push_back(fmt::format("iteration {} against {} with everything in HBM: {} slower ({:.3g} %)",
                                     show_seconds(walk_.last_iteration), show_seconds(ideal_),
                                     show_seconds(stall), ideal_ > 0 ? 100 * stall / ideal_ : 0));
  const double link =
      static_cast<double>(loaded.value) / std::min(flat_.machine.read_bandwidth, flat_.machine.hbm_bandwidth);
  if (stall > 1e-3 * ideal_ && link > 0.9 * walk_.last_iteration)
    log_.lines.push_back(fmt::format("bound by the link: this plan's {} take {} at {}/s; {}", show_bytes(loaded.value),
                                     show_seconds(link), three_digits(flat_.machine.read_bandwidth), proven()));
  if (flat_.machine.estimate)
    log_.lines.push_back("an estimate: NPUs share a pool port, an equal share at all times is assumed");
}

// One stretch between two accesses: how long, what leaving would take, and whether the plan leaves.
std::string Explainer::gap_words(TensorId t, const Access& before, const Access& after, bool wraps) const {
  const double from = walked(before.op).end, to = walked(after.op).start + (wraps ? walk_.last_iteration : 0);
  const std::int64_t bytes = graph_.tensor(t).bytes.value;
  std::string words = fmt::format("idle from {} to {}{} for {}; a store and a load take {} and {}", op_name(before.op),
                                  op_name(after.op), wraps ? " (next iteration)" : "", show_seconds(std::max(0.0, to - from)),
                                  show_seconds(flat_.machine.store_seconds(bytes)),
                                  show_seconds(flat_.machine.load_seconds(bytes)));
  bool leaves = false;
  for (const Action& action : plan_.actions) {
    if (action.tensor != t || action.kind != ActionKind::kDetach || !action.in_iteration(iterations_ - 1)) continue;
    const int place = action.after_op.value;
    leaves |= wraps ? place >= before.op.value || place < after.op.value
                    : place >= before.op.value && place < after.op.value;
  }
  return words + (leaves ? ": it leaves HBM" : ": it stays in HBM");
}

void Explainer::about_gaps(TensorId t) {
  const auto accesses = graph_.accesses(t);
  const Liveness liveness(flat_, {iterations_ > 1, 0});
  const auto needed = [&](int from, int to) {  // by everything, at the fullest op strictly between
    std::pair<std::int64_t, int> most{0, -1};
    for (int op = from + 1; op < to; ++op)
      most = std::max(most, {liveness.resident[static_cast<std::size_t>(op + 1)], op});
    if (most.second < 0) return std::string();
    const std::int64_t over = most.first - flat_.machine.hbm;
    return fmt::format("; meanwhile everything resident needs {} at {}, {}", show_bytes(most.first),
                       op_name(OpId(most.second)),
                       over > 0 ? show_bytes(over) + " more than HBM has" : "and HBM has room");
  };
  for (std::size_t k = 0; k + 1 < accesses.size(); ++k)
    if (accesses[k + 1].op.value > accesses[k].op.value + 1)
      log_.lines.push_back(gap_words(t, accesses[k], accesses[k + 1], false) +
                           needed(accesses[k].op.value, accesses[k + 1].op.value));
  if (iterations_ > 1 && graph_.tensor(t).persistent && !accesses.empty())
    log_.lines.push_back(gap_words(t, accesses.back(), accesses.front(), true) +
                         needed(accesses.back().op.value, static_cast<int>(graph_.ops().size())));
}

// How early a load is done, beside the op it is meant for.
std::string Explainer::slack_words(std::size_t a) const {
  const TransferWalk* transfer = transfer_[a];
  const Action& action = plan_.actions[a];
  if (transfer == nullptr || action.kind != ActionKind::kPrefetch || action.before_op.is_none() || exposed_[a] > 0)
    return "";
  double needed = walked(action.before_op).start;
  if (action.before_op.value <= action.after_op.value) needed += walk_.last_iteration;
  if (transfer->iteration < iterations_ - 1) needed -= walk_.last_iteration;
  return fmt::format("; there {} before {} needs it", show_seconds(std::max(0.0, needed - transfer->end)),
                     op_name(action.before_op));
}

void Explainer::about_tensor(TensorId t) {
  const Tensor& tensor = graph_.tensor(t);
  const auto accesses = graph_.accesses(t);
  std::string uses = "nothing accesses it";
  if (!accesses.empty()) {
    uses = fmt::format("{} {}: ", accesses.size(), accesses.size() == 1 ? "op uses it" : "ops use it");
    for (std::size_t k = 0; k < accesses.size() && k < 6; ++k)
      uses += fmt::format("{}{} {}", k ? ", " : "", op_name(accesses[k].op),
                          accesses[k].reads && accesses[k].writes ? "updates" : accesses[k].writes ? "writes" : "reads");
    if (accesses.size() > 6) uses += fmt::format(", ... {}", op_name(accesses.back().op));
  }
  log_.lines.push_back(fmt::format("tensor {}: {}, {}, {}; {}", tensor.name, to_string(tensor.kind),
                                   show_bytes(tensor.bytes.value),
                                   tensor.persistent ? "persistent" : "alive from its first use to its last", uses));
  const bool starts_there = tensor.initial == Tier::kPool ||
                            std::find(plan_.initial_pool.begin(), plan_.initial_pool.end(), t) != plan_.initial_pool.end();
  if (starts_there)
    log_.lines.push_back(tensor.initial == Tier::kPool ? "it starts in the pool: the trace says so"
                                                       : "it starts in the pool, free of charge: the plan says so");
  about_gaps(t);
  bool moves = false;
  for (std::size_t a = 0; a < plan_.actions.size(); ++a) {
    if (plan_.actions[a].tensor != t) continue;
    moves = true;
    log_.lines.push_back(action_line(a) + slack_words(a));
  }
  if (!moves) log_.lines.push_back(starts_there ? "nothing moves it" : "it is in HBM as long as it lives: nothing moves it");
}

std::string Explainer::operand_words(OpId op, TensorId t, bool reads) const {
  const Tensor& tensor = graph_.tensor(t);
  std::string words = fmt::format("{} {} ({})", reads ? "reads" : "writes", tensor.name,
                                  show_bytes(tensor.bytes.value));
  if (!reads) return words + (graph_.birth(t) == op ? ": born here" : "");
  const TransferWalk* last = nullptr;  // that ended before the op started, or for which it waited
  for (std::size_t a = 0; a < plan_.actions.size(); ++a)
    if (plan_.actions[a].tensor == t && plan_.actions[a].kind == ActionKind::kPrefetch && transfer_[a] != nullptr &&
        transfer_[a]->end <= walked(op).start && (last == nullptr || transfer_[a]->end > last->end))
      last = transfer_[a];
  if (last == nullptr) return words + ": in HBM already";
  if (walked(op).waited_action == last->action && walked(op).resident > walked(op).ready)
    return words + fmt::format(": waits {} for its load", show_seconds(walked(op).resident - walked(op).ready));
  return words + fmt::format(": loaded {}, there {} before", anchor(plan_.actions[static_cast<std::size_t>(last->action)]),
                             show_seconds(walked(op).start - last->end));
}

void Explainer::about_op(OpId op) {
  const OpWalk& w = walked(op);
  std::string line = fmt::format("op {}: on {}, from {} to {} of {}", op_name(op),
                                 graph_.engines()[graph_.op(op).engine.index()], show_seconds(w.start - walk_.last_start),
                                 show_seconds(w.end - walk_.last_start), show_seconds(walk_.last_iteration));
  if (w.resident > w.ready) line += fmt::format("; waits {} for bytes", show_seconds(w.resident - w.ready));
  if (w.start > w.resident) line += fmt::format("; waits {} for room", show_seconds(w.start - w.resident));
  log_.lines.push_back(line);
  log_.lines.push_back(fmt::format("as it starts {} of {} in HBM are taken", show_bytes(taken_[op.index()]),
                                   show_bytes(flat_.machine.hbm)));
  for (const TensorId t : graph_.op(op).reads) log_.lines.push_back(operand_words(op, t, true));
  for (const TensorId t : graph_.op(op).writes) log_.lines.push_back(operand_words(op, t, false));
  if (graph_.op(op).workspace > Bytes(0))
    log_.lines.push_back(fmt::format("workspace of {}", show_bytes(graph_.op(op).workspace.value)));
  for (std::size_t a = 0; a < plan_.actions.size(); ++a)
    if (plan_.actions[a].before_op == op || plan_.actions[a].after_op == op)
      log_.lines.push_back(action_line(a) + slack_words(a));
}

DecisionLog Explainer::about(const std::string& name) {
  index();
  for (std::size_t t = 0; t < graph_.tensors().size(); ++t)
    if (graph_.tensors()[t].name == name) about_tensor(TensorId(t));
  for (std::size_t o = 0; o < graph_.ops().size(); ++o)
    if (graph_.ops()[o].name == name) about_op(OpId(o));
  return std::move(log_);
}

DecisionLog Explainer::run() {
  index();
  summary();
  for (std::size_t a = 0; a < plan_.actions.size(); ++a) log_.lines.push_back(action_line(a));
  return std::move(log_);
}

}  // namespace

std::string explain_name(const Graph& graph, const Hardware& hardware, const Plan& plan, int iterations,
                         const std::string& name) {
  const DecisionLog log = Explainer(graph, hardware, plan, iterations).about(name);
  if (!log.lines.empty()) return to_text(log);
  NearestName nearest(name);
  for (const Tensor& tensor : graph.tensors()) nearest.offer(tensor.name);
  for (const Op& op : graph.ops()) nearest.offer(op.name);
  throw InputError("--explain", in_quotes(name) + ", which is no tensor or op of the trace",
                   nearest.best().empty() ? "the name of one" : in_quotes(nearest.best()) + " or another name");
}

std::string show_bytes(std::int64_t bytes) { return three_digits(static_cast<double>(bytes)); }

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

}  // namespace hyperoffload
