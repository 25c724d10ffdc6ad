#include "sim/policy/capuchin.h"

#include <algorithm>

#include "sim/policy/absences.h"
#include "sim/policy/hbm_profile.h"
#include "sim/policy/op_tensors.h"
#include "sim/policy/range_max.h"

namespace hyperoffload {
namespace {

constexpr double kFeedback = 0.05;  // of the load time, the paper's figure

Seconds copy_time(const LinkDirection& link, Bytes bytes) { return link.latency + bytes / link.bandwidth; }

}  // namespace

Move CapuchinPolicy::whole(TensorId t, const NpuView& view) const {
  return {t, Bytes(0), view.graph.tensor(t).bytes, view.iteration};
}

bool CapuchinPolicy::used_now(TensorId t, const NpuView& view) const {
  return std::any_of(view.running.begin(), view.running.end(),
                     [&](OpId op) { return !op.is_none() && op_accesses(view.graph.op(op), t); });
}

bool CapuchinPolicy::fits_in_pool(TensorId t, const NpuView& view) const {
  std::vector<PoolPiece> pieces;
  view.memory.unallocated(t, Bytes(0), view.graph.tensor(t).bytes, pieces);
  return view.memory.pool().fits(pieces);
}

void CapuchinPolicy::iteration_started(const NpuView& view) {
  const std::size_t ops = view.graph.ops().size();
  if (view.iteration == 0) {
    ready_.assign(ops, Seconds(0));
    start_ = end_ = ready_;
    evicted_at_.resize(ops);
    back_at_.resize(ops);
  }
  if (view.iteration == 1) choose(view);
  if (view.iteration >= 1) place_triggers(view);
}

void CapuchinPolicy::choose(const NpuView& view) {
  const Graph& graph = view.graph;
  const LinkDirection in = fair_link(view.hardware, true), out = fair_link(view.hardware, false);
  const auto free_time = [&](const Stretch& s) {
    const Bytes bytes = graph.tensor(s.tensor).bytes;
    return (start_[s.to.index()] - copy_time(in, bytes)) - (end_[s.from.index()] + copy_time(out, bytes));
  };
  std::vector<std::pair<Seconds, Stretch>> ranked;
  for (const Stretch& s : stretches(graph))
    if (!s.wraps && s.to.value - s.from.value > 1) ranked.emplace_back(free_time(s), s);
  std::sort(ranked.begin(), ranked.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    const Bytes of_a = graph.tensor(a.second.tensor).bytes, of_b = graph.tensor(b.second.tensor).bytes;
    if (of_a != of_b) return of_a > of_b;
    return std::pair(a.second.from, a.second.tensor) < std::pair(b.second.from, b.second.tensor);
  });
  RangeMax taken(resident_profile(graph));
  const Bytes capacity = view.memory.hbm().capacity();
  for (const auto& [ft, s] : ranked) {
    if (taken.highest() <= capacity) break;
    if (taken.highest(s.from.index() + 1, s.to.index()) <= capacity) continue;
    const Bytes bytes = graph.tensor(s.tensor).bytes;
    taken.add(s.from.index() + 1, s.to.index(), -bytes);
    const Seconds load = copy_time(in, bytes);
    evicted_at_[s.from.index()].push_back(swaps_.size());
    back_at_[s.to.index()].push_back(swaps_.size());
    const auto& reads = graph.op(s.to).reads;
    const bool needed = std::binary_search(reads.begin(), reads.end(), s.tensor);
    swaps_.push_back({s.tensor, s.from, s.to, needed, load, load, OpId::none()});
  }
}

// The last op behind the evicted access that starts early enough; the evicted access itself if none does.
void CapuchinPolicy::place_triggers(const NpuView& view) {
  triggered_at_.assign(view.graph.ops().size(), {});
  for (std::size_t i = 0; i < swaps_.size(); ++i) {
    Swap& swap = swaps_[i];
    swap.trigger = swap.evicted;
    for (OpId op = swap.back; op > swap.evicted; op = OpId(op.index() - 1))
      if (start_[op.index()] <= start_[swap.back.index()] - swap.lead) {
        swap.trigger = op;
        break;
      }
    if (swap.reads && swap.trigger != swap.evicted) triggered_at_[swap.trigger.index()].push_back(i);
  }
}

Seconds CapuchinPolicy::host_time(OpId op, const NpuView& view) {
  ready_[op.index()] = view.now;
  return Seconds(0);
}

// Not while bytes that it overwrites are on their way.
bool CapuchinPolicy::op_may_start(OpId op, const NpuView& view) {
  const auto& writes = view.graph.op(op).writes;
  return std::none_of(writes.begin(), writes.end(), [&](TensorId t) { return view.memory.in_transfer(t); });
}

void CapuchinPolicy::op_started(OpId op, const NpuView& view) {
  OnDemandPolicy::op_started(op, view);
  busy_ = measured(view.now);
  since_ = view.now;
  ++running_;
  if (view.iteration == 0) {
    start_[op.index()] = busy_;
    return;
  }
  for (std::size_t i : back_at_[op.index()]) {
    Swap& swap = swaps_[i];
    if (swap.arrived > ready_[op.index()]) swap.lead += swap.load * kFeedback;
    std::erase(outs_, i);
    std::erase(ins_, i);
  }
  for (std::size_t i : triggered_at_[op.index()]) ins_.push_back(i);
}

void CapuchinPolicy::op_ended(OpId op, const NpuView& view) {
  OnDemandPolicy::op_ended(op, view);
  busy_ = measured(view.now);
  since_ = view.now;
  --running_;
  if (view.iteration == 0) {
    end_[op.index()] = busy_;
    return;
  }
  for (std::size_t i : evicted_at_[op.index()]) {
    outs_.push_back(i);
    if (swaps_[i].reads && swaps_[i].trigger == op) ins_.push_back(i);
  }
}

std::optional<Move> CapuchinPolicy::next_detach(const NpuView& view, bool ops_had_their_turn) {
  for (std::size_t i : outs_) {
    const TensorId t = swaps_[i].tensor;
    if (!view.memory.alive(t) || !view.memory.resident(t) || !view.memory.valid_in_pool(t) ||
        view.memory.in_transfer(t) || used_now(t, view))
      continue;
    std::erase(outs_, i);
    forget(t);
    return whole(t, view);
  }
  return OnDemandPolicy::next_detach(view, ops_had_their_turn && outs_.empty());
}

std::optional<Move> CapuchinPolicy::next_out(const NpuView& view) {
  for (auto it = outs_.begin(); it != outs_.end();) {
    const TensorId t = swaps_[*it].tensor;
    if (!view.memory.alive(t) || !view.memory.any_in_hbm(t))
      it = outs_.erase(it);  // swapped on demand meanwhile
    else if (!fits_in_pool(t, view))
      it = outs_.erase(it);  // stays: waiting for room there could last for ever
    else if (view.memory.in_transfer(t) || view.memory.valid_in_pool(t))
      ++it;
    else
      return whole(t, view);
  }
  return std::nullopt;
}

std::optional<Move> CapuchinPolicy::next_in(const NpuView& view) {
  for (auto it = ins_.begin(); it != ins_.end();) {
    const TensorId t = swaps_[*it].tensor;
    const bool leaving = std::find(outs_.begin(), outs_.end(), *it) != outs_.end();
    if (!view.memory.alive(t) || (view.memory.any_in_hbm(t) && !leaving))
      it = ins_.erase(it);
    else if (leaving || view.memory.in_transfer(t))
      ++it;
    else
      return whole(t, view);
  }
  return std::nullopt;
}

std::optional<Move> CapuchinPolicy::next_transfer(Direction direction, const NpuView& view) {
  Side& offered = offered_[static_cast<int>(direction)];
  if (direction == Direction::kHbmToPool) {
    offered = Side::kOut;
    if (const auto out = next_out(view)) return out;
  } else if (!anyone_waits()) {
    offered = Side::kIn;
    return next_in(view);
  }
  offered = Side::kPassive;
  return outs_.empty() ? OnDemandPolicy::next_transfer(direction, view) : std::nullopt;
}

void CapuchinPolicy::transfer_started(Direction direction, const Move& move, const NpuView& view) {
  moving_[static_cast<int>(direction)] = offered_[static_cast<int>(direction)];
  OnDemandPolicy::transfer_started(direction, move, view);
}

void CapuchinPolicy::transfer_ended(Direction direction, const Move& move, const NpuView& view) {
  if (moving_[static_cast<int>(direction)] == Side::kPassive)
    return OnDemandPolicy::transfer_ended(direction, move, view);
  if (direction == Direction::kHbmToPool) return;
  touched(move.tensor, false, view);
  for (std::size_t i : ins_)
    if (swaps_[i].tensor == move.tensor) swaps_[i].arrived = view.now;
  std::erase_if(ins_, [&](std::size_t i) { return swaps_[i].tensor == move.tensor; });
}

}  // namespace hyperoffload
