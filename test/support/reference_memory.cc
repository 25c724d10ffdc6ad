#include "test/support/reference_memory.h"

#include <algorithm>
#include <set>

#include "sim/model/check.h"

namespace hyperoffload::reference {

Memory::Memory(const Graph& graph, const Plan& plan, const Hardware& hardware)
    : graph_(graph),
      hbm_capacity_(hardware.hbm_usable()),
      pool_capacity_(hardware.pool_capacity),
      allocation_(hardware.allocation),
      born_in_(graph.tensors().size(), -1) {
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const Bytes bytes = graph.tensors()[t].bytes;
    std::set<Bytes> cuts{Bytes(0), bytes};
    for (const Action& a : plan.actions)
      if (a.tensor.index() == t) cuts.insert({a.from, a.to});
    HYPER_CHECK(*cuts.begin() == Bytes(0) && *cuts.rbegin() == bytes, "an action reaches beyond its tensor");
    std::vector<Piece>& pieces = pieces_.emplace_back();
    for (auto c = cuts.begin(); std::next(c) != cuts.end(); ++c) {
      pieces.emplace_back();
      pieces.back().from = *c;
      pieces.back().to = *std::next(c);
    }
    if (pieces.empty()) pieces.emplace_back();  // an empty tensor is one empty piece
  }
}

bool Memory::place_initial(const Plan& plan) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Tensor& tensor = graph_.tensors()[i];
    if (!tensor.persistent) continue;
    const auto& listed = plan.initial_pool;
    const bool starts_there =
        tensor.initial == Tier::kPool || std::find(listed.begin(), listed.end(), TensorId(i)) != listed.end();
    for (Piece& p : pieces_[i]) {
      p.in_hbm = !starts_there;
      p.has_pool_bytes = p.valid = starts_there;
    }
    for (const Piece& p : pieces_[i])
      starts_there ? take_pool(in_pool(p.bytes())) : take_hbm(p.bytes());
  }
  return hbm_room() >= Bytes(0) && pool_room() >= Bytes(0);
}

void Memory::take_hbm(Bytes bytes) {
  hbm_used_ += bytes;
  hbm_peak_ = std::max(hbm_peak_, hbm_used_);
}

void Memory::take_pool(Bytes bytes) {
  pool_used_ += bytes;
  pool_peak_ = std::max(pool_peak_, pool_used_);
}

void Memory::leave_hbm(Piece& piece) {
  if (piece.in_hbm) hbm_used_ -= piece.bytes();
  piece.in_hbm = false;
}

// --- births and deaths ---
void Memory::take_input(TensorId t, int iteration) {
  HYPER_CHECK(born_in(t) < 0, "an input arrives while its last instance lives");
  born_in_[t.index()] = iteration;
  for (Piece& p : pieces(t)) p.in_hbm = true;
  take_hbm(graph_.tensor(t).bytes);
}

void Memory::bury(TensorId t) {
  for (Piece& p : pieces(t)) {
    leave_hbm(p);
    if (p.has_pool_bytes) pool_used_ -= in_pool(p.bytes());
    p.has_pool_bytes = p.valid = false;
    p.touched = true;
  }
  born_in_[t.index()] = -1;
}

// --- ops ---
bool Memory::in_place(const Op& op) const {
  for (TensorId t : op.reads)
    for (const Piece& p : pieces(t))
      if (op.memory == Tier::kPool ? !p.valid : !p.in_hbm || p.arriving) return false;
  if (op.memory == Tier::kPool)
    for (TensorId t : op.writes)
      for (const Piece& p : pieces(t))
        if (p.in_hbm) return false;
  return true;
}

Bytes Memory::bytes_to_take(const Op& op) const {
  const bool pool = op.memory == Tier::kPool;
  Bytes sum = pool ? in_pool(op.workspace) : op.workspace;
  for (TensorId t : op.writes)
    for (const Piece& p : pieces(t))
      if (!(pool ? p.has_pool_bytes : p.in_hbm)) sum += pool ? in_pool(p.bytes()) : p.bytes();
  return sum;
}

bool Memory::fits(const Op& op) const {
  return bytes_to_take(op) <= (op.memory == Tier::kPool ? pool_room() : hbm_room());
}

void Memory::start(OpId o, int iteration) {
  const Op& op = graph_.op(o);
  op.memory == Tier::kPool ? take_pool(bytes_to_take(op)) : take_hbm(bytes_to_take(op));
  for (TensorId t : op.reads)
    for (Piece& p : pieces(t)) p.touched = true;
  for (TensorId t : op.writes) {
    std::size_t missing = 0;
    for (Piece& p : pieces(t)) {
      if (!p.in_hbm) ++missing;
      write(op, p);
    }
    if (graph_.birth(t) == o) {
      HYPER_CHECK(born_in(t) < 0, "a tensor is born while its last instance lives");
      born_in_[t.index()] = iteration;
    } else if (op.memory == Tier::kHbm && missing > 0) {
      ++seen[missing == pieces(t).size() ? "pure write takes all bytes"
                                         : "pure write takes the missing bytes"];
    }
  }
}

void Memory::write(const Op& op, Piece& piece) {
  piece.touched = true;
  piece.valid = false;  // in the pool: until the op has ended
  (op.memory == Tier::kPool ? piece.has_pool_bytes : piece.in_hbm) = true;
  if (op.memory == Tier::kHbm && piece.has_pool_bytes) ++seen["write makes the pool copy stale"];
}

void Memory::end(OpId o) {
  const Op& op = graph_.op(o);
  if (op.memory == Tier::kPool)
    pool_used_ -= in_pool(op.workspace);
  else
    hbm_used_ -= op.workspace;
  if (op.memory == Tier::kPool)
    for (TensorId t : op.writes)
      for (Piece& p : pieces(t)) p.valid = true;
}

// --- actions ---
Bytes Memory::bytes_to_take(const Action& transfer) const {
  Bytes sum;
  for (const Piece& p : pieces(transfer.tensor))
    if (p.within(transfer) && (transfer.kind == ActionKind::kPrefetch || !p.has_pool_bytes))
      sum += transfer.kind == ActionKind::kPrefetch ? p.bytes() : in_pool(p.bytes());
  return sum;
}

bool Memory::fits(const Action& transfer) const {
  return bytes_to_take(transfer) <= (transfer.kind == ActionKind::kPrefetch ? hbm_room() : pool_room());
}

void Memory::start(const Action& transfer) {
  const std::string& name = graph_.tensor(transfer.tensor).name;
  const Bytes bytes = bytes_to_take(transfer);
  transfer.kind == ActionKind::kPrefetch ? take_hbm(bytes) : take_pool(bytes);
  if (transfer.kind == ActionKind::kStore && bytes < transfer.bytes()) ++seen["store reuses its pool bytes"];
  for (Piece& p : pieces(transfer.tensor)) {
    if (!p.within(transfer)) continue;
    if (transfer.kind == ActionKind::kPrefetch) {
      HYPER_CHECK(!p.in_hbm && p.valid,
                  "prefetch of \"" + name + "\", which is resident or has no valid copy");
      p.in_hbm = p.arriving = true;
    } else {
      HYPER_CHECK(p.in_hbm && !p.valid, "store of \"" + name + "\", which is absent or has a valid copy");
      p.has_pool_bytes = true;
    }
  }
}

void Memory::end(const Action& transfer) {
  for (Piece& p : pieces(transfer.tensor)) {
    if (!p.within(transfer)) continue;
    if (transfer.kind == ActionKind::kPrefetch)
      p.arriving = p.touched = false;
    else
      p.valid = true;
  }
}

void Memory::detach(const Action& detach) {
  for (Piece& p : pieces(detach.tensor)) {
    if (!p.within(detach)) continue;
    HYPER_CHECK(p.in_hbm && p.valid && p.touched,
                "detach of \"" + graph_.tensor(detach.tensor).name +
                    "\", which is absent, has no valid copy or was not accessed");
    leave_hbm(p);
  }
}

}  // namespace hyperoffload::reference
