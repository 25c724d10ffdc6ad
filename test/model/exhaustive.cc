#include "test/model/exhaustive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

namespace hyperoffload {
namespace {

enum : char { kWaiting, kRunning, kDone };

struct Byte {
  char taken = 0;  // HBM bytes: a prefetch takes them before they are resident
  char resident = 0;
  char allocated = 0;  // pool bytes
  char valid = 0;      // pool copy
  char unread = 0;     // prefetched, and nothing accessed it since
  char stored = 0;     // stored, and not detached or read in the pool since
};

// One action of one iteration, with what it waits for spelled out.
struct Step {
  int action, iteration;
  int stands;  // op index it stands behind, -1: the start
};

struct State {
  int iteration = 0;
  bool inputs_taken = false;
  std::vector<char> ops;                 // of this iteration
  std::vector<char> steps;               // of all iterations
  std::vector<std::vector<Byte>> bytes;  // per tensor

  std::string key() const {
    std::string k(1, static_cast<char>(iteration));
    k += static_cast<char>(inputs_taken);
    k.append(ops.begin(), ops.end());
    k.append(steps.begin(), steps.end());
    for (const auto& tensor : bytes)
      for (const Byte& b : tensor)
        k += static_cast<char>(b.taken | b.resident << 1 | b.allocated << 2 | b.valid << 3 | b.unread << 4 |
                               b.stored << 5);
    return k;
  }
};

struct Broken {
  std::string why;
};

class Explorer {
 public:
  Explorer(const Graph& graph, const Plan& plan, std::int64_t hbm, std::int64_t pool, int iterations)
      : graph_(graph), plan_(plan), hbm_(hbm), pool_(pool), iterations_(iterations) {
    for (int k = 0; k < iterations; ++k) {
      std::vector<int> last(graph.tensors().size(), -1);
      for (std::size_t a = 0; a < plan.actions.size(); ++a) {
        if (!plan.actions[a].in_iteration(k)) continue;
        int& stands = last[plan.actions[a].tensor.index()];
        stands = std::max(stands, plan.actions[a].after_op.value);
        steps_.push_back({static_cast<int>(a), k, stands});
      }
    }
  }

  Opinion run() {
    Opinion opinion;
    try {
      judge_lifetimes();
      std::vector<State> open{start()};
      std::unordered_set<std::string> seen{open.back().key()};
      while (!open.empty()) {
        const State state = std::move(open.back());
        open.pop_back();
        const std::vector<State> next = successors(state);
        if (next.empty() && !finished(state)) throw Broken{"stuck: " + where(state)};
        for (const State& s : next)
          if (seen.insert(s.key()).second) open.push_back(s);
      }
      opinion.states = static_cast<int>(seen.size());
    } catch (const Broken& broken) {
      opinion.yes = false;
      opinion.why = broken.why;
    }
    return opinion;
  }

 private:
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const Action& action(const Step& s) const { return plan_.actions[at(s.action)]; }
  std::size_t tensor(const Step& s) const { return action(s).tensor.index(); }
  int op_count() const { return static_cast<int>(graph_.ops().size()); }
  bool reads(int op, std::size_t t) const { return has(graph_.ops()[at(op)].reads, t); }
  bool writes(int op, std::size_t t) const { return has(graph_.ops()[at(op)].writes, t); }
  bool touches(int op, std::size_t t) const { return reads(op, t) || writes(op, t); }
  static bool has(const std::vector<TensorId>& list, std::size_t t) {
    return std::find(list.begin(), list.end(), TensorId(t)) != list.end();
  }
  int first_access(std::size_t t) const {
    for (int op = 0; op < op_count(); ++op)
      if (touches(op, t)) return op;
    return -1;
  }
  int last_access(std::size_t t) const {
    for (int op = op_count() - 1; op >= 0; --op)
      if (touches(op, t)) return op;
    return -1;
  }

  State start() const {
    State s;
    s.ops.assign(graph_.ops().size(), kWaiting);
    s.steps.assign(steps_.size(), kWaiting);
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
      const Tensor& tensor = graph_.tensors()[t];
      Byte b;
      const bool pool = tensor.initial == Tier::kPool || has(plan_.initial_pool, t);
      if (tensor.persistent && pool) b.allocated = b.valid = 1;
      if (tensor.persistent && !pool) b.taken = b.resident = 1;
      s.bytes.emplace_back(at(static_cast<int>(tensor.bytes.value)), b);
    }
    for (bool pool : {false, true})
      if (used(s, pool) > (pool ? pool_ : hbm_)) throw Broken{"the start does not fit"};
    settle(s);
    return s;
  }

  void judge_lifetimes() const {
    for (const Step& step : steps_) {
      const std::size_t t = tensor(step);
      if (graph_.tensors()[t].persistent) continue;
      const bool input = graph_.tensors()[t].kind == TensorKind::kInput;
      if (step.stands >= last_access(t) || (!input && step.stands < first_access(t)))
        throw Broken{"unborn or dead: " + words(step)};
    }
  }

  std::int64_t used(const State& s, bool pool) const {
    std::int64_t sum = 0;
    for (const auto& tensor : s.bytes)
      for (const Byte& b : tensor) sum += pool ? b.allocated : b.taken;
    for (int op = 0; op < op_count(); ++op)
      if (s.ops[at(op)] == kRunning && (graph_.ops()[at(op)].memory == Tier::kPool) == pool)
        sum += graph_.ops()[at(op)].workspace.value;
    return sum;
  }

  bool op_done(const State& s, int iteration, int op) const {
    return iteration < s.iteration || (iteration == s.iteration && s.ops[at(op)] == kDone);
  }

  bool ready(const State& s, std::size_t index) const {
    const Step& step = steps_[index];
    const std::size_t t = tensor(step);
    if (step.iteration > s.iteration) return false;
    const OpId after = action(step).after_op;
    if (!after.is_none() && !op_done(s, step.iteration, after.value)) return false;
    if (graph_.is_input(TensorId(t)) && step.iteration == s.iteration && !s.inputs_taken) return false;
    for (std::size_t i = 0; i < index; ++i)
      if (tensor(steps_[i]) == t && s.steps[i] != kDone) return false;
    for (int op = 0; op <= step.stands; ++op) {
      const bool conflict = action(step).kind == ActionKind::kDetach ? touches(op, t) : writes(op, t);
      if (conflict && !op_done(s, step.iteration, op)) return false;
    }
    return true;
  }

  // Detaches, deaths and the next iteration, until nothing more happens by itself.
  void settle(State& s) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < steps_.size(); ++i)
        if (s.steps[i] == kWaiting && action(steps_[i]).kind == ActionKind::kDetach && ready(s, i)) {
          detach(s, steps_[i]);
          s.steps[i] = kDone;
          moved = true;
        }
      for (std::size_t t = 0; t < graph_.tensors().size(); ++t) moved |= die(s, t);
      if (std::count(s.ops.begin(), s.ops.end(), kDone) == op_count() && s.iteration + 1 < iterations_) {
        ++s.iteration;
        s.inputs_taken = false;
        s.ops.assign(graph_.ops().size(), kWaiting);
        moved = true;
      }
    }
  }

  bool die(State& s, std::size_t t) const {
    if (graph_.tensors()[t].persistent || last_access(t) < 0) return false;
    for (int op = 0; op < op_count(); ++op)
      if (touches(op, t) && s.ops[at(op)] != kDone) return false;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (tensor(steps_[i]) == t && steps_[i].iteration <= s.iteration && s.steps[i] != kDone) return false;
    bool moved = false;
    for (Byte& b : s.bytes[t]) {
      if (b.stored) throw Broken{"dies stored but undetached: " + graph_.tensors()[t].name};
      moved |= b.taken || b.allocated;
      b = Byte{};
    }
    return moved;
  }

  void detach(State& s, const Step& step) const {
    for (Byte& b : range(s, step)) {
      if (!b.resident) throw Broken{"not resident: " + words(step)};
      if (!b.valid) throw Broken{"last copy: " + words(step)};
      if (b.unread) throw Broken{"unaccessed: " + words(step)};
      b.taken = b.resident = b.stored = 0;
    }
  }

  std::span<Byte> range(State& s, const Step& step) const {
    auto& bytes = s.bytes[tensor(step)];
    return std::span(bytes).subspan(at(static_cast<int>(action(step).from.value)),
                                    at(static_cast<int>(action(step).bytes().value)));
  }

  bool start_transfer(State& s, std::size_t index) const {
    const Step& step = steps_[index];
    const bool load = action(step).kind == ActionKind::kPrefetch;
    if (!ready(s, index)) return false;
    std::int64_t need = 0;
    for (Byte& b : range(s, step)) {
      if (load && b.taken) throw Broken{"resident: " + words(step)};
      if (load && !b.valid) throw Broken{"no valid copy: " + words(step)};
      if (!load && !b.resident) throw Broken{"not resident: " + words(step)};
      if (!load && b.valid) throw Broken{"valid already: " + words(step)};
      need += load || !b.allocated;
    }
    if (used(s, !load) + need > (load ? hbm_ : pool_)) return false;
    for (Byte& b : range(s, step)) (load ? b.taken : b.allocated) = 1;
    s.steps[index] = kRunning;
    return true;
  }

  void end_transfer(State& s, std::size_t index) const {
    for (Byte& b : range(s, steps_[index])) {
      if (action(steps_[index]).kind == ActionKind::kPrefetch)
        b.resident = b.unread = 1;
      else
        b.valid = b.stored = 1;
    }
    s.steps[index] = kDone;
  }

  bool depends(int later, int earlier) const {
    const Op& a = graph_.ops()[at(earlier)];
    const Op& b = graph_.ops()[at(later)];
    if (a.engine == b.engine) return true;
    if (std::find(b.after.begin(), b.after.end(), OpId(earlier)) != b.after.end()) return true;
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t)
      if ((writes(earlier, t) && touches(later, t)) || (touches(earlier, t) && writes(later, t))) return true;
    return false;
  }

  bool start_op(State& s, int op) const {
    const Op& o = graph_.ops()[at(op)];
    const bool pool = o.memory == Tier::kPool;
    if (!s.inputs_taken) return false;
    for (int earlier = 0; earlier < op; ++earlier)
      if (depends(op, earlier) && s.ops[at(earlier)] != kDone) return false;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (!touches(op, tensor(step)) || s.steps[i] == kDone) continue;
      if (step.iteration > s.iteration || (step.iteration == s.iteration && step.stands >= op)) continue;
      if (action(step).kind != ActionKind::kStore || pool || writes(op, tensor(step))) return false;
    }
    std::int64_t need = o.workspace.value;
    for (std::size_t t = 0; t < s.bytes.size(); ++t)
      for (const Byte& b : s.bytes[t]) {
        if (reads(op, t) && !(pool ? b.valid : b.resident)) return false;
        if (pool && writes(op, t) && b.taken)
          throw Broken{"written in the pool while in HBM: " + graph_.tensors()[t].name};
        if (writes(op, t)) need += pool ? !b.allocated : !b.taken;
      }
    if (used(s, pool) + need > (pool ? pool_ : hbm_)) return false;
    s.ops[at(op)] = kRunning;
    for (std::size_t t = 0; t < s.bytes.size(); ++t)
      for (Byte& b : s.bytes[t]) {
        if (writes(op, t)) (pool ? b.allocated : b.taken) = 1;
        if (writes(op, t) && !pool) b.resident = 1;
        if (touches(op, t)) b.unread = 0;
      }
    return true;
  }

  void end_op(State& s, int op) const {
    const bool pool = graph_.ops()[at(op)].memory == Tier::kPool;
    for (std::size_t t = 0; t < s.bytes.size(); ++t)
      for (Byte& b : s.bytes[t]) {
        if (writes(op, t)) b.valid = pool;
        if (pool && reads(op, t)) b.stored = 0;
      }
    s.ops[at(op)] = kDone;
  }

  bool take_inputs(State& s) const {
    if (s.inputs_taken) return false;
    std::int64_t need = 0;
    for (std::size_t t = 0; t < s.bytes.size(); ++t)
      if (graph_.is_input(TensorId(t))) need += static_cast<std::int64_t>(s.bytes[t].size());
    if (used(s, false) + need > hbm_) return false;
    for (std::size_t t = 0; t < s.bytes.size(); ++t)
      if (graph_.is_input(TensorId(t)))
        for (Byte& b : s.bytes[t]) b.taken = b.resident = 1;
    s.inputs_taken = true;
    return true;
  }

  // The head of a direction's queue; steps_ is in queue order.
  std::size_t head(const State& s, bool load) const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const ActionKind kind = action(steps_[i]).kind;
      if (kind == (load ? ActionKind::kPrefetch : ActionKind::kStore) && s.steps[i] != kDone) return i;
    }
    return steps_.size();
  }

  std::vector<State> successors(const State& now) const {
    std::vector<State> next;
    const auto add = [&](State s) {
      settle(s);
      next.push_back(std::move(s));
    };
    if (State s = now; take_inputs(s)) add(std::move(s));
    for (int op = 0; op < op_count(); ++op) {
      State s = now;
      if (now.ops[at(op)] == kRunning) {
        end_op(s, op);
        add(std::move(s));
      } else if (now.ops[at(op)] == kWaiting && start_op(s, op)) {
        add(std::move(s));
      }
    }
    for (bool load : {false, true}) {
      const std::size_t i = head(now, load);
      if (i == steps_.size()) continue;
      State s = now;
      if (now.steps[i] == kRunning) {
        end_transfer(s, i);
        add(std::move(s));
      } else if (start_transfer(s, i)) {
        add(std::move(s));
      }
    }
    return next;
  }

  bool finished(const State& s) const {
    return s.iteration + 1 == iterations_ && std::count(s.ops.begin(), s.ops.end(), kDone) == op_count();
  }
  std::string where(const State& s) const {
    const auto op =
        std::find_if(s.ops.begin(), s.ops.end(), [](char c) { return c != kDone; }) - s.ops.begin();
    return fmt::format("iteration {}, {} with {} B of HBM and {} B of pool taken", s.iteration + 1,
                       s.inputs_taken ? graph_.ops()[static_cast<std::size_t>(op)].name : "inputs",
                       used(s, false), used(s, true));
  }
  std::string words(const Step& step) const {
    return fmt::format("actions[{}] ({} of {}) in iteration {}", step.action, to_string(action(step).kind),
                       graph_.tensor(action(step).tensor).name, step.iteration + 1);
  }

  const Graph& graph_;
  const Plan& plan_;
  const std::int64_t hbm_, pool_;
  const int iterations_;
  std::vector<Step> steps_;
};

}  // namespace

Opinion explore(const Graph& graph, const Plan& plan, const CheckLimits& limits, int iterations) {
  constexpr std::int64_t kRoomForAll = 1'000'000;
  const Opinion rules = Explorer(graph, plan, kRoomForAll, kRoomForAll, iterations).run();
  if (!rules.yes) return rules;
  return Explorer(graph, plan, limits.hbm.value, limits.pool.value, iterations).run();
}

}  // namespace hyperoffload
