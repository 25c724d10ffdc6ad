#include "sim/replay/memory.h"

#include <algorithm>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

// Calls visit(piece) for the pieces of [from, to).
template <class Pieces, class Visit>
void for_range(Pieces& pieces, Bytes from, Bytes to, Visit visit) {
  for (auto& piece : pieces)
    if (piece.from >= from && piece.to <= to) visit(piece);
}

}  // namespace

void Ledger::take(Bytes bytes) {
  HYPER_CHECK(fits(bytes), "taking bytes beyond the capacity");
  used_ += bytes;
  peak_ = std::max(peak_, used_);
}

void Ledger::give(Bytes bytes) {
  HYPER_CHECK(bytes <= used_, "giving back more bytes than were taken");
  used_ -= bytes;
  if (bytes.value > 0) ++gives_;
}

Memory::Memory(const Graph& graph, std::vector<std::vector<Bytes>> cuts, Ledger& hbm, Pool& pool, int npu)
    : graph_(graph), hbm_(hbm), pool_(pool), npu_(npu) {
  const std::size_t count = graph.tensors().size();
  cuts.resize(count);
  pieces_.resize(count);
  alive_.assign(count, 0);
  transfers_.assign(count, 0);
  stores_.assign(count, 0);
  for (std::size_t t = 0; t < count; ++t) {
    std::vector<Bytes>& at = cuts[t];
    at.push_back(Bytes(0));
    at.push_back(graph.tensors()[t].bytes);
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    if (at.size() == 1) at.push_back(at.front());  // a tensor of 0 bytes is one empty piece
    for (std::size_t i = 0; i + 1 < at.size(); ++i) pieces_[t].push_back({at[i], at[i + 1]});
  }
  if (pool_.fixed()) return;
  places_.resize(count);
  for (std::size_t t = 0; t < count; ++t) places_[t].resize(pieces_[t].size());
}

void Memory::take_hbm(TensorId t, Bytes bytes) {
  hbm_.take(bytes);
  by_kind_[static_cast<std::size_t>(graph_.tensor(t).kind)] += bytes;
}

void Memory::give_hbm(TensorId t, Bytes bytes) {
  hbm_.give(bytes);
  by_kind_[static_cast<std::size_t>(graph_.tensor(t).kind)] -= bytes;
}

void Memory::take_pool(TensorId t, std::size_t piece) {
  Extents extents = pool_.take(pool_piece(t, pieces(t)[piece]));
  if (!pool_.fixed()) places_[t.index()][piece] = std::move(extents);
}

void Memory::give_pool(TensorId t, std::size_t piece) {
  const PoolPiece what = pool_piece(t, pieces(t)[piece]);
  pool_.give(what, pool_.fixed() ? pool_.where(what) : places_[t.index()][piece]);
}

Extents Memory::places(TensorId t, Bytes from, Bytes to) const {
  Extents all;
  const auto& list = pieces(t);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].from < from || list[i].to > to) continue;
    Extents part = pool_.fixed() ? pool_.where(pool_piece(t, list[i])) : places_[t.index()][i];
    if (all.empty()) {
      all = std::move(part);
      continue;
    }
    for (const Extent& e : part) {
      const auto same =
          std::find_if(all.begin(), all.end(), [&](const Extent& other) { return other.bin == e.bin; });
      if (same == all.end())
        all.push_back(e);
      else
        same->bytes += e.bytes;
    }
  }
  return all;
}

bool Memory::resident(TensorId t) const {
  const auto& list = pieces(t);
  return std::all_of(list.begin(), list.end(), [](const Piece& p) { return p.hbm == HbmState::kResident; });
}

bool Memory::valid_in_pool(TensorId t) const {
  const auto& list = pieces(t);
  return std::all_of(list.begin(), list.end(), [](const Piece& p) { return p.pool == PoolState::kValid; });
}

bool Memory::any_in_hbm(TensorId t) const {
  const auto& list = pieces(t);
  return std::any_of(list.begin(), list.end(), [](const Piece& p) { return p.hbm != HbmState::kAbsent; });
}

Bytes Memory::absent_bytes(TensorId t) const {
  Bytes sum;
  for (const Piece& p : pieces(t))
    if (p.hbm == HbmState::kAbsent) sum += p.bytes();
  return sum;
}

Bytes Memory::hbm_bytes(TensorId t) const {
  Bytes sum;
  for (const Piece& p : pieces(t))
    if (p.hbm != HbmState::kAbsent) sum += p.bytes();
  return sum;
}

Bytes Memory::unallocated_pool_bytes(TensorId t) const {
  Bytes sum;
  for (const Piece& p : pieces(t))
    if (p.pool == PoolState::kNone) sum += p.bytes();
  return sum;
}

void Memory::place(TensorId t, Tier tier) {
  alive_[t.index()] = 1;
  for (std::size_t i = 0; i < pieces(t).size(); ++i) {
    Piece& p = pieces(t)[i];
    if (tier == Tier::kHbm) {
      take_hbm(t, p.bytes());
      p.hbm = HbmState::kResident;
    } else {
      take_pool(t, i);
      p.pool = PoolState::kValid;
    }
  }
}

void Memory::write_in_hbm(TensorId t) {
  alive_[t.index()] = 1;
  for (Piece& p : pieces(t)) {
    HYPER_CHECK(p.hbm != HbmState::kArriving, "a write while its bytes arrive");
    HYPER_CHECK(p.pool != PoolState::kLeaving, "a write while its bytes are being stored");
    if (p.hbm == HbmState::kAbsent) take_hbm(t, p.bytes());
    p.hbm = HbmState::kResident;
    if (p.pool == PoolState::kValid) p.pool = PoolState::kStale;
  }
}

void Memory::write_in_pool(TensorId t) {
  alive_[t.index()] = 1;
  for (std::size_t i = 0; i < pieces(t).size(); ++i) {
    Piece& p = pieces(t)[i];
    HYPER_CHECK(p.hbm == HbmState::kAbsent, "a write in the pool while bytes are in HBM");
    if (p.pool == PoolState::kNone) take_pool(t, i);
    p.pool = PoolState::kValid;
  }
}

Bytes Memory::absent_bytes(TensorId t, Bytes from, Bytes to) const {
  Bytes sum;
  for_range(pieces(t), from, to, [&](const Piece& p) {
    if (p.hbm == HbmState::kAbsent) sum += p.bytes();
  });
  return sum;
}

void Memory::unallocated(TensorId t, Bytes from, Bytes to, std::vector<PoolPiece>& found) const {
  for_range(pieces(t), from, to, [&](const Piece& p) {
    if (p.pool == PoolState::kNone) found.push_back(pool_piece(t, p));
  });
}

void Memory::start_transfer(TensorId t, Bytes from, Bytes to, bool to_hbm) {
  ++transfers_[t.index()];
  if (!to_hbm) ++stores_[t.index()];
  for_range(pieces(t), from, to, [&](Piece& p) {
    if (to_hbm) {
      HYPER_CHECK(p.hbm == HbmState::kAbsent && p.pool == PoolState::kValid, "prefetching what can't be");
      take_hbm(t, p.bytes());
      p.hbm = HbmState::kArriving;
    } else {
      HYPER_CHECK(p.hbm == HbmState::kResident, "storing what is not resident");
      if (p.pool == PoolState::kNone) take_pool(t, static_cast<std::size_t>(&p - pieces(t).data()));
      p.pool = PoolState::kLeaving;
    }
  });
}

void Memory::end_transfer(TensorId t, Bytes from, Bytes to, bool to_hbm) {
  --transfers_[t.index()];
  if (!to_hbm) --stores_[t.index()];
  for_range(pieces(t), from, to, [&](Piece& p) {
    if (to_hbm)
      p.hbm = HbmState::kResident;
    else
      p.pool = PoolState::kValid;
  });
}

void Memory::detach(TensorId t, Bytes from, Bytes to) {
  for_range(pieces(t), from, to, [&](Piece& p) {
    HYPER_CHECK(p.hbm == HbmState::kResident && p.pool == PoolState::kValid, "detaching the last valid copy");
    give_hbm(t, p.bytes());
    p.hbm = HbmState::kAbsent;
  });
}

void Memory::die(TensorId t) {
  HYPER_CHECK(alive(t) && !in_transfer(t), "a tensor can't die now");
  alive_[t.index()] = 0;
  for (std::size_t i = 0; i < pieces(t).size(); ++i) {
    Piece& p = pieces(t)[i];
    if (p.hbm != HbmState::kAbsent) give_hbm(t, p.bytes());
    if (p.pool != PoolState::kNone) give_pool(t, i);
    p.hbm = HbmState::kAbsent;
    p.pool = PoolState::kNone;
  }
}

}  // namespace hyperoffload
