#include "sim/model/check_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "sim/model/check.h"
#include "sim/model/check_pieces.h"

namespace hyperoffload {
namespace {

enum class Life { kUnborn, kAlive, kDead };

// A prefetch whose `before_op` awaits its first reader.
struct Target {
  int action;
  int iteration;  // of the op meant
  OpId op;
};

struct TensorState {
  Life life = Life::kUnborn;
  std::uint32_t now = 0;
  std::uint32_t version = 1;    // of its content: +1 with each write
  std::uint32_t accessed = 0;   // its last access
  std::uint32_t pool_read = 0;  // its last read by a pool op
  std::uint32_t absent = 0;     // pieces not in HBM
  std::uint32_t blamed = 0;     // the version a pool op was reported to read without a pool copy
  OpId writer;                  // the last one, in any iteration
  std::vector<Target> targets;
};

class RuleWalk {
 public:
  RuleWalk(const Graph& graph, const Plan& plan, const Allocation& allocation)
      : graph_(graph),
        plan_(plan),
        allocation_(allocation),
        tensors_(graph.tensors().size()),
        pieces_(graph, plan) {
    place_initially();
  }

  void iterate(int iteration, const PlanBody& body) {
    iteration_ = iteration;
    body_ = &body;
    findings_.bodies.emplace_back();
    takes_ = &findings_.bodies.back();
    takes_->op.resize(graph_.ops().size());
    takes_->store.resize(plan_.actions.size());
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) takes_->op[i] = workspace(graph_.ops()[i]).value;
    for (std::size_t t = 0; t < tensors_.size(); ++t) walk_tensor(TensorId(t));
  }

  // What the next iteration starts from: equal states lead to equal iterations.
  std::vector<unsigned char> state() const {
    std::vector<unsigned char> state;
    state.reserve(pieces_.count());
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      for (const PlanPiece& p : pieces_.of(TensorId(t)))
        state.push_back(static_cast<unsigned char>(p.resident | p.allocated << 1 |
                                                   (p.copied == tensors_[t].version) << 2 |
                                                   unaccessed(tensors_[t], p) << 3 | p.assumed << 4));
    return state;
  }

  RuleFindings finish() {
    for (std::size_t t = 0; t < tensors_.size(); ++t) meet_next_iteration(TensorId(t));
    return std::move(findings_);
  }

 private:
  void place_initially();
  void begin_iteration(TensorId t);
  void walk_tensor(TensorId t);
  void act(TensorId t, int index);
  void prefetch(TensorId t, int index);
  void store(TensorId t, int index);
  void detach(TensorId t, int index);
  void access(TensorId t, const Access& access);
  void access_in_hbm(TensorId t, const Access& access);
  void access_in_pool(TensorId t, const Access& access);
  void die(TensorId t);
  void meet_targets(TensorId t, int iteration, OpId reader);
  void meet_next_iteration(TensorId t);
  std::string why_stale(TensorId t, const PlanPiece& piece) const;
  std::string bytes_of(TensorId t, const PlanPiece& piece) const;

  static bool unaccessed(const TensorState& tensor, const PlanPiece& piece) {
    return piece.resident && piece.arrived > tensor.accessed;
  }
  Bytes in_pool(Bytes bytes) const { return allocated_bytes(allocation_, bytes); }
  Bytes workspace(const Op& op) const {
    return op.memory == Tier::kPool ? in_pool(op.workspace) : op.workspace;
  }
  const Action& action(int index) const { return plan_.actions[static_cast<std::size_t>(index)]; }
  // A detach may be of an earlier iteration, so by the words of the file.
  std::string place_words(int index) const {
    const OpId op = action(index).after_op;
    return op.is_none() ? "at the iteration's start" : "behind " + quoted(graph_, op);
  }
  OpId behind(int index) const { return body_->behind[static_cast<std::size_t>(index)]; }

  void report(const char* rule, OpId step, TensorId tensor, int action, const std::string& message) {
    if (reported_.emplace(rule, step.value, tensor.value, action).second)
      findings_.broken.push_back({rule, iteration_, step, tensor, action, message});
  }
  void report_action(const char* rule, int index, const std::string& reason) {
    report(rule, behind(index), action(index).tensor, index,
           fmt::format("{}{}: {}", action_words(graph_, plan_, index, behind(index)),
                       iteration_words(iteration_), reason));
  }
  void report_access(const char* rule, TensorId t, OpId op, const std::string& does,
                     const std::string& reason) {
    report(rule, op, t, -1,
           fmt::format("{} {} {}{}: {}", quoted(graph_, op), does, quoted(graph_, t),
                       iteration_words(iteration_), reason));
  }

  const Graph& graph_;
  const Plan& plan_;
  const Allocation allocation_;
  const PlanBody* body_ = nullptr;
  BodyTakes* takes_ = nullptr;
  int iteration_ = 0;
  std::vector<TensorState> tensors_;
  Pieces pieces_;
  std::set<std::tuple<std::string, int, int, int>> reported_;
  RuleFindings findings_;
};

void RuleWalk::place_initially() {
  const std::vector<bool> in_pool = starts_in_pool(graph_, plan_);
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const Tensor& tensor = graph_.tensors()[t];
    for (PlanPiece& p : pieces_.of(TensorId(t))) {
      p.resident = tensor.persistent && !in_pool[t];
      p.allocated = in_pool[t];
      p.copied = in_pool[t] ? tensors_[t].version : 0;
      if (!p.resident) ++tensors_[t].absent;
    }
    if (tensor.persistent) tensors_[t].life = Life::kAlive;
  }
}

// Non-persistent tensors start over; inputs are there.
void RuleWalk::begin_iteration(TensorId t) {
  if (graph_.tensor(t).persistent) return;
  TensorState& tensor = tensors_[t.index()];
  const bool there = graph_.is_input(t);
  tensor.life = there ? Life::kAlive : Life::kUnborn;
  tensor.absent = 0;
  tensor.blamed = 0;
  tensor.targets.clear();
  tensor.writer = OpId::none();
  for (PlanPiece& p : pieces_.of(t)) {
    PlanPiece fresh;
    fresh.from = p.from;
    fresh.to = p.to;
    fresh.resident = there;
    p = fresh;
    if (!there) ++tensor.absent;
  }
}

void RuleWalk::walk_tensor(TensorId t) {
  begin_iteration(t);
  const std::span<const int> actions = body_->of_tensor(t);
  auto next = actions.begin();
  for (const Access& a : graph_.accesses(t)) {
    for (; next != actions.end() && behind(*next) < a.op; ++next) act(t, *next);
    tensors_[t.index()].life = Life::kAlive;
    access(t, a);
  }
  if (!graph_.tensor(t).persistent && !graph_.accesses(t).empty()) die(t);
  for (; next != actions.end(); ++next) act(t, *next);
}

void RuleWalk::act(TensorId t, int index) {
  TensorState& tensor = tensors_[t.index()];
  if (range_is_bad(graph_, action(index)))
    return report_action("range", index,
                         fmt::format("the range must lie within the tensor's {} and not be empty",
                                     bytes_words(graph_.tensor(t).bytes.value)));
  if (tensor.life == Life::kDead)
    return report_action(
        "dead", index,
        fmt::format("it is dead: its last access is {}", quoted(graph_, graph_.accesses(t).back().op)));
  if (tensor.life == Life::kUnborn)
    return report_action("unborn", index,
                         graph_.accesses(t).empty()
                             ? "it never exists: no op accesses it"
                             : "it is not born yet: its first write is " + quoted(graph_, graph_.birth(t)));
  ++tensor.now;
  switch (action(index).kind) {
    case ActionKind::kPrefetch:
      return prefetch(t, index);
    case ActionKind::kStore:
      return store(t, index);
    case ActionKind::kDetach:
      return detach(t, index);
  }
}

// What is absent has a valid pool copy: it left HBM, or never was there, only with one.
void RuleWalk::prefetch(TensorId t, int index) {
  TensorState& tensor = tensors_[t.index()];
  const PlanPiece* resident = nullptr;
  for (PlanPiece& p : pieces_.of(action(index))) {
    if (p.resident && !p.assumed) {
      if (!resident) resident = &p;
      continue;
    }
    HYPER_CHECK(p.assumed || p.copied == tensor.version,
                "the checker lost the last copy of " + quoted(graph_, t));
    if (!p.assumed) --tensor.absent;
    p.resident = true;
    p.assumed = false;
    p.copied = tensor.version;
    p.arrived = tensor.now;
  }
  if (resident)
    report_action(
        "prefetch-resident", index,
        bytes_of(t, *resident) + " in HBM already, or on the way there" +
            (resident->copied == tensor.version ? "" : ", and there is " + why_stale(t, *resident)));
  const Action& a = action(index);
  if (!a.before_op.is_none())
    tensor.targets.push_back({index, iteration_ + (a.before_op > a.after_op ? 0 : 1), a.before_op});
}

void RuleWalk::store(TensorId t, int index) {
  TensorState& tensor = tensors_[t.index()];
  const PlanPiece* absent = nullptr;
  const PlanPiece* valid = nullptr;
  Bytes& take = takes_->store[static_cast<std::size_t>(index)];
  for (PlanPiece& p : pieces_.of(action(index))) {
    if (!p.resident) {
      if (!absent) absent = &p;
      continue;
    }
    if (p.copied == tensor.version && !valid) valid = &p;
    if (!p.allocated) take += in_pool(p.bytes());
    p.allocated = true;
    p.copied = tensor.version;
    p.stored = tensor.now;
    p.store_action = index;
  }
  if (absent)
    report_action("store-absent", index,
                  bytes_of(t, *absent) + " not in HBM" +
                      (absent->detach_action < 0 ? "" : ", detached " + place_words(absent->detach_action)));
  if (valid) report_action("store-valid", index, bytes_of(t, *valid) + " valid in the pool already");
}

void RuleWalk::detach(TensorId t, int index) {
  TensorState& tensor = tensors_[t.index()];
  const PlanPiece* absent = nullptr;
  const PlanPiece* unread = nullptr;
  const PlanPiece* stale = nullptr;
  for (PlanPiece& p : pieces_.of(action(index))) {
    if (!p.resident) {
      if (!absent) absent = &p;
    } else {
      if (p.copied != tensor.version && !stale) {
        stale = &p;
        report_action("detach-last-copy", index, why_stale(t, p) + ", its last copy would be lost");
      }
      if (unaccessed(tensor, p)) unread = &p;
      ++tensor.absent;
    }
    p.resident = p.assumed = false;
    p.copied = tensor.version;
    p.stored = 0;
    p.detach_action = index;
  }
  if (absent) report_action("detach-absent", index, bytes_of(t, *absent) + " not in HBM");
  if (unread) report_action("detach-unaccessed", index, "no op accesses it between its prefetch and here");
}

void RuleWalk::access(TensorId t, const Access& a) {
  TensorState& tensor = tensors_[t.index()];
  ++tensor.now;
  if (graph_.op(a.op).memory == Tier::kPool) {
    access_in_pool(t, a);
    if (a.reads) tensor.pool_read = tensor.now;
  } else {
    if (a.reads) meet_targets(t, iteration_, a.op);
    access_in_hbm(t, a);
  }
  tensor.accessed = tensor.now;
  if (a.writes) tensor.writer = a.op;
}

void RuleWalk::access_in_hbm(TensorId t, const Access& a) {
  TensorState& tensor = tensors_[t.index()];
  if (tensor.absent > 0) {
    const PlanPiece* absent = nullptr;
    for (PlanPiece& p : pieces_.of(t)) {
      if (p.resident) continue;
      if (!absent) absent = &p;
      if (!a.reads) takes_->op[a.op.index()] += p.bytes().value;
      p.resident = true;
      p.assumed = a.reads;
      p.arrived = 0;
    }
    if (a.reads)
      report_access("read-absent", t, a.op, a.writes ? "updates" : "reads",
                    absent->detach_action < 0
                        ? bytes_of(t, *absent) + " only in the pool, no prefetch stands before the op"
                        : fmt::format("{} not in HBM, no prefetch stands between its detach {} and the op",
                                      bytes_of(t, *absent), place_words(absent->detach_action)));
    tensor.absent = 0;
  }
  if (a.writes) ++tensor.version;
}

void RuleWalk::access_in_pool(TensorId t, const Access& a) {
  TensorState& tensor = tensors_[t.index()];
  if (a.reads && tensor.blamed != tensor.version)
    for (const PlanPiece& p : pieces_.of(t)) {
      if (p.copied == tensor.version) continue;
      report_access("pool-read", t, a.op, "reads", why_stale(t, p) + ", and the op works on the pool");
      tensor.blamed = tensor.version;
      break;
    }
  if (!a.writes) return;
  const PlanPiece* resident = nullptr;
  ++tensor.version;
  for (PlanPiece& p : pieces_.of(t)) {
    if (p.resident && !resident) resident = &p;
    if (p.resident) ++tensor.absent;
    if (!p.allocated) takes_->op[a.op.index()] += in_pool(p.bytes()).value;
    p.resident = p.assumed = false;
    p.allocated = true;
    p.copied = tensor.version;
  }
  if (resident)
    report_access("pool-write", t, a.op, "writes",
                  bytes_of(t, *resident) + " in HBM, and the op works on the pool");
}

void RuleWalk::die(TensorId t) {
  TensorState& tensor = tensors_[t.index()];
  tensor.life = Life::kDead;
  for (const PlanPiece& p : pieces_.of(t))
    if (p.stored > tensor.pool_read)
      report_action("store-undetached", p.store_action,
                    fmt::format("{} about to die behind {}, and nothing detaches it before", bytes_of(t, p),
                                quoted(graph_, graph_.accesses(t).back().op)));
}

// The first reader of what the awaiting prefetches brought.
void RuleWalk::meet_targets(TensorId t, int iteration, OpId reader) {
  for (const Target& target : tensors_[t.index()].targets)
    if (std::pair(target.iteration, target.op) > std::pair(iteration, reader))
      report("before-op", behind(target.action), t, target.action,
             fmt::format(
                 "{}: `before_op` {}{} comes later than {}, the first reader behind it",
                 action_words(graph_, plan_, target.action, behind(target.action)), quoted(graph_, target.op),
                 target.iteration > iteration ? " (of the next iteration, as it isn't after after_op)" : "",
                 quoted(graph_, reader)));
  tensors_[t.index()].targets.clear();
}

// The last iteration's trailing prefetches: their readers stand in one that isn't walked.
void RuleWalk::meet_next_iteration(TensorId t) {
  if (!graph_.tensor(t).persistent) return;
  for (const Access& a : graph_.accesses(t))
    if (a.reads && graph_.op(a.op).memory == Tier::kHbm) return meet_targets(t, iteration_ + 1, a.op);
}

std::string RuleWalk::bytes_of(TensorId t, const PlanPiece& piece) const {
  if (pieces_.of(t).size() == 1) return "it is";
  return fmt::format("bytes [{}, {}) are", piece.from.value, piece.to.value);
}

std::string RuleWalk::why_stale(TensorId t, const PlanPiece& piece) const {
  const OpId writer = tensors_[t.index()].writer;
  const std::string which = pieces_.of(t).size() == 1 ? "no valid pool copy"
                                                      : fmt::format("no valid pool copy of bytes [{}, {})",
                                                                    piece.from.value, piece.to.value);
  if (piece.copied == 0 || writer.is_none()) return which + " (never stored)";
  return fmt::format("{} (written by {} since its last store)", which, quoted(graph_, writer));
}

}  // namespace

RuleFindings check_rules(const Graph& graph, const Plan& plan, const CheckLimits& limits,
                         const PlanBody& first, const PlanBody& later, int iterations) {
  RuleWalk walk(graph, plan, limits.allocation);
  std::vector<unsigned char> state;
  for (int k = 0; k < iterations; ++k) {
    walk.iterate(k, k == 0 ? first : later);
    std::vector<unsigned char> next = walk.state();
    if (next == state) break;
    state = std::move(next);
  }
  return walk.finish();
}

}  // namespace hyperoffload
