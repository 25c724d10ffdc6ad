// Where every byte is while a replay runs: per tensor and piece, in HBM and in the pool, with HBM's ledger
// and the pool (which places what it is given: sim/machine/placement.h). Mechanism only: who moves what, and
// when, is decided elsewhere.
//
// A tensor is cut once into pieces at the byte offsets that transfers may use; piece ids of one tensor
// are contiguous. All queries are O(pieces of the tensor).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/placement.h"
#include "sim/model/graph.h"
#include "sim/report/series.h"

namespace hyperoffload {

// Bytes taken in HBM. Capacity is hard.
class Ledger {
 public:
  explicit Ledger(Bytes capacity) : capacity_(capacity) {}
  bool fits(Bytes bytes) const { return bytes <= capacity_ - used_; }
  void take(Bytes bytes);  // must fit
  void give(Bytes bytes);
  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_; }
  Bytes peak() const { return peak_; }
  std::uint64_t gives() const { return gives_; }  // how often bytes were given back

 private:
  Bytes capacity_, used_, peak_;
  std::uint64_t gives_ = 0;
};

enum class HbmState : std::uint8_t { kAbsent, kArriving, kResident };
enum class PoolState : std::uint8_t { kNone, kStale, kLeaving, kValid };  // kLeaving: a store is under way

struct Piece {
  Bytes from, to;
  HbmState hbm = HbmState::kAbsent;
  PoolState pool = PoolState::kNone;
  Bytes bytes() const { return to - from; }
};

class Memory {
 public:
  // `cuts[t]`: further byte offsets at which tensor t is cut (any order); empty vector: none anywhere.
  Memory(const Graph& graph, std::vector<std::vector<Bytes>> cuts, Ledger& hbm, Pool& pool, int npu);

  // State of a tensor.
  bool alive(TensorId t) const { return alive_[t.index()]; }
  bool resident(TensorId t) const;  // all its bytes are in HBM
  bool valid_in_pool(TensorId t) const;
  Bytes absent_bytes(TensorId t) const;  // neither resident nor arriving
  Bytes hbm_bytes(TensorId t) const;     // taken in HBM
  Bytes unallocated_pool_bytes(TensorId t) const;
  // Pool allocations that a store of [from, to), or a write in the pool, would still have to make.
  void unallocated(TensorId t, Bytes from, Bytes to, std::vector<PoolPiece>& pieces) const;
  PoolPiece workspace_in_pool(Bytes bytes) const { return {npu_, TensorId::none(), Bytes(0), bytes}; }
  // Where the bytes [from, to) lie in the pool.
  Extents places(TensorId t, Bytes from, Bytes to) const;
  bool any_in_hbm(TensorId t) const;
  bool in_transfer(TensorId t) const { return transfers_[t.index()] > 0; }
  bool storing(TensorId t) const { return stores_[t.index()] > 0; }
  std::vector<Piece>& pieces(TensorId t) { return pieces_[t.index()]; }
  const std::vector<Piece>& pieces(TensorId t) const { return pieces_[t.index()]; }

  // Changes. The ledgers follow; what doesn't fit is a fault of ours (ask first).
  void place(TensorId t, Tier tier);  // a tensor that exists from the start, or an input
  void write_in_hbm(TensorId t);      // born or missing bytes taken; the pool copy is stale from now
  void write_in_pool(TensorId t);     // likewise in the pool; its copy is valid from now
  void start_transfer(TensorId t, Bytes from, Bytes to, bool to_hbm);
  void end_transfer(TensorId t, Bytes from, Bytes to, bool to_hbm);
  void detach(TensorId t, Bytes from, Bytes to);
  void die(TensorId t);

  // HBM bytes that a prefetch of [from, to) would have to take.
  Bytes absent_bytes(TensorId t, Bytes from, Bytes to) const;

  const HbmFill& hbm_by_kind() const { return by_kind_; }  // workspace is not in it

  Ledger& hbm() { return hbm_; }
  Pool& pool() { return pool_; }
  const Ledger& hbm() const { return hbm_; }
  const Pool& pool() const { return pool_; }

 private:
  PoolPiece pool_piece(TensorId t, const Piece& p) const { return {npu_, t, p.from, p.bytes()}; }
  void take_hbm(TensorId t, Bytes bytes);
  void give_hbm(TensorId t, Bytes bytes);
  void take_pool(TensorId t, std::size_t piece);
  void give_pool(TensorId t, std::size_t piece);

  std::vector<std::vector<Piece>> pieces_;
  std::vector<char> alive_;
  std::vector<int> transfers_, stores_;
  std::vector<std::vector<Extents>> places_;  // by tensor and piece, where the pool doesn't fix them
  const Graph& graph_;
  HbmFill by_kind_{};
  Ledger& hbm_;
  Pool& pool_;
  const int npu_;
};

}  // namespace hyperoffload
