#include "sim/policy/page_fault.h"

#include <algorithm>
#include <utility>

#include "sim/policy/first_use.h"
#include "sim/policy/op_tensors.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kMaxPieces = 512;  // of a tensor: keeps G10's largest nets below a million pieces

bool only_writes(const Op& op, TensorId t) {
  return !std::binary_search(op.reads.begin(), op.reads.end(), t);
}

// Calls visit(tensor) in the order an op touches its tensors; stops when it says true.
template <class Visit>
bool any_touched(const Op& op, Visit visit) {
  return std::any_of(op.reads.begin(), op.reads.end(), visit) ||
         std::any_of(op.writes.begin(), op.writes.end(),
                     [&](TensorId t) { return only_writes(op, t) && visit(t); });
}

Bytes born_at(const Op& op, const Memory& memory) {
  Bytes born;
  for (TensorId t : op.writes)
    if (!memory.alive(t)) born += memory.absent_bytes(t);
  return born;
}

}  // namespace

std::int64_t PageFaultPolicy::faults(Bytes bytes) const {
  const std::int64_t unit = options_.page.value * options_.prefetch;
  return bytes.value / unit + (bytes.value % unit ? 1 : 0);
}

std::vector<std::vector<Bytes>> PageFaultPolicy::cuts(const Graph& graph) {
  std::vector<std::vector<Bytes>> cuts(graph.tensors().size());
  const Bytes unit(options_.page.value * options_.prefetch);
  for (std::size_t t = 0; t < cuts.size(); ++t) {
    const Bytes bytes = graph.tensors()[t].bytes;
    const std::int64_t group = std::max<std::int64_t>(1, (faults(bytes) + kMaxPieces - 1) / kMaxPieces);
    piece_bytes_.push_back(Bytes(unit.value * group));
    first_piece_.push_back(owner_.size());
    const std::int64_t pieces = std::max<std::int64_t>(1, (faults(bytes) + group - 1) / group);
    for (std::int64_t p = 1; p < pieces; ++p) cuts[t].push_back(Bytes(p * piece_bytes_[t].value));
    owner_.insert(owner_.end(), static_cast<std::size_t>(pieces), TensorId(t));
    is_input_.push_back(graph.is_input(TensorId(t)));
  }
  first_piece_.push_back(owner_.size());
  for (std::size_t p = 0; p <= owner_.size(); ++p) before_.push_back(p);
  next_ = before_;
  follower_.assign(graph.ops().size(), OpId::none());
  touched_.resize(graph.ops().size());
  window_mark_.assign(graph.tensors().size(), 0);
  return cuts;
}

std::vector<TensorId> PageFaultPolicy::initial_pool(const NpuView& view) {
  const std::vector<TensorId> pool = start_by_first_use(view, view.memory.hbm().capacity());
  for (std::size_t t = 0; t + 1 < first_piece_.size(); ++t) {
    if (!view.graph.tensors()[t].persistent || std::binary_search(pool.begin(), pool.end(), TensorId(t)))
      continue;
    for (std::size_t p = first_piece_[t]; p < first_piece_[t + 1]; ++p) link_last(p);
  }
  return pool;
}

void PageFaultPolicy::unlink(std::size_t p) {
  next_[before_[p]] = next_[p];
  before_[next_[p]] = before_[p];
  before_[p] = next_[p] = p;
}

void PageFaultPolicy::link_last(std::size_t p) {
  const std::size_t end = owner_.size();
  before_[p] = before_[end];
  next_[p] = end;
  next_[before_[end]] = p;
  before_[end] = p;
}

// What of the tensor is in HBM becomes the most recently used.
void PageFaultPolicy::touch(TensorId t, const NpuView& view) {
  const auto& pieces = view.memory.pieces(t);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    unlink(first_piece(t) + i);
    if (pieces[i].hbm != HbmState::kAbsent) link_last(first_piece(t) + i);
  }
}

void PageFaultPolicy::tensor_died(TensorId t) {
  for (std::size_t p = first_piece(t); p < first_piece_[t.index() + 1]; ++p) unlink(p);
}

void PageFaultPolicy::op_started(OpId id, const NpuView& view) {
  blocked_.erase(id);
  if (served_ == id) served_.reset();
  for (TensorId t : view.graph.op(id).writes)
    if (view.memory.any_in_hbm(t)) touch(t, view);
  if (options_.correlation) learn(id, view);
}

void PageFaultPolicy::op_ended(OpId id, const NpuView& view) {
  any_touched(view.graph.op(id), [&](TensorId t) {
    if (view.memory.alive(t)) touch(t, view);
    return false;
  });
}

void PageFaultPolicy::inputs_taken(const NpuView& view) {
  blocked_.erase(OpId::none());
  if (served_ && served_->is_none()) served_.reset();
  for (std::size_t t = 0; t < is_input_.size(); ++t)
    if (is_input_[t]) touch(TensorId(t), view);
}

void PageFaultPolicy::learn(OpId id, const NpuView& view) {
  if (!latest_.is_none()) follower_[latest_.index()] = id;
  latest_ = id;
  std::vector<TensorId>& touched = touched_[id.index()];
  if (touched.empty())
    any_touched(view.graph.op(id), [&](TensorId t) {
      touched.push_back(t);
      return false;
    });
}

Seconds PageFaultPolicy::host_time(OpId id, const NpuView& view) {
  const Op& op = view.graph.op(id);
  if (options_.frees || op.memory == Tier::kPool) return Seconds(0);
  std::int64_t count = 0;
  for (TensorId t : op.writes)
    if (!view.memory.alive(t)) count += faults(view.graph.tensor(t).bytes);
  return options_.fault_latency * static_cast<double>(count);
}

// A write faults like a read: the driver doesn't know that the old bytes aren't wanted.
bool PageFaultPolicy::op_may_start(OpId id, const NpuView& view) {
  const Op& op = view.graph.op(id);
  return op.memory == Tier::kPool || std::all_of(op.writes.begin(), op.writes.end(), [&](TensorId t) {
           return !view.memory.alive(t) || view.memory.resident(t);
         });
}

bool PageFaultPolicy::pinned(TensorId t, OpId served, const NpuView& view) const {
  if (!served.is_none() && op_accesses(view.graph.op(served), t)) return true;
  return std::any_of(view.running.begin(), view.running.end(),
                     [&](OpId op) { return !op.is_none() && op_accesses(view.graph.op(op), t); });
}

std::optional<PageFaultPolicy::Step> PageFaultPolicy::evict_one(OpId served, bool spare_window,
                                                                const NpuView& view) const {
  TensorId spared;  // the list holds runs of pieces of one tensor
  for (std::size_t p = next_[owner_.size()]; p != owner_.size(); p = next_[p]) {
    const TensorId t = owner_[p];
    if (t == spared) continue;
    if (pinned(t, served, view) || (spare_window && window_mark_[t.index()] == window_)) {
      spared = t;
      continue;
    }
    const std::size_t i = p - first_piece(t);
    const Piece& piece = view.memory.pieces(t)[i];
    if (piece.hbm != HbmState::kResident || piece.pool == PoolState::kLeaving || piece.bytes() == Bytes(0))
      continue;
    return Step{piece.pool == PoolState::kValid ? Step::Kind::kDetach : Step::Kind::kStore, t, i};
  }
  return std::nullopt;
}

std::optional<PageFaultPolicy::Step> PageFaultPolicy::step_for_pool_op(OpId id, const NpuView& view) const {
  const Op& op = view.graph.op(id);
  std::optional<Step> step;
  any_touched(op, [&](TensorId t) {
    const bool written = std::binary_search(op.writes.begin(), op.writes.end(), t);
    const auto& pieces = view.memory.pieces(t);
    for (std::size_t i = 0; i < pieces.size() && !step; ++i) {
      if (pieces[i].hbm != HbmState::kResident || pieces[i].pool == PoolState::kLeaving) continue;
      if (pieces[i].pool != PoolState::kValid)
        step = Step{Step::Kind::kStore, t, i,
                    options_.fault_latency * static_cast<double>(faults(pieces[i].bytes()))};
      else if (written)
        step = Step{Step::Kind::kDetach, t, i};
    }
    return step.has_value();
  });
  return step;
}

std::optional<PageFaultPolicy::Step> PageFaultPolicy::step_for(OpId id, const NpuView& view) const {
  const Memory& memory = view.memory;
  if (id.is_none()) return memory.hbm().fits(view.input_bytes) ? std::nullopt : evict_one(id, false, view);
  const Op& op = view.graph.op(id);
  if (op.memory == Tier::kPool) return step_for_pool_op(id, view);
  std::optional<Step> load;
  any_touched(op, [&](TensorId t) {
    if (!memory.alive(t)) return false;
    const auto& pieces = memory.pieces(t);
    for (std::size_t i = 0; i < pieces.size() && !load; ++i)
      if (pieces[i].hbm == HbmState::kAbsent)
        load = Step{Step::Kind::kLoad, t, i,
                    options_.fault_latency * static_cast<double>(faults(pieces[i].bytes()))};
    return load.has_value();
  });
  const Bytes room =
      load ? memory.pieces(load->tensor)[load->piece].bytes() : op.workspace + born_at(op, memory);
  return memory.hbm().fits(room) ? load : evict_one(id, false, view);
}

// Without overlap the driver does one thing at a time. An op is served until it starts.
std::optional<PageFaultPolicy::Step> PageFaultPolicy::next_step(const NpuView& view) {
  if (!options_.overlap && !options_.correlation && (view.busy[0] || view.busy[1])) return std::nullopt;
  if (!served_)
    for (OpId op : blocked_) {
      const auto step = step_for(op, view);
      // In the pool it may wait for room there, which no eviction brings.
      if (!step && !op.is_none() && view.graph.op(op).memory == Tier::kPool) continue;
      served_ = op;
      return step;
    }
  if (served_) return step_for(*served_, view);
  return options_.correlation ? step_ahead(view) : std::nullopt;
}

// What the next ops touch, in order, while there is room beside what they give birth to; else room for it.
std::optional<PageFaultPolicy::Step> PageFaultPolicy::step_ahead(const NpuView& view) {
  if (latest_.is_none()) return std::nullopt;
  const Memory& memory = view.memory;
  std::vector<OpId> window;
  for (OpId op = follower_[latest_.index()];
       !op.is_none() && static_cast<int>(window.size()) < options_.degree; op = follower_[op.index()])
    window.push_back(op);
  ++window_;
  for (OpId op : window)
    for (TensorId t : touched_[op.index()]) window_mark_[t.index()] = window_;
  Bytes born;
  for (OpId id : window) {
    const Op& op = view.graph.op(id);
    if (op.memory == Tier::kPool) continue;
    for (TensorId t : touched_[id.index()]) {
      if (!memory.alive(t)) continue;
      const auto& pieces = memory.pieces(t);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (pieces[i].hbm != HbmState::kAbsent || pieces[i].pool != PoolState::kValid) continue;
        if (memory.hbm().fits(born + pieces[i].bytes())) return Step{Step::Kind::kLoad, t, i};
        return evict_one(OpId::none(), true, view);
      }
    }
    born += born_at(op, memory);
    if (!memory.hbm().fits(born + op.workspace)) return evict_one(OpId::none(), true, view);
  }
  return std::nullopt;
}

Move PageFaultPolicy::move_of(const Step& step, const NpuView& view) const {
  const Piece& piece = view.memory.pieces(step.tensor)[step.piece];
  return {step.tensor, piece.from, piece.to, view.iteration, -1, step.handling};
}

std::size_t PageFaultPolicy::piece_of(const Move& move) const {
  return static_cast<std::size_t>(move.from.value / piece_bytes_[move.tensor.index()].value);
}

std::optional<Move> PageFaultPolicy::next_detach(const NpuView& view, bool ops_had_their_turn) {
  auto step = std::exchange(stored_, std::nullopt);
  if (step) {
    // A reader may have started, or died, beside the store: then the victim stays.
    const Piece& piece = view.memory.pieces(step->tensor)[step->piece];
    if (!view.memory.alive(step->tensor) || piece.hbm != HbmState::kResident ||
        piece.pool != PoolState::kValid || pinned(step->tensor, served_.value_or(OpId::none()), view))
      step.reset();
  }
  if (!step && ops_had_their_turn) step = next_step(view);
  if (!step || step->kind == Step::Kind::kLoad ||
      (step->kind == Step::Kind::kStore &&
       view.memory.pieces(step->tensor)[step->piece].pool != PoolState::kValid))
    return std::nullopt;
  unlink(first_piece(step->tensor) + step->piece);
  return move_of(*step, view);
}

std::optional<Move> PageFaultPolicy::next_transfer(Direction direction, const NpuView& view) {
  const auto step = next_step(view);
  const auto kind = direction == Direction::kPoolToHbm ? Step::Kind::kLoad : Step::Kind::kStore;
  if (!step || step->kind != kind) return std::nullopt;
  return move_of(*step, view);
}

void PageFaultPolicy::transfer_started(Direction direction, const Move& move, const NpuView&) {
  if (direction == Direction::kPoolToHbm) link_last(first_piece(move.tensor) + piece_of(move));
}

void PageFaultPolicy::transfer_ended(Direction direction, const Move& move, const NpuView&) {
  const std::size_t i = piece_of(move), p = first_piece(move.tensor) + i;
  if (direction == Direction::kHbmToPool) {
    stored_ = Step{Step::Kind::kStore, move.tensor, i};
    return;
  }
  unlink(p);
  link_last(p);
}

}  // namespace hyperoffload
