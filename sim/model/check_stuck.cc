#include "sim/model/check_stuck.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

#include "sim/model/check.h"
#include "sim/model/check_pieces.h"
#include "sim/model/later_ops.h"

namespace hyperoffload {
namespace {

enum Direction : std::size_t { kLoad, kStore };

struct Memory {
  const char* name;
  WideBytes capacity = 0;
  WideBytes used = 0;
  std::vector<Bytes> held;   // of it, per tensor (workspace is nobody's)
  std::vector<Bytes> whole;  // what a tensor takes there, per tensor

  WideBytes free() const { return capacity - used; }
  void take(TensorId t, Bytes bytes) {
    held[t.index()] += bytes;
    used += bytes.value;
  }
  void give_back(TensorId t, Bytes bytes) {
    held[t.index()] -= bytes;
    used -= bytes.value;
  }
};

// An action in the body of one iteration.
struct Issued {
  int action = -1;  // -1: none
  int iteration = 0;
};

// A queue runs through the bodies of all iterations.
struct Queue {
  int iteration = 0;
  std::size_t next = 0;
  std::int64_t started = 0;
};

// A tensor's actions are one sequence through all iterations; these count its front.
struct Sequence {
  std::int64_t stood = 0;  // actions that program order has reached
  std::int64_t moved = 0;  // of those, up to and including the last prefetch or detach
  std::int64_t done = 0;
  bool dying = false;  // its last access is done, its earlier actions are not
};

class StuckReplay {
 public:
  StuckReplay(const Graph& graph, const Plan& plan, const CheckLimits& limits, const PlanBody& first,
              const PlanBody& later, const std::vector<BodyTakes>& bodies, Residency* watch,
              const AddressCheck* addresses);
  std::optional<Violation> run(int iterations);

 private:
  std::optional<Violation> iterate();
  std::optional<Violation> take_inputs();
  std::optional<Violation> run_op(OpId op);
  std::optional<Violation> address_fault(OpId step) const;
  void end_op(OpId op);
  void update_charges();
  void reach_start(bool inputs);
  void reach(int action);
  void settle(TensorId t);
  void pump();
  bool start_head(Direction direction);
  Issued head(Direction direction);
  WideBytes needs(Direction direction, Issued transfer) const;
  TensorId waits_for(OpId op) const;

  Violation stuck(OpId step, TensorId tensor, const std::string& who, const std::string& why) const;
  Violation stuck_behind(OpId step, TensorId tensor, const std::string& who);
  std::string room_words(const Memory& memory, WideBytes own, WideBytes charge) const;
  std::string head_words(Direction direction, int depth);
  std::string named(Issued transfer) const;

  const PlanBody& body(int iteration) const { return iteration == 0 ? first_ : later_; }
  const std::vector<int>& queue(Direction d, int iteration) const {
    return d == kLoad ? body(iteration).loads : body(iteration).stores;
  }
  std::size_t takes_index(int iteration) const {
    return std::min(static_cast<std::size_t>(iteration), bodies_.size() - 1);
  }
  const BodyTakes& takes(int iteration) const { return bodies_[takes_index(iteration)]; }
  const Action& action(int index) const { return plan_.actions[static_cast<std::size_t>(index)]; }
  Memory& filled_by(Direction d) { return d == kLoad ? hbm_ : pool_; }
  Memory& memory_of(OpId op) { return graph_.op(op).memory == Tier::kHbm ? hbm_ : pool_; }
  Direction direction_of(int index) const {
    return action(index).kind == ActionKind::kPrefetch ? kLoad : kStore;
  }

  // The place of an action in its tensor's sequence, and what stands at a place.
  std::int64_t before_iteration(TensorId t, int iteration) const {
    if (iteration == 0) return 0;
    return static_cast<std::int64_t>(first_.of_tensor(t).size()) +
           (iteration - 1) * static_cast<std::int64_t>(later_.of_tensor(t).size());
  }
  std::int64_t place(Issued a) const {
    return before_iteration(action(a.action).tensor, a.iteration) +
           body(a.iteration).rank[static_cast<std::size_t>(a.action)];
  }
  Issued at_place(TensorId t, std::int64_t place) const {
    const auto first = static_cast<std::int64_t>(first_.of_tensor(t).size());
    if (place < first) return {first_.of_tensor(t)[static_cast<std::size_t>(place)], 0};
    const auto later = static_cast<std::int64_t>(later_.of_tensor(t).size());
    return {later_.of_tensor(t)[static_cast<std::size_t>((place - first) % later)],
            1 + static_cast<int>((place - first) / later)};
  }

  const Graph& graph_;
  const Plan& plan_;
  const PlanBody& first_;
  const PlanBody& later_;
  const std::vector<BodyTakes>& bodies_;
  const Allocation allocation_;
  Residency* const watch_;               // or null
  const AddressCheck* const addresses_;  // or null
  const LaterOps later_ops_;
  Charges charges_;
  std::size_t charges_of_ = SIZE_MAX;  // the index in bodies_ they are made for
  std::vector<TensorId> inputs_;
  int iteration_ = 0;
  Memory hbm_{"HBM", 0, 0, {}, {}}, pool_{"pool", 0, 0, {}, {}};
  std::vector<Sequence> sequences_;  // per tensor
  std::array<Queue, 2> queues_;      // by direction
};

StuckReplay::StuckReplay(const Graph& graph, const Plan& plan, const CheckLimits& limits,
                         const PlanBody& first, const PlanBody& later, const std::vector<BodyTakes>& bodies,
                         Residency* watch, const AddressCheck* addresses)
    : graph_(graph),
      plan_(plan),
      first_(first),
      later_(later),
      bodies_(bodies),
      allocation_(limits.allocation),
      watch_(watch),
      addresses_(addresses),
      later_ops_(graph),
      sequences_(graph.tensors().size()) {
  hbm_.capacity = plan.room_of(limits.hbm).value;
  pool_.capacity = limits.pool.value;
  hbm_.held.resize(sequences_.size());
  pool_.held.resize(sequences_.size());
  for (const Tensor& tensor : graph.tensors()) hbm_.whole.push_back(tensor.bytes);
  pool_.whole = Pieces(graph, plan).allocated(limits.allocation);
  const std::vector<bool> in_pool = starts_in_pool(graph, plan);
  for (std::size_t t = 0; t < sequences_.size(); ++t) {
    Memory& start = in_pool[t] ? pool_ : hbm_;
    if (graph.tensors()[t].persistent) start.take(TensorId(t), start.whole[t]);
    if (graph.is_input(TensorId(t))) inputs_.push_back(TensorId(t));
  }
  if (watch_) watch_->begin();
}

// Once every iteration is like the last, one that ends as an earlier one did proves all that follow:
// with the same number of transfers waiting, the same ones wait, and the rest follows from program order.
std::optional<Violation> StuckReplay::run(int iterations) {
  using State = std::tuple<WideBytes, WideBytes, std::int64_t, std::int64_t>;
  std::vector<State> ended;
  std::array<std::int64_t, 2> issued{};
  for (iteration_ = 0; iteration_ < iterations; ++iteration_) {
    if (auto violation = iterate()) return violation;
    for (Direction d : {kLoad, kStore}) issued[d] += static_cast<std::int64_t>(queue(d, iteration_).size());
    if (iteration_ < 2 || takes_index(iteration_) + 1 < bodies_.size()) continue;
    const State state{hbm_.used, pool_.used, issued[kLoad] - queues_[kLoad].started,
                      issued[kStore] - queues_[kStore].started};
    if (std::find(ended.begin(), ended.end(), state) != ended.end()) break;
    ended.push_back(state);
  }
  return std::nullopt;
}

std::optional<Violation> StuckReplay::iterate() {
  update_charges();
  if (auto violation = address_fault(OpId::none())) return violation;
  reach_start(false);
  pump();
  if (auto violation = take_inputs()) return violation;
  reach_start(true);
  for (std::size_t i = 0; i < graph_.ops().size(); ++i)
    if (auto violation = run_op(OpId(i))) return violation;
  pump();
  return address_fault(OpId(graph_.ops().size() - 1));
}

void StuckReplay::update_charges() {
  if (graph_.engines().size() < 2 || charges_of_ == takes_index(iteration_)) return;
  charges_of_ = takes_index(iteration_);
  std::vector<WideBytes> prefetches(graph_.ops().size());
  for (int index : body(iteration_).loads)
    if (!action(index).after_op.is_none())
      prefetches[action(index).after_op.index()] += action(index).bytes().value;
  charges_ = later_ops_.charges(takes(iteration_).op, prefetches);
}

// Actions on an input wait for its bytes.
void StuckReplay::reach_start(bool inputs) {
  for (int index : body(iteration_).behind_op(OpId::none()))
    if (graph_.is_input(action(index).tensor) == inputs) reach(index);
}

void StuckReplay::reach(int index) {
  const TensorId t = action(index).tensor;
  Sequence& sequence = sequences_[t.index()];
  ++sequence.stood;
  if (action(index).kind != ActionKind::kStore) sequence.moved = sequence.stood;
  settle(t);
}

// Lets happen what takes no place in a queue: detaches that are next.
void StuckReplay::settle(TensorId t) {
  Sequence& sequence = sequences_[t.index()];
  for (; sequence.done < sequence.stood; ++sequence.done) {
    const Action& next = action(at_place(t, sequence.done).action);
    if (next.kind != ActionKind::kDetach) return;
    hbm_.give_back(t, next.bytes());
    if (watch_) watch_->detach(next);
  }
}

// The directions fill different tiers and free none but by what follows, so their order is all one.
void StuckReplay::pump() {
  while (start_head(kLoad) || start_head(kStore)) {
  }
}

Issued StuckReplay::head(Direction direction) {
  Queue& q = queues_[direction];
  for (; q.iteration <= iteration_; ++q.iteration, q.next = 0)
    if (q.next < queue(direction, q.iteration).size())
      return {queue(direction, q.iteration)[q.next], q.iteration};
  return {};
}

bool StuckReplay::start_head(Direction direction) {
  const Issued transfer = head(direction);
  if (transfer.action < 0) return false;
  const TensorId t = action(transfer.action).tensor;
  Sequence& sequence = sequences_[t.index()];
  if (sequence.done != place(transfer) || sequence.done >= sequence.stood) return false;
  const WideBytes bytes = needs(direction, transfer);
  if (bytes > filled_by(direction).free()) return false;
  filled_by(direction).take(t, Bytes(static_cast<std::int64_t>(bytes)));
  if (watch_ && direction == kLoad) watch_->prefetch(transfer.action);
  ++sequence.done;
  ++queues_[direction].next;
  ++queues_[direction].started;
  settle(t);
  return true;
}

WideBytes StuckReplay::needs(Direction direction, Issued transfer) const {
  return direction == kLoad
             ? action(transfer.action).bytes().value
             : takes(transfer.iteration).store[static_cast<std::size_t>(transfer.action)].value;
}

std::optional<Violation> StuckReplay::take_inputs() {
  WideBytes own = 0;
  for (TensorId t : inputs_) own += graph_.tensor(t).bytes.value;
  if (own > hbm_.free()) return stuck(OpId::none(), inputs_.front(), "the inputs", room_words(hbm_, own, 0));
  for (TensorId t : inputs_) {
    hbm_.take(t, graph_.tensor(t).bytes);
    if (watch_) watch_->take_input(t);
  }
  return std::nullopt;
}

// A tensor whose earlier actions keep the op from starting; none if nothing does.
TensorId StuckReplay::waits_for(OpId id) const {
  const Op& op = graph_.op(id);
  for (TensorId t : op.reads) {
    const Sequence& s = sequences_[t.index()];
    if (s.done < (op.memory == Tier::kPool ? s.stood : s.moved)) return t;
  }
  for (TensorId t : op.writes)
    if (sequences_[t.index()].done < sequences_[t.index()].stood) return t;
  return TensorId::none();
}

std::optional<Violation> StuckReplay::run_op(OpId op) {
  pump();
  if (const TensorId t = waits_for(op); !t.is_none()) return stuck_behind(op, t, quoted(graph_, op));
  Memory& mine = memory_of(op);
  const WideBytes own = takes(iteration_).op[op.index()];
  for (Memory* memory : {&hbm_, &pool_}) {
    const WideBytes here = memory == &mine ? own : 0;
    const WideBytes charge =
        charges_.hbm.empty() ? 0 : (memory == &hbm_ ? charges_.hbm : charges_.pool)[op.index()];
    if (here + charge > memory->free()) {
      const auto& writes = graph_.op(op).writes;
      return stuck(op, writes.size() == 1 ? writes.front() : TensorId::none(), quoted(graph_, op),
                   room_words(*memory, here, charge));
    }
  }
  WideBytes taken = 0;
  for (TensorId t : graph_.op(op).writes) {
    const Bytes missing = mine.whole[t.index()] - mine.held[t.index()];
    mine.take(t, missing);
    taken += missing.value;
  }
  const Bytes workspace = graph_.op(op).workspace;
  HYPER_CHECK(taken + (&mine == &pool_ ? allocated_bytes(allocation_, workspace) : workspace).value == own,
              "the checker's two passes differ on " + quoted(graph_, op));
  if (watch_) watch_->start_op(op);
  if (auto violation = address_fault(op)) return violation;
  if (watch_) watch_->end_op(op);
  end_op(op);
  return std::nullopt;
}

std::optional<Violation> StuckReplay::address_fault(OpId step) const {
  if (!addresses_ || !addresses_->fault()) return std::nullopt;
  return Violation{"address", iteration_, step, TensorId::none(), -1,
                   fmt::format("{} in program order{}: {}",
                               step.is_none() ? "at the iteration's start" : "by " + quoted(graph_, step),
                               iteration_words(iteration_), *addresses_->fault())};
}

// A death has no action to wait for: every store is followed by a detach or a pool op's read, and both
// the last access and what stands between wait for it.
void StuckReplay::end_op(OpId id) {
  const Op& op = graph_.op(id);
  for (int index : body(iteration_).behind_op(id)) reach(index);
  for (const auto* list : {&op.reads, &op.writes})
    for (TensorId t : *list)
      if (!graph_.tensor(t).persistent && graph_.accesses(t).back().op == id) {
        const Sequence& sequence = sequences_[t.index()];
        HYPER_CHECK(sequence.done == sequence.stood, "an action outlives " + quoted(graph_, t));
        hbm_.give_back(t, hbm_.held[t.index()]);
        pool_.give_back(t, pool_.held[t.index()]);
        if (watch_) watch_->die(t);
      }
}

Violation StuckReplay::stuck(OpId step, TensorId tensor, const std::string& who,
                             const std::string& why) const {
  return {
      "stuck",
      iteration_,
      step,
      tensor,
      -1,
      fmt::format("{} can't start{}, nothing more can move: it {}", who, iteration_words(iteration_), why)};
}

Violation StuckReplay::stuck_behind(OpId step, TensorId tensor, const std::string& who) {
  const Issued awaited = at_place(tensor, sequences_[tensor.index()].done);
  const Direction direction = direction_of(awaited.action);
  const Issued front = head(direction);
  const bool at_head = front.action == awaited.action && front.iteration == awaited.iteration;
  Violation violation = stuck(step, tensor, who,
                              fmt::format("waits for the {}, {}", named(awaited),
                                          at_head ? "which " + head_words(direction, 0)
                                                  : fmt::format("queued behind the {}, which {}",
                                                                named(front), head_words(direction, 0))));
  violation.action = awaited.action;
  return violation;
}

std::string StuckReplay::room_words(const Memory& memory, WideBytes own, WideBytes charge) const {
  return fmt::format("needs {} of {}{} but {} of {} are free, {} short; {}", bytes_words(own), memory.name,
                     charge == 0
                         ? ""
                         : fmt::format(", and {} for later ops that don't depend on it and their prefetches,",
                                       bytes_words(charge)),
                     bytes_words(memory.free()), bytes_words(memory.capacity),
                     bytes_words(own + charge - memory.free()), largest_words(graph_, memory.held));
}

// Why the head of a queue can't go, following what it waits for into the other queue.
std::string StuckReplay::head_words(Direction direction, int depth) {
  const Issued transfer = head(direction);
  const TensorId t = action(transfer.action).tensor;
  const Sequence& sequence = sequences_[t.index()];
  const OpId behind = body(transfer.iteration).behind[static_cast<std::size_t>(transfer.action)];
  if (place(transfer) >= sequence.stood)
    return behind.is_none() ? "waits for the inputs"
                            : fmt::format("waits for {}, which comes later", quoted(graph_, behind));
  if (place(transfer) == sequence.done)
    return room_words(filled_by(direction), needs(direction, transfer), 0);
  const Issued earlier = at_place(t, sequence.done);
  const Direction other = direction_of(earlier.action);
  const std::string waits = fmt::format("waits for the {}", named(earlier));
  if (depth >= 2 || other == direction) return waits;
  return fmt::format("{}; the head of that queue is the {}, which {}", waits, named(head(other)),
                     head_words(other, depth + 1));
}

std::string StuckReplay::named(Issued transfer) const {
  const OpId behind = body(transfer.iteration).behind[static_cast<std::size_t>(transfer.action)];
  return action_words(graph_, plan_, transfer.action, behind) +
         (transfer.iteration == iteration_ ? "" : fmt::format(" of iteration {}", transfer.iteration + 1));
}

}  // namespace

std::optional<Violation> find_stuck(const Graph& graph, const Plan& plan, const CheckLimits& limits,
                                    const PlanBody& first, const PlanBody& later,
                                    const std::vector<BodyTakes>& bodies, int iterations, Residency* watch,
                                    const AddressCheck* addresses) {
  return StuckReplay(graph, plan, limits, first, later, bodies, watch, addresses).run(iterations);
}

}  // namespace hyperoffload
