// `page_fault`: unified memory. Nobody plans: an op that touches pages which aren't in HBM faults, the driver
// brings them in, and evicts the least recently used ones when HBM is full (written back unless a valid copy
// is in the pool). A fault takes `fault_latency` and brings `prefetch` pages in order of address.
// `correlation` is DeepUM's prefetcher: iteration 1 teaches it which op follows which and what each touches;
// later it fetches, without faults, what the next `degree` ops touch, and evicts ahead of them what they
// don't. A page that an op waits for goes first.
//
// Sources: Allen and Ge, "In-Depth Analyses of Unified Virtual Memory System for GPU Accelerated Computing"
// (SC 2021): 64 KiB per fault, prefetched up to a block of 2 MiB, blocks evicted least recently used first.
// Jung, Kim and Lee, "DeepUM" (ASPLOS 2023). 45 us a fault and degree 8 are G10's figures for both
// (github.com/platformxlab/G10 at c42dfb1, genconfigs.py). Ours: whole tensors are touched, in order;
// read-only copies in the pool stay valid while a page is in HBM (the driver would drop them). The driver
// evicts on the path of the fault, before its copy; with `overlap` both links are busy at once (so in G10's
// simulator, and in DeepUM, which evicts ahead). `frees`: the framework's allocator gives the pages of dead
// tensors to new ones, so births don't fault. Without it (G10's unified memory) each tensor has pages of its
// own, which fault at the first touch, stay when it dies, and are evicted and fetched like any other.
// Bookkeeping is by pieces: what faults bring, 512 pieces a tensor at most (then several faults a piece, one
// after another). O(pieces of the tensors touched) a question.
#pragma once

#include <set>

#include "sim/policy/policy.h"

namespace hyperoffload {

struct PageFaultOptions {
  Seconds fault_latency{45e-6};
  Bytes page{64 << 10};
  int prefetch = 32;  // pages a fault brings
  bool frees = true;
  bool overlap = false;  // pages leave beside others that arrive, not before them
  bool correlation = false;
  int degree = 8;  // ops that correlation looks ahead
};

class PageFaultPolicy final : public Policy {
 public:
  explicit PageFaultPolicy(const PageFaultOptions& options) : options_(options) {}

  std::vector<std::vector<Bytes>> cuts(const Graph& graph) override;
  std::vector<TensorId> initial_pool(const NpuView& view) override;
  std::optional<Move> next_detach(const NpuView& view, bool ops_had_their_turn) override;
  std::optional<Move> next_transfer(Direction direction, const NpuView& view) override;
  Seconds host_time(OpId op, const NpuView& view) override;
  bool op_may_start(OpId op, const NpuView& view) override;
  bool done_with(TensorId t, int) override { return options_.frees || is_input_[t.index()]; }
  void op_blocked(OpId op) override { blocked_.insert(op); }
  void op_started(OpId op, const NpuView& view) override;
  void op_ended(OpId op, const NpuView& view) override;
  void inputs_taken(const NpuView& view) override;
  void tensor_died(TensorId t) override;
  void transfer_started(Direction direction, const Move& move, const NpuView& view) override;
  void transfer_ended(Direction direction, const Move& move, const NpuView& view) override;

 private:
  struct Step {
    enum class Kind { kDetach, kLoad, kStore } kind;
    TensorId tensor;
    std::size_t piece;
    Seconds handling{0};
  };
  std::optional<Step> next_step(const NpuView& view);
  std::optional<Step> step_for(OpId op, const NpuView& view) const;
  std::optional<Step> step_for_pool_op(OpId op, const NpuView& view) const;
  std::optional<Step> step_ahead(const NpuView& view);
  std::optional<Step> evict_one(OpId served, bool spare_window, const NpuView& view) const;
  bool pinned(TensorId t, OpId served, const NpuView& view) const;
  Move move_of(const Step& step, const NpuView& view) const;
  std::size_t piece_of(const Move& move) const;
  std::size_t first_piece(TensorId t) const { return first_piece_[t.index()]; }
  std::int64_t faults(Bytes bytes) const;
  void learn(OpId op, const NpuView& view);
  void touch(TensorId t, const NpuView& view);
  void unlink(std::size_t piece);
  void link_last(std::size_t piece);

  PageFaultOptions options_;
  std::set<OpId> blocked_;  // none() first: the iteration's inputs
  std::optional<OpId> served_;
  std::optional<Step> stored_;  // a victim whose store has just ended
  std::vector<char> is_input_;

  // Pieces of all tensors, numbered through, in a list from the least to the most recently used.
  std::vector<Bytes> piece_bytes_;          // per tensor
  std::vector<std::size_t> first_piece_;    // per tensor, and the end
  std::vector<TensorId> owner_;             // per piece
  std::vector<std::size_t> before_, next_;  // per piece and the list's ends; itself: not in the list

  // What iteration 1 taught.
  OpId latest_;                                 // the op that started last
  std::vector<OpId> follower_;                  // per op: the one that started after it
  std::vector<std::vector<TensorId>> touched_;  // per op, in order
  std::vector<int> window_mark_;                // per tensor: in the window of this mark
  int window_ = 0;
};

}  // namespace hyperoffload
