#include "test/support/reference_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "sim/model/check.h"
#include "sim/model/op_cost.h"
#include "test/support/reference_machine.h"
#include "test/support/reference_memory.h"
#include "test/support/reference_order.h"

namespace hyperoffload {
namespace {

using reference::Activity;
using reference::Machine;
using reference::Memory;
using reference::Order;

// One action of one iteration's body.
struct Step {
  int iteration = 0;
  int index = 0;   // into Plan::actions
  int place = -1;  // the op it stands behind; -1: the iteration's start
  bool started = false;
  bool done = false;
};

// By who waits (reader, writer, op in the pool) and by kind of action.
constexpr const char* kWaitsForAction[3][3] = {
    {"reader waits for a prefetch", "reader waits for a store", "reader waits for a detach"},
    {"writer waits for a prefetch", "writer waits for a store", "writer waits for a detach"},
    {"op in the pool waits for a prefetch", "op in the pool waits for a store",
     "op in the pool waits for a detach"}};
constexpr const char* kWaitsForAccess[3] = {"prefetch waits for an access", "store waits for an access",
                                            "detach waits for an access"};

class Replay {
 public:
  Replay(const Graph& graph, const Plan& plan, const Hardware& hardware, int iterations)
      : graph_(graph),
        plan_(plan),
        hardware_(hardware),
        order_(graph, iterations),
        machine_(hardware.hbm_bandwidth.value),
        memory_(graph, plan, hardware) {
    HYPER_CHECK(plan.order.empty(), "the reference replay keeps program order");
    unroll_actions(iterations);
  }

  ReferenceResult run() {
    if (!memory_.place_initial(plan_)) return stuck("what starts in HBM or in the pool exceeds its capacity");
    result_.iteration_start.push_back(0);
    for (;;) {
      end_what_is_over();
      if (order_.finished()) break;
      // What starts may end within this instant, and frees come before the next take: look again.
      if (take_inputs() || start_an_op() || start_transfer(ActionKind::kPrefetch) ||
          start_transfer(ActionKind::kStore))
        continue;
      note_what_waits();
      if (!machine_.advance()) return stuck(describe_waits());
    }
    result_.seen.merge(memory_.seen);
    result_.hbm_peak = memory_.hbm_peak();
    result_.pool_peak = memory_.pool_peak();
    end_transfers_in_flight();
    return std::move(result_);
  }

 private:
  const Action& action(const Step& s) const { return plan_.actions[static_cast<std::size_t>(s.index)]; }
  bool& busy(ActionKind kind) { return kind == ActionKind::kPrefetch ? prefetching_ : storing_; }

  // The bodies of all iterations, one after another, each in file order.
  void unroll_actions(int iterations) {
    for (int k = 0; k < iterations; ++k)
      for (std::size_t i = 0; i < plan_.actions.size(); ++i) {
        const Action& a = plan_.actions[i];
        if (!a.in_iteration(k)) continue;
        Step step{k, static_cast<int>(i), a.after_op.value};
        for (const Step& before : steps_)
          if (before.iteration == k && action(before).tensor == a.tensor)
            step.place = std::max(step.place, before.place);
        steps_.push_back(step);
      }
  }

  // --- ends and what they free ---
  void end_what_is_over() {
    for (bool changed = true; changed;) {
      changed = false;
      while (const auto ended = machine_.take_ended()) {
        ended->is_op ? end_op(result_.ops[static_cast<std::size_t>(ended->index)])
                     : end_transfer(result_.transfers[static_cast<std::size_t>(ended->index)]);
        changed = true;
      }
      for (Step& s : steps_)
        if (!s.done && action(s).kind == ActionKind::kDetach && may_go(s)) {
          memory_.detach(action(s));
          s.done = changed = true;
        }
    }
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t)
      if (memory_.born_in(TensorId(t)) >= 0 && over(TensorId(t))) memory_.bury(TensorId(t));
  }

  void end_op(ReferenceOp& record) {
    record.end = machine_.now();
    memory_.end(record.op);
    if (!order_.end(record.op)) return;
    result_.iteration_end.push_back(machine_.now());
    if (!order_.finished()) result_.iteration_start.push_back(machine_.now());
  }

  void end_transfer(ReferenceTransfer& record) {
    record.end = machine_.now();
    const Action& a = plan_.actions[static_cast<std::size_t>(record.action)];
    for (Step& s : steps_)
      if (s.iteration == record.iteration && s.index == record.action) s.done = true;
    memory_.end(a);
    busy(a.kind) = false;
  }

  // A tensor's life is over when its iteration's accesses and actions are done.
  bool over(TensorId t) {
    const int k = memory_.born_in(t);
    for (const Access& a : graph_.accesses(t))
      if (!order_.ended(k, a.op)) return false;
    for (const Step& s : steps_)
      if (s.iteration == k && action(s).tensor == t && !s.done) {
        saw("death waits for an action", k, t.value);
        return false;
      }
    return true;
  }

  // --- takes ---
  bool take_inputs() {
    const int k = order_.iteration();
    if (inputs_taken_ > k) return false;
    Bytes bytes;
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
      if (!graph_.is_input(TensorId(t))) continue;
      bytes += graph_.tensors()[t].bytes;
      if (memory_.born_in(TensorId(t)) >= 0) {  // the last iteration's still has an action to come
        saw("inputs wait for an earlier action", k);
        return false;
      }
    }
    if (bytes > memory_.hbm_room()) {
      saw("inputs wait for room", k);
      return false;
    }
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t)
      if (graph_.is_input(TensorId(t))) memory_.take_input(TensorId(t), k);
    ++inputs_taken_;
    return true;
  }

  bool start_an_op() {
    if (inputs_taken_ <= order_.iteration()) return false;
    for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
      const OpId o(i);
      const Op& op = graph_.op(o);
      if (!order_.ready(o) || waits_for_actions(o) || !memory_.in_place(op)) continue;
      if (!memory_.fits(op)) {
        saw(op.memory == Tier::kPool ? "op waits for pool room" : "op waits for HBM room", order_.iteration(),
            o.value);
        continue;
      }
      memory_.start(o, order_.iteration());
      order_.start(o);
      const OpCost cost = op_cost(op, hardware_);
      machine_.start({true, static_cast<int>(result_.ops.size()), cost.compute.value,
                      static_cast<long double>(cost.hbm_bytes.value), cost.hbm_rate_cap.value});
      result_.ops.push_back({order_.iteration(), o, machine_.now(), machine_.now()});
      return true;
    }
    return false;
  }

  // Earlier prefetches and detaches of what it accesses; for a writer and in the pool, stores too.
  bool waits_for_actions(OpId o) {
    const Op& op = graph_.op(o);
    const int k = order_.iteration();
    for (const Step& s : steps_) {
      const bool earlier = s.iteration < k || (s.iteration == k && s.place < o.value);
      if (!earlier || s.done) continue;
      const Action& a = action(s);
      const bool reads = std::find(op.reads.begin(), op.reads.end(), a.tensor) != op.reads.end();
      const bool writes = std::find(op.writes.begin(), op.writes.end(), a.tensor) != op.writes.end();
      if (!reads && !writes) continue;
      if (a.kind == ActionKind::kStore && !writes && op.memory == Tier::kHbm) {
        if (s.started) saw("read beside a store", s.iteration, s.index);
        continue;
      }
      const auto who = static_cast<std::size_t>(op.memory == Tier::kPool ? 2 : reads ? 0 : 1);
      saw(kWaitsForAction[who][static_cast<std::size_t>(a.kind)], k, o.value);
      if (s.iteration < k) saw("op waits for an earlier iteration's action", k, o.value);
      return true;
    }
    return false;
  }

  // --- actions ---
  // Its anchor and all it waits for in its tensor's sequence are done.
  bool may_go(const Step& s) {
    const Action& a = action(s);
    if (s.iteration > order_.iteration()) return false;
    if (!a.after_op.is_none() && !order_.ended(s.iteration, a.after_op)) return false;
    if (graph_.is_input(a.tensor) && inputs_taken_ <= s.iteration) return false;
    for (const Step& before : steps_) {
      if (&before == &s) break;
      if (action(before).tensor != a.tensor || before.done) continue;
      saw("action waits for the tensor's previous one", s.iteration, s.index);
      return false;
    }
    for (const Access& access : graph_.accesses(a.tensor)) {
      const bool conflicts = access.writes || a.kind == ActionKind::kDetach;
      if (access.op.value > s.place || !conflicts || order_.ended(s.iteration, access.op)) continue;
      saw(kWaitsForAccess[static_cast<std::size_t>(a.kind)], s.iteration, s.index);
      return false;
    }
    return true;
  }

  Step* head(ActionKind kind) {
    for (Step& s : steps_)
      if (action(s).kind == kind && !s.started) return &s;
    return nullptr;
  }

  bool start_transfer(ActionKind kind) {
    if (busy(kind)) return false;
    Step* s = head(kind);
    if (s == nullptr || !may_go(*s)) return false;
    const Action& a = action(*s);
    if (!memory_.fits(a)) {
      saw(kind == ActionKind::kPrefetch ? "prefetch waits for room" : "store waits for room", s->iteration,
          s->index);
      return false;
    }
    memory_.start(a);
    s->started = busy(kind) = true;
    const bool in = kind == ActionKind::kPrefetch;
    const LinkDirection& link = in ? hardware_.link_read : hardware_.link_write;
    const auto& port = in ? hardware_.pool_read_port : hardware_.pool_write_port;
    const long double latency = link.latency.value;
    const BytesPerSecond cap = std::min(link.bandwidth, port.value_or(link.bandwidth));
    machine_.start({false, static_cast<int>(result_.transfers.size()), latency,
                    static_cast<long double>(a.bytes().value), cap.value});
    result_.transfers.push_back({in ? Direction::kPoolToHbm : Direction::kHbmToPool, s->iteration, s->index,
                                 a.tensor, a.from, a.to, machine_.now(), machine_.now() + latency, 0});
    return true;
  }

  // --- the end ---
  void end_transfers_in_flight() {
    do {
      while (const auto ended = machine_.take_ended())
        result_.transfers[static_cast<std::size_t>(ended->index)].end = machine_.now();
    } while (machine_.advance());
    for (const Step& s : steps_)
      if (action(s).kind != ActionKind::kDetach && !s.started)
        saw("transfer never starts", s.iteration, s.index);
    const long double from = result_.iteration_start.back(), to = result_.iteration_end.back();
    result_.pool_to_hbm = carried_bytes(result_.transfers, Direction::kPoolToHbm, from, to);
    result_.hbm_to_pool = carried_bytes(result_.transfers, Direction::kHbmToPool, from, to);
  }

  ReferenceResult stuck(const std::string& who) {
    result_.stuck = true;
    result_.waiting = who;
    return std::move(result_);
  }

  std::string describe_waits() {
    std::string text = fmt::format("iteration {}: {} B of HBM and {} B of the pool are free",
                                   order_.iteration(), memory_.hbm_room().value, memory_.pool_room().value);
    if (inputs_taken_ <= order_.iteration()) text += "; its inputs wait";
    for (std::size_t i = 0; i < graph_.ops().size(); ++i)
      if (order_.ready(OpId(i)))
        text += fmt::format("; op \"{}\" waits for {}", graph_.ops()[i].name,
                            waits_for_actions(OpId(i))           ? "an action"
                            : !memory_.in_place(graph_.ops()[i]) ? "a tensor"
                                                                 : "room");
    for (const ActionKind kind : {ActionKind::kPrefetch, ActionKind::kStore})
      if (Step* s = head(kind))
        text += fmt::format("; {} of \"{}\" (iteration {}, action {}) waits for {}", to_string(kind),
                            graph_.tensor(action(*s).tensor).name, s->iteration, s->index,
                            may_go(*s) ? "room" : "its anchor, an access or an earlier action");
    return text;
  }

  // --- what mattered, each thing counted once ---
  void saw(const char* what, int iteration, int thing = 0) {
    if (seen_.emplace(what, iteration, thing).second) ++result_.seen[what];
  }

  void note_what_waits() {
    for (std::size_t i = 0; i < graph_.ops().size(); ++i)
      if (order_.held_by_another_engine(OpId(i)))
        saw("op waits for another engine", order_.iteration(), static_cast<int>(i));
    for (const ActionKind kind : {ActionKind::kPrefetch, ActionKind::kStore}) {
      const Step* first = head(kind);
      if (first == nullptr || busy(kind)) continue;
      if (!action(*first).after_op.is_none() && !order_.ended(first->iteration, action(*first).after_op))
        saw("transfer waits for its anchor", first->iteration, first->index);
      for (const Step& s : steps_)
        if (&s != first && !s.started && action(s).kind == kind && may_go(s))
          saw("the queue's head holds up another", s.iteration, s.index);
    }
    std::vector<Activity> sharing = machine_.running();
    share_bandwidth(sharing, hardware_.hbm_bandwidth.value);
    for (const Activity& a : sharing)
      if (a.rate > 0 && a.rate < a.cap)
        saw(a.is_op ? "kernel slowed by HBM" : "copy slowed by HBM", 0, a.index);
  }

  const Graph& graph_;
  const Plan& plan_;
  const Hardware& hardware_;
  Order order_;
  Machine machine_;
  Memory memory_;
  std::vector<Step> steps_;
  int inputs_taken_ = 0;  // iterations whose inputs have got their bytes
  bool prefetching_ = false, storing_ = false;
  ReferenceResult result_;
  std::set<std::tuple<const char*, int, int>> seen_;
};

}  // namespace

ReferenceResult reference_replay(const Graph& graph, const Plan& plan, const Hardware& hardware,
                                 int iterations) {
  return Replay(graph, plan, hardware, iterations).run();
}

ReferenceResult reference_ideal(const Graph& graph, const Hardware& hardware, int iterations) {
  ReferenceResult result;
  Order order(graph, iterations);
  Machine machine(hardware.hbm_bandwidth.value);
  result.iteration_start.push_back(0);
  for (;;) {
    while (const auto ended = machine.take_ended()) {
      ReferenceOp& record = result.ops[static_cast<std::size_t>(ended->index)];
      record.end = machine.now();
      if (!order.end(record.op)) continue;
      result.iteration_end.push_back(machine.now());
      if (order.finished()) return result;
      result.iteration_start.push_back(machine.now());
    }
    bool started = false;
    for (std::size_t i = 0; i < graph.ops().size() && !started; ++i) {
      if (!order.ready(OpId(i))) continue;
      order.start(OpId(i));
      started = true;
      const OpCost cost = op_cost(graph.ops()[i], hardware);
      machine.start({true, static_cast<int>(result.ops.size()), cost.compute.value,
                     static_cast<long double>(cost.hbm_bytes.value), cost.hbm_rate_cap.value});
      result.ops.push_back({order.iteration(), OpId(i), machine.now(), machine.now()});
    }
    if (!started) HYPER_CHECK(machine.advance(), "the ideal run can't get stuck");
  }
}

Bytes carried_bytes(const std::vector<ReferenceTransfer>& transfers, Direction direction, long double from,
                    long double to) {
  long double sum = 0;
  for (const ReferenceTransfer& t : transfers) {
    const long double overlap = std::min(t.end, to) - std::max(t.flow_start, from);
    if (t.direction != direction || overlap <= 0 || t.end <= t.flow_start) continue;
    sum += static_cast<long double>((t.to - t.from).value) * (overlap / (t.end - t.flow_start));
  }
  return Bytes(static_cast<std::int64_t>(std::llroundl(sum)));
}

}  // namespace hyperoffload
