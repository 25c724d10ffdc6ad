#include "planner/cost/walk.h"

#include <algorithm>
#include <climits>
#include <limits>

#include "planner/cost/fair_share.h"
#include "planner/cost/plan_index.h"
#include "planner/cost/tensor_progress.h"
#include "planner/cost/transfer_queue.h"
#include "planner/cost/walk_memory.h"

namespace hyperoffload {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Engine {
  std::size_t next = 0;  // place of the op that runs or is to run
  bool running = false;
  bool deps_done = false, gates_done = false, waited = false;
  double compute_end = 0;
  OpWalk op;
};

// What an iteration starts in, for finding that two are alike.
struct BoundaryState {
  QueueState queues[2];
  std::int64_t hbm = 0, pool = 0;
};

class Walker {
 public:
  Walker(const FlatGraph& graph, const Plan& plan, const WalkOptions& options)
      : graph_(graph),
        plan_(plan),
        options_(options),
        index_(graph, plan),
        memory_(graph, plan, index_.starts_in_pool, options.watch),
        share_(graph.machine.hbm_bandwidth, graph.engines + 2),
        engines_(graph.engines),
        queues_{TransferQueue(index_.loads, plan, graph.engines, graph.machine.read_bandwidth,
                              graph.machine.read_latency),
                TransferQueue(index_.stores, plan, graph.engines + 1, graph.machine.write_bandwidth,
                              graph.machine.write_latency)},
        progress_(graph, plan, index_, options.iterations) {}

  Walk run();

 private:
  // --- conditions
  bool op_done(int op) const {
    return static_cast<std::size_t>(graph_.place(op)) < engines_[graph_.engine(op)].next;
  }
  bool instant(double time) const { return time <= now_ + 1e-12 + 1e-15 * now_; }
  bool action_ready(int action, int iteration) const;
  void tell_taken(int op = -1) const {
    if (options_.on_take && iteration_ == options_.iterations - 1) options_.on_take(op, memory_);
  }
  bool recording(int iteration) const {
    return options_.record == WalkRecord::kEverything ||
           (options_.record == WalkRecord::kLastIteration && iteration == options_.iterations - 1);
  }

  // --- what happens
  void begin_iteration(int iteration);
  void jump_if_steady();
  bool take_inputs();
  bool start_op(Engine& engine, int e);
  void end_op(Engine& engine);
  bool start_transfer(TransferQueue& queue);
  void end_transfer(TransferQueue& queue);
  void detach_ready(int tensor);
  void die_if_over(int tensor);
  void start_all();
  bool start_something();
  double next_event() const;
  void end_due();
  void report_stuck();

  const FlatGraph& graph_;
  const Plan& plan_;
  const WalkOptions& options_;
  const PlanIndex index_;
  WalkMemory memory_;
  FairShare share_;
  std::vector<Engine> engines_;
  TransferQueue queues_[2];
  TensorProgress progress_;
  std::vector<std::pair<int, int>> heads_;  // (op, engine) of idle engines, in program order
  double now_ = 0, previous_start_ = 0;
  int iteration_ = 0, ops_done_ = 0;
  bool open_ = false, over_ = false;
  BoundaryState boundary_;
  Walk walk_;
};

// All it waits for is done, except room. It must be its tensor's next action.
bool Walker::action_ready(int action, int iteration) const {
  if (iteration > iteration_) return false;
  const int tensor = plan_.actions[action].tensor.value;
  if (!progress_.is_next(tensor, action, iteration)) return false;
  if (iteration < iteration_) return true;
  if (!open_ && graph_.graph->is_input(TensorId(tensor))) return false;
  const OpId after = plan_.actions[action].after_op;
  if (!after.is_none() && !op_done(after.value)) return false;
  for (int op : (iteration == 0 ? index_.waits_first : index_.waits_later)[action])
    if (!op_done(op)) return false;
  return true;
}

void Walker::begin_iteration(int iteration) {
  iteration_ = iteration;
  ops_done_ = 0;
  open_ = false;
  for (Engine& engine : engines_) engine = Engine{};
  jump_if_steady();
  if (iteration_ == options_.iterations - 1) walk_.last_start = now_;
  previous_start_ = now_;
  tell_taken();
  for (int a : index_.start_detaches) detach_ready(plan_.actions[a].tensor.value);
}

// Once an iteration starts in the state the one before started in, all that follow are alike.
void Walker::jump_if_steady() {
  const double period = now_ - previous_start_;
  BoundaryState state;
  for (int q = 0; q < 2; ++q) state.queues[q] = queues_[q].state(share_, iteration_, now_);
  state.hbm = memory_.hbm_used();
  state.pool = memory_.pool_used();
  const bool steady = iteration_ >= 2 && state.hbm == boundary_.hbm && state.pool == boundary_.pool &&
                      alike(state.queues[0], boundary_.queues[0], 1e-12 * period) &&
                      alike(state.queues[1], boundary_.queues[1], 1e-12 * period);
  boundary_ = state;
  const int skipped = options_.iterations - 1 - iteration_;
  if (!steady || skipped <= 0 || options_.record == WalkRecord::kEverything || options_.watch) return;
  const double seconds = period * skipped;
  now_ += seconds;
  iteration_ += skipped;
  share_.shift(seconds);
  for (TransferQueue& queue : queues_) queue.skip(skipped, seconds);
  progress_.skip(skipped, seconds);
}

bool Walker::take_inputs() {
  if (open_) return false;
  if (!options_.unlimited) {
    if (graph_.input_bytes > memory_.hbm_free()) return false;
    for (int t : graph_.inputs)
      if (!progress_.all_done_before(t, iteration_)) return false;
    for (int t : graph_.inputs) memory_.take_input(t);
    tell_taken();
  }
  open_ = true;
  for (int a : index_.start_detaches) detach_ready(plan_.actions[a].tensor.value);
  return true;
}

bool Walker::start_op(Engine& engine, int e) {
  const int op = graph_.graph->engine_ops(EngineId(e))[engine.next].value;
  if (!engine.deps_done) {
    for (OpId d : graph_.graph->cross_engine_deps(OpId(op)))
      if (!op_done(d.value)) return false;
    engine.deps_done = true;
    engine.op = {iteration_, op, now_, 0, 0, 0, -1};
  }
  if (!engine.gates_done && !options_.unlimited) {
    for (const Gate& gate : index_.gates[op]) {
      if (progress_.open(gate, iteration_)) continue;
      engine.waited = true;
      return false;
    }
  }
  if (!engine.gates_done) {
    engine.gates_done = true;
    engine.op.resident = now_;
    double latest = -1;
    if (engine.waited)
      for (const Gate& gate : index_.gates[op])
        if (progress_.last_action(gate.tensor) >= 0 && progress_.last_action_end(gate.tensor) > latest) {
          latest = progress_.last_action_end(gate.tensor);
          engine.op.waited_action = progress_.last_action(gate.tensor);
        }
  }
  if (!options_.unlimited) {
    const std::int64_t need = memory_.need(op);
    if (need > 0 && need > (graph_.in_pool[op] ? memory_.pool_free() : memory_.hbm_free())) return false;
    memory_.start_op(op);
    tell_taken(op);
  }
  const OpCost& cost = graph_.cost[op];
  engine.running = true;
  engine.op.start = now_;
  engine.compute_end = now_ + cost.compute.value;
  if (cost.hbm_bytes.value > 0)
    share_.start(e, static_cast<double>(cost.hbm_bytes.value), cost.hbm_rate_cap.value, now_);
  return true;
}

void Walker::end_op(Engine& engine) {
  const int op = engine.op.op;
  engine.op.end = now_;
  if (recording(iteration_)) {
    if (walk_.ops.empty()) walk_.ops.reserve(graph_.ops);
    walk_.ops.push_back(engine.op);
  }
  engine.running = engine.deps_done = engine.gates_done = engine.waited = false;
  ++engine.next;
  if (!options_.unlimited) {
    memory_.end_op(op);
    for (const FlatAccess& access : graph_.accesses(op)) {
      if (graph_.persistent[access.tensor]) continue;
      progress_.count_access(access.tensor);
      die_if_over(access.tensor);
    }
    for (int a : index_.detaches[op]) detach_ready(plan_.actions[a].tensor.value);
  }
  if (++ops_done_ < graph_.ops) return;
  const double time = now_ - previous_start_;
  if (iteration_ == 0) walk_.first_iteration = time;
  if (iteration_ + 1 < options_.iterations) return begin_iteration(iteration_ + 1);
  walk_.last_iteration = time;
  walk_.total = now_;
  over_ = true;
  if (options_.record == WalkRecord::kNothing) return;
  for (TransferQueue& queue : queues_) {  // under way at the end: nothing waits for them
    if (!queue.busy) continue;
    const bool empty = plan_.actions[queue.transfer.action].bytes() == Bytes(0);
    const bool just_over = queue.flowing ? instant(share_.end(queue.slot)) : empty && instant(queue.transfer.flow_start);
    queue.transfer.end = just_over ? now_ : std::numeric_limits<double>::infinity();
    walk_.transfers.push_back(queue.transfer);
  }
}

bool Walker::start_transfer(TransferQueue& queue) {
  if (queue.busy) return false;
  if (!queue.queued) queue.settle(plan_, options_.iterations);
  if (queue.exhausted()) return false;
  const int a = queue.head();
  const Action& action = plan_.actions[a];
  if (!queue.queued) {
    if (!action_ready(a, queue.iteration)) return false;
    queue.queued = true;
    queue.transfer = {queue.iteration, a, now_, 0, 0, 0};
  }
  const bool load = action.kind == ActionKind::kPrefetch;
  if (memory_.need(action) > (load ? memory_.hbm_free() : memory_.pool_free())) return false;
  memory_.start_transfer(action);
  tell_taken();
  queue.busy = true;
  queue.flowing = false;
  queue.transfer.start = now_;
  queue.transfer.flow_start = now_ + queue.latency;
  return true;
}

void Walker::end_transfer(TransferQueue& queue) {
  queue.transfer.end = now_;
  const int from = options_.record == WalkRecord::kLastIteration ? options_.iterations - 2 : 0;
  if (options_.record != WalkRecord::kNothing && queue.transfer.iteration >= from)
    walk_.transfers.push_back(queue.transfer);
  queue.busy = queue.queued = queue.flowing = false;
  ++queue.next;
  const int tensor = plan_.actions[queue.transfer.action].tensor.value;
  progress_.finish(tensor, queue.transfer.action, now_);
  detach_ready(tensor);
  if (!graph_.persistent[tensor]) die_if_over(tensor);
}

void Walker::detach_ready(int tensor) {
  while (progress_.next_iteration(tensor) <= iteration_) {
    const int a = progress_.next_action(tensor);
    if (plan_.actions[a].kind != ActionKind::kDetach || !action_ready(a, progress_.next_iteration(tensor))) return;
    memory_.detach(plan_.actions[a]);
    progress_.finish(tensor, a, now_);
    if (!graph_.persistent[tensor]) die_if_over(tensor);
  }
}

void Walker::die_if_over(int tensor) {
  if (!progress_.life_over(tensor)) return;
  memory_.die(tensor);
  progress_.begin_life(tensor);
}

// Starts one thing that can start now; ends at once what takes no time, so that what it frees comes
// before the next take. False: nothing can.
bool Walker::start_something() {
  if (take_inputs()) return true;
  if (open_) {
    heads_.clear();
    for (int e = 0; e < graph_.engines; ++e) {
      const auto& list = graph_.graph->engine_ops(EngineId(e));
      if (!engines_[e].running && engines_[e].next < list.size())
        heads_.emplace_back(list[engines_[e].next].value, e);
    }
    if (heads_.size() > 1) std::sort(heads_.begin(), heads_.end());
    for (const auto& [op, e] : heads_)
      if (start_op(engines_[e], e)) return true;
  }
  if (options_.unlimited) return false;
  for (TransferQueue& queue : queues_)
    if (start_transfer(queue)) return true;
  return false;
}

void Walker::start_all() {
  while (!over_ && start_something()) end_due();
}

double Walker::next_event() const {
  double next = kNever;
  for (int e = 0; e < graph_.engines; ++e)
    if (engines_[e].running)
      next = std::min(next, share_.active(e) ? share_.end(e) : engines_[e].compute_end);
  for (const TransferQueue& queue : queues_)
    if (queue.busy) next = std::min(next, queue.next_event(share_));
  return next;
}

// Ends whatever ends in this instant.
void Walker::end_due() {
  for (int e = 0; e < graph_.engines && !over_; ++e) {
    Engine& engine = engines_[e];
    if (!engine.running) continue;
    if (share_.active(e) && instant(share_.end(e))) share_.stop(e, now_);
    if (!share_.active(e) && instant(engine.compute_end)) end_op(engine);
  }
  for (TransferQueue& queue : queues_) {
    if (!queue.busy || over_) continue;
    const Bytes bytes = plan_.actions[queue.transfer.action].bytes();
    if (!queue.flowing && instant(queue.transfer.flow_start)) {
      queue.flowing = true;
      if (bytes.value > 0) share_.start(queue.slot, static_cast<double>(bytes.value), queue.bandwidth, now_);
    }
    if (!queue.flowing) continue;
    if (share_.active(queue.slot) && instant(share_.end(queue.slot))) share_.stop(queue.slot, now_);
    if (!share_.active(queue.slot)) end_transfer(queue);
  }
}

void Walker::report_stuck() {
  WalkStuck stuck;
  stuck.iteration = iteration_;
  if (!open_) {
    stuck.short_bytes = graph_.input_bytes - memory_.hbm_free();
  } else {
    int op = INT_MAX;
    for (int e = 0; e < graph_.engines; ++e) {
      const auto& list = graph_.graph->engine_ops(EngineId(e));
      if (engines_[e].next < list.size()) op = std::min(op, list[engines_[e].next].value);
    }
    stuck.op = op;
    stuck.short_bytes = memory_.need(op) - (graph_.in_pool[op] ? memory_.pool_free() : memory_.hbm_free());
  }
  walk_.stuck = stuck;
}

Walk Walker::run() {
  if (!options_.unlimited && (memory_.hbm_free() < 0 || memory_.pool_free() < 0)) {
    walk_.stuck = WalkStuck{0, -1, -std::min(memory_.hbm_free(), memory_.pool_free())};
    return std::move(walk_);
  }
  begin_iteration(0);
  for (start_all(); !over_; start_all()) {
    const double next = next_event();
    if (next == kNever) {
      report_stuck();
      break;
    }
    now_ = std::max(now_, next);
    end_due();
  }
  walk_.hbm_peak = memory_.hbm_peak();
  walk_.pool_peak = memory_.pool_peak();
  return std::move(walk_);
}

}  // namespace

Walk walk_plan(const FlatGraph& graph, const Plan& plan, const WalkOptions& options) {
  return Walker(graph, plan, options).run();
}

}  // namespace hyperoffload
