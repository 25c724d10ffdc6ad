#include "sim/policy/on_demand.h"

#include <algorithm>

#include "sim/policy/first_use.h"

namespace hyperoffload {
namespace {

bool accesses(const Op& op, TensorId t) {
  return std::binary_search(op.reads.begin(), op.reads.end(), t) ||
         std::binary_search(op.writes.begin(), op.writes.end(), t);
}

// Bytes an op in HBM takes at its start: births, missing bytes of what it writes without reading, workspace.
Bytes room_needed(const Op& op, const Memory& memory) {
  Bytes need = op.workspace;
  for (TensorId t : op.writes)
    if (!std::binary_search(op.reads.begin(), op.reads.end(), t)) need += memory.absent_bytes(t);
  return need;
}

}  // namespace

std::vector<TensorId> OnDemandPolicy::initial_pool(const NpuView& view) {
  ranked_.assign(view.graph.tensors().size(), Seconds(-1));
  std::vector<TensorId> pool = start_by_first_use(view, view.memory.hbm().capacity());
  for (std::size_t t = 0; t < ranked_.size(); ++t)
    if (view.graph.tensors()[t].persistent && !std::binary_search(pool.begin(), pool.end(), TensorId(t)))
      rank(TensorId(t), Seconds(0));
  return pool;
}

void OnDemandPolicy::rank(TensorId t, Seconds when) {
  forget(t);
  ranked_[t.index()] = when;
  residents_.emplace(when, t);
}

void OnDemandPolicy::forget(TensorId t) {
  if (ranked_[t.index()].value < 0) return;
  residents_.erase({ranked_[t.index()], t});
  ranked_[t.index()] = Seconds(-1);
}

// Keeps the tensor's place in the order of victims. `taken`: its bytes were taken just now.
void OnDemandPolicy::touched(TensorId t, bool taken, const NpuView& view) {
  if (!view.memory.alive(t) || !view.memory.any_in_hbm(t)) return forget(t);
  if (taken || evict_ == Evict::kLru || ranked_[t.index()].value < 0) rank(t, view.now);
}

void OnDemandPolicy::op_started(OpId id, const NpuView& view) {
  no_longer_blocked(id);
  for (TensorId t : view.graph.op(id).writes)
    if (ranked_[t.index()].value < 0) touched(t, true, view);
}

void OnDemandPolicy::op_ended(OpId id, const NpuView& view) {
  const Op& op = view.graph.op(id);
  for (const auto* list : {&op.reads, &op.writes})
    for (TensorId t : *list) touched(t, false, view);
}

void OnDemandPolicy::inputs_taken(const NpuView& view) {
  no_longer_blocked(OpId::none());
  for (std::size_t t = 0; t < view.graph.tensors().size(); ++t)
    if (view.graph.is_input(TensorId(t))) touched(TensorId(t), true, view);
}

void OnDemandPolicy::transfer_started(Direction direction, const Move& move, const NpuView& view) {
  if (direction == Direction::kPoolToHbm) rank(move.tensor, view.now);  // its bytes are taken
}

void OnDemandPolicy::transfer_ended(Direction direction, const Move& move, const NpuView& view) {
  if (direction == Direction::kPoolToHbm) touched(move.tensor, false, view);
  if (asked_->eviction) stored_ = asked_;
}

bool OnDemandPolicy::pinned(TensorId t, OpId served, const NpuView& view) const {
  if (view.memory.in_transfer(t)) return true;
  if (!served.is_none() && accesses(view.graph.op(served), t)) return true;
  return std::any_of(view.running.begin(), view.running.end(),
                     [&](OpId op) { return !op.is_none() && accesses(view.graph.op(op), t); });
}

std::optional<OnDemandPolicy::Step> OnDemandPolicy::evict_one(OpId served, const NpuView& view) const {
  for (const auto& [when, t] : residents_) {
    if (pinned(t, served, view) || view.memory.hbm_bytes(t) == Bytes(0)) continue;
    return Step{view.memory.valid_in_pool(t) ? Step::Kind::kDetach : Step::Kind::kStore, t, served, true};
  }
  return std::nullopt;  // all pinned: wait until a running op ends
}

// An op in the pool needs valid pool copies of what it reads, and nothing of what it writes in HBM.
std::optional<OnDemandPolicy::Step> OnDemandPolicy::step_for_pool_op(OpId id, const NpuView& view) const {
  const Op& op = view.graph.op(id);
  for (TensorId t : op.reads)
    if (!view.memory.valid_in_pool(t)) return Step{Step::Kind::kStore, t, id};
  for (TensorId t : op.writes)
    if (view.memory.any_in_hbm(t))
      return Step{view.memory.valid_in_pool(t) ? Step::Kind::kDetach : Step::Kind::kStore, t, id};
  return std::nullopt;
}

std::optional<OnDemandPolicy::Step> OnDemandPolicy::step_for(OpId id, const NpuView& view) const {
  const Memory& memory = view.memory;
  if (id.is_none()) return memory.hbm().fits(view.input_bytes) ? std::nullopt : evict_one(id, view);
  const Op& op = view.graph.op(id);
  if (op.memory == Tier::kPool) return step_for_pool_op(id, view);
  for (TensorId t : op.reads)
    if (!memory.resident(t)) {
      if (memory.hbm().fits(memory.absent_bytes(t))) return Step{Step::Kind::kLoad, t, id};
      return evict_one(id, view);
    }
  if (memory.hbm().fits(room_needed(op, memory))) return std::nullopt;
  return evict_one(id, view);
}

// One transfer at a time. An op is served until it starts, or what was loaded for it could be evicted for
// another; then the next in program order. One that has all it needs starts in this instant, so nothing
// may be taken from it for the next; only an op in the pool may still wait for room there.
std::optional<OnDemandPolicy::Step> OnDemandPolicy::next_step(const NpuView& view) {
  if (view.busy[0] || view.busy[1]) return std::nullopt;
  if (served_) {
    if (const auto step = step_for(*served_, view)) return step;
    if (served_->is_none() || view.graph.op(*served_).memory == Tier::kHbm) return std::nullopt;
  }
  for (OpId op : blocked_) {
    const auto step = step_for(op, view);
    if (!step && !op.is_none() && view.graph.op(op).memory == Tier::kPool) continue;
    served_ = op;
    return step;
  }
  return std::nullopt;
}

void OnDemandPolicy::no_longer_blocked(OpId op) {
  blocked_.erase(op);
  if (served_ == op) served_.reset();
}

std::optional<Move> OnDemandPolicy::next_detach(const NpuView& view, bool ops_had_their_turn) {
  auto step = std::exchange(stored_, std::nullopt);
  // A reader may have started beside the store: then the victim stays, now with a copy.
  if (step && view.memory.any_in_hbm(step->tensor) && !pinned(step->tensor, step->served, view))
    step->kind = Step::Kind::kDetach;
  else
    step = ops_had_their_turn ? next_step(view) : std::nullopt;
  if (!step || step->kind != Step::Kind::kDetach) return std::nullopt;
  forget(step->tensor);
  return Move{step->tensor, Bytes(0), view.graph.tensor(step->tensor).bytes, view.iteration};
}

std::optional<Move> OnDemandPolicy::next_transfer(Direction direction, const NpuView& view) {
  const auto step = next_step(view);
  const auto kind = direction == Direction::kPoolToHbm ? Step::Kind::kLoad : Step::Kind::kStore;
  if (!step || step->kind != kind) return std::nullopt;
  asked_ = step;
  return Move{step->tensor, Bytes(0), view.graph.tensor(step->tensor).bytes, view.iteration};
}

}  // namespace hyperoffload
