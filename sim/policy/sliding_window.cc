#include "sim/policy/sliding_window.h"

#include <algorithm>

#include "sim/policy/first_use.h"

namespace hyperoffload {
namespace {

bool has(const std::vector<TensorId>& list, TensorId t) { return std::binary_search(list.begin(), list.end(), t); }
bool uses(const Op& op, TensorId t) { return has(op.reads, t) || has(op.writes, t); }

}  // namespace

std::vector<TensorId> SlidingWindowPolicy::initial_pool(const NpuView& view) {
  follow(view.graph);
  const Bytes capacity = view.memory.hbm().capacity();
  const Bytes kept(static_cast<std::int64_t>(static_cast<double>(capacity.value) * (1 - buffer_)));
  std::vector<TensorId> pool = start_by_first_use(view, kept);
  for (std::size_t t = 0; t < ranked_.size(); ++t)
    if (view.graph.tensors()[t].persistent && !has(pool, TensorId(t))) rank(TensorId(t), view);
  return pool;
}

void SlidingWindowPolicy::follow(const Graph& graph) {
  ops_ = static_cast<Place>(graph.ops().size());
  ranked_.assign(graph.tensors().size(), -1);
  known_by_.resize(graph.ops().size());
  for (const Op& op : graph.ops())
    if (op.known_after)
      for (const auto* list : {&op.reads, &op.writes})
        known_by_[op.known_after->index()].insert(known_by_[op.known_after->index()].end(), list->begin(), list->end());
}

// The next access that is not done and known; a persistent tensor is used again in the next iteration.
SlidingWindowPolicy::Place SlidingWindowPolicy::next_use(TensorId t, const NpuView& view) const {
  const auto accesses = view.graph.accesses(t);
  const auto known = [&](OpId op, bool later) {
    const auto after = view.graph.op(op).known_after;
    return !after || (!later && view.op_done(*after));
  };
  const int now = std::max(0, view.iteration);
  const auto open = std::lower_bound(accesses.begin(), accesses.end(), OpId(first_open_),
                                     [](const Access& a, OpId op) { return a.op < op; });
  for (auto a = open; a != accesses.end(); ++a)
    if ((view.iteration < 0 || !view.op_done(a->op)) && known(a->op, view.iteration < 0)) return place_of(a->op, now);
  if (!view.graph.tensor(t).persistent) return kNever;
  for (const Access& a : accesses)
    if (known(a.op, true)) return place_of(a.op, now + 1);
  return kNever;
}

void SlidingWindowPolicy::rank(TensorId t, const NpuView& view) {
  forget(t);
  ranked_[t.index()] = next_use(t, view);
  by_use_.emplace(ranked_[t.index()], t);
}

void SlidingWindowPolicy::forget(TensorId t) {
  if (ranked_[t.index()] < 0) return;
  by_use_.erase({ranked_[t.index()], t});
  ranked_[t.index()] = -1;
}

void SlidingWindowPolicy::move_window(const NpuView& view) {
  const auto& ops = view.graph.ops();
  while (first_open_ < ops.size() && view.op_done(OpId(first_open_))) ++first_open_;
}

void SlidingWindowPolicy::op_started(OpId id, const NpuView& view) {
  blocked_.erase(id);
  if (served_ == id) served_.reset();
  for (TensorId t : view.graph.op(id).writes)
    if (view.memory.any_in_hbm(t)) rank(t, view);
}

void SlidingWindowPolicy::op_ended(OpId id, const NpuView& view) {
  move_window(view);
  const auto again = [&](const std::vector<TensorId>& list) {
    for (TensorId t : list)
      if (view.memory.alive(t) && view.memory.any_in_hbm(t)) rank(t, view);
  };
  again(view.graph.op(id).reads);
  again(view.graph.op(id).writes);
  again(known_by_[id.index()]);
}

void SlidingWindowPolicy::iteration_started(const NpuView& view) {
  first_open_ = 0;
  std::vector<TensorId> residents;
  for (const auto& entry : by_use_) residents.push_back(entry.second);
  for (TensorId t : residents) rank(t, view);
}

void SlidingWindowPolicy::inputs_taken(const NpuView& view) {
  blocked_.erase(OpId::none());
  if (served_ == OpId::none()) served_.reset();
  for (std::size_t t = 0; t < view.graph.tensors().size(); ++t)
    if (view.graph.is_input(TensorId(t))) rank(TensorId(t), view);
}

void SlidingWindowPolicy::transfer_started(Direction direction, const Move& move, const NpuView& view) {
  if (direction == Direction::kPoolToHbm)
    rank(move.tensor, view);
  else if (asked_to_leave_ == move.tensor)
    leaving_ = move.tensor;
}

void SlidingWindowPolicy::transfer_ended(Direction direction, const Move& move, const NpuView&) {
  if (direction == Direction::kPoolToHbm || leaving_ != move.tensor) return;
  stored_.push_back(move.tensor);
  leaving_.reset();
}

bool SlidingWindowPolicy::pinned(TensorId t, OpId for_op, const NpuView& view) const {
  if (view.memory.in_transfer(t)) return true;
  if (!for_op.is_none() && uses(view.graph.op(for_op), t)) return true;
  return std::any_of(view.running.begin(), view.running.end(),
                     [&](OpId op) { return !op.is_none() && uses(view.graph.op(op), t); });
}

// What a victim under way will free counts as free.
bool SlidingWindowPolicy::fits(Bytes bytes, const NpuView& view) const {
  const Bytes coming = leaving_ ? view.memory.hbm_bytes(*leaving_) : Bytes(0);
  return bytes <= view.memory.hbm().capacity() - view.memory.hbm().used() + coming;
}

// The waiting op that is helped: until it starts, then the next in program order.
std::optional<OpId> SlidingWindowPolicy::served(const NpuView& view) {
  if (served_ && needs_something(*served_, view)) return served_;
  for (OpId op : blocked_)
    if (needs_something(op, view)) {
      served_ = op;
      return op;
    }
  return served_ ? served_ : std::nullopt;
}

bool SlidingWindowPolicy::needs_something(OpId id, const NpuView& view) const {
  if (id.is_none()) return !view.memory.hbm().fits(view.input_bytes);
  const Op& op = view.graph.op(id);
  if (op.memory == Tier::kPool)
    return std::any_of(op.reads.begin(), op.reads.end(), [&](TensorId t) { return !view.memory.valid_in_pool(t); }) ||
           std::any_of(op.writes.begin(), op.writes.end(), [&](TensorId t) { return view.memory.any_in_hbm(t); });
  return wanted_by(id, view) || !view.memory.hbm().fits(room_for(id, view));
}

std::optional<TensorId> SlidingWindowPolicy::wanted_by(OpId id, const NpuView& view) const {
  if (id.is_none() || view.graph.op(id).memory == Tier::kPool) return std::nullopt;
  for (TensorId t : view.graph.op(id).reads)
    if (!view.memory.resident(t) && !view.memory.in_transfer(t)) return t;
  return std::nullopt;
}

// Bytes the op takes at its start.
Bytes SlidingWindowPolicy::room_for(OpId id, const NpuView& view) const {
  if (id.is_none()) return view.input_bytes;
  const Op& op = view.graph.op(id);
  if (op.memory == Tier::kPool) return Bytes(0);
  Bytes need = op.workspace;
  for (TensorId t : op.writes)
    if (!has(op.reads, t)) need += view.memory.absent_bytes(t);
  return need;
}

// The next tensor that the window reads and that can be loaded. Of the next iteration only what lives on is there; old
// bytes that an op of the window overwrites first nobody reads.
std::optional<TensorId> SlidingWindowPolicy::wanted_by_window(const NpuView& view) const {
  const auto& ops = view.graph.ops();
  std::vector<TensorId> overwritten;
  const auto old_bytes_count = [&](TensorId t) {
    return std::find(overwritten.begin(), overwritten.end(), t) == overwritten.end();
  };
  for (std::size_t i = first_open_; i <= first_open_ + static_cast<std::size_t>(horizon_) && i < 2 * ops.size(); ++i) {
    const bool next_iteration = i >= ops.size();
    const OpId id(i % ops.size());
    const Op& op = view.graph.op(id);
    if (op.memory == Tier::kPool || (!next_iteration && view.op_done(id))) continue;
    if (op.known_after && (next_iteration || !view.op_done(*op.known_after))) continue;
    for (TensorId t : op.reads)
      if (view.memory.alive(t) && !view.memory.any_in_hbm(t) && view.memory.valid_in_pool(t) &&
          !view.memory.in_transfer(t) && (!next_iteration || view.graph.tensor(t).persistent) && old_bytes_count(t))
        return t;
    for (TensorId t : op.writes)
      if (!has(op.reads, t) && view.memory.alive(t)) overwritten.push_back(t);
  }
  return std::nullopt;
}

std::optional<TensorId> SlidingWindowPolicy::wanted(const NpuView& view) {
  if (view.iteration < 0) return std::nullopt;
  if (const auto op = served(view)) {
    const auto tensor = wanted_by(*op, view);
    // Room made for it is not given to another; once its bytes are there it starts, or waits for room.
    return tensor && view.memory.valid_in_pool(*tensor) ? tensor : std::nullopt;
  }
  return wanted_by_window(view);
}

// An op in the pool that waits needs valid copies of what it reads, and nothing of what it writes in HBM.
std::optional<TensorId> SlidingWindowPolicy::must_store(const NpuView& view) {
  const auto id = served(view);
  if (!id || id->is_none() || view.graph.op(*id).memory == Tier::kHbm) return std::nullopt;
  const auto stale = [&](TensorId t) {
    return view.memory.any_in_hbm(t) && !view.memory.valid_in_pool(t) && !view.memory.in_transfer(t);
  };
  for (const auto* list : {&view.graph.op(*id).reads, &view.graph.op(*id).writes})
    for (TensorId t : *list)
      if (stale(t)) return t;
  return std::nullopt;
}

std::optional<SlidingWindowPolicy::Victim> SlidingWindowPolicy::last_used(const NpuView& view, OpId for_op,
                                                                         Place beyond) const {
  for (auto entry = by_use_.rbegin(); entry != by_use_.rend() && entry->first > beyond; ++entry)
    if (!pinned(entry->second, for_op, view) && view.memory.hbm_bytes(entry->second) > Bytes(0))
      return Victim{entry->second, view.memory.valid_in_pool(entry->second)};
  return std::nullopt;
}

std::optional<SlidingWindowPolicy::Victim> SlidingWindowPolicy::victim(const NpuView& view) {
  if (view.iteration < 0) return std::nullopt;
  if (const auto op = served(view)) {
    const auto tensor = wanted_by(*op, view);
    const Bytes need = tensor ? view.memory.absent_bytes(*tensor) : room_for(*op, view);
    return fits(need, view) ? std::nullopt : last_used(view, *op, -1);
  }
  const Place end = place_of(OpId(first_open_), view.iteration) + horizon_;
  if (const auto tensor = wanted_by_window(view))
    if (!fits(view.memory.absent_bytes(*tensor), view)) return last_used(view, OpId::none(), end);
  const auto spare = static_cast<std::int64_t>(static_cast<double>(view.memory.hbm().capacity().value) * buffer_);
  return fits(Bytes(spare), view) ? std::nullopt : last_used(view, OpId::none(), end);
}

std::optional<Move> SlidingWindowPolicy::next_detach(const NpuView& view, bool ops_had_their_turn) {
  std::optional<TensorId> gone;
  while (!gone && !stored_.empty()) {
    const TensorId t = stored_.back();
    stored_.pop_back();
    // A reader may have taken it into use beside its store: then it stays, now with a copy.
    const OpId for_op = served_ ? *served_ : OpId::none();
    if (view.memory.alive(t) && view.memory.resident(t) && view.memory.valid_in_pool(t) && !pinned(t, for_op, view)) gone = t;
  }
  if (!gone && ops_had_their_turn) {
    if (const auto id = served(view); id && !id->is_none() && view.graph.op(*id).memory == Tier::kPool) {
      for (TensorId t : view.graph.op(*id).writes)
        if (view.memory.resident(t) && view.memory.valid_in_pool(t) && !view.memory.in_transfer(t)) gone = t;
    } else if (const auto leaves = victim(view); leaves && leaves->clean) {
      gone = leaves->tensor;
    }
  }
  if (!gone) return std::nullopt;
  forget(*gone);
  return Move{*gone, Bytes(0), view.graph.tensor(*gone).bytes, view.iteration};
}

std::optional<Move> SlidingWindowPolicy::next_transfer(Direction direction, const NpuView& view) {
  std::optional<TensorId> tensor;
  if (direction == Direction::kPoolToHbm) {
    tensor = wanted(view);
  } else {
    asked_to_leave_.reset();
    if (tensor = must_store(view); !tensor)
      if (const auto leaves = victim(view); leaves && !leaves->clean) asked_to_leave_ = tensor = leaves->tensor;
  }
  if (!tensor) return std::nullopt;
  return Move{*tensor, Bytes(0), view.graph.tensor(*tensor).bytes, view.iteration};
}

}  // namespace hyperoffload
