// `capuchin`: Capuchin's tensor swapping (Peng et al., ASPLOS 2020), without its recomputation.
//
// Iteration 1 is *measured*: swapping on demand (least recently used first), and the times of all accesses,
// less the time in which nothing ran, as waiting for swaps isn't the program's. Then pairs of consecutive
// accesses of a tensor are ranked by free time FT = (back access - load time) - (evicted access + store
// time), longest first, and taken while some op inside still exceeds HBM. In later iterations a taken tensor
// leaves behind its evicted access and comes back at its *in-trigger*: the last op that starts at or before
// back access - load time. When a back access finds it still on the way, the trigger moves ahead by 5 % of
// the load time. An op that lacks room waits for evictions under way first; whatever is still missing is
// swapped on demand. Rules as the paper states them (sections on policy making and on feedback). Ours: where
// FT is negative it would recompute, here the pair is taken all the same; "exceeds" is judged by the bytes
// live in program order; what finds the pool full stays in HBM; one queue a direction. O(accesses log) once, O(log residents) an eviction.
#pragma once

#include <deque>

#include "sim/policy/on_demand.h"

namespace hyperoffload {

class CapuchinPolicy final : public OnDemandPolicy {
 public:
  CapuchinPolicy() : OnDemandPolicy(Evict::kLru) {}

  std::optional<Move> next_detach(const NpuView& view, bool ops_had_their_turn) override;
  std::optional<Move> next_transfer(Direction direction, const NpuView& view) override;
  Seconds host_time(OpId op, const NpuView& view) override;
  bool op_may_start(OpId op, const NpuView& view) override;
  void op_started(OpId op, const NpuView& view) override;
  void op_ended(OpId op, const NpuView& view) override;
  void iteration_started(const NpuView& view) override;
  void transfer_started(Direction direction, const Move& move, const NpuView& view) override;
  void transfer_ended(Direction direction, const Move& move, const NpuView& view) override;

 private:
  struct Swap {
    TensorId tensor;
    OpId evicted, back;  // the two accesses
    bool reads;          // else the back access overwrites it: nothing to load
    Seconds load;        // what its load takes
    Seconds lead;        // the trigger comes so long before the back access
    OpId trigger;
    Seconds arrived{-1};  // when its last load ended
  };
  enum class Side { kPassive, kOut, kIn };

  Seconds measured(Seconds now) const { return running_ > 0 ? busy_ + (now - since_) : busy_; }
  void choose(const NpuView& view);
  void place_triggers(const NpuView& view);
  std::optional<Move> next_out(const NpuView& view);
  std::optional<Move> next_in(const NpuView& view);
  bool fits_in_pool(TensorId t, const NpuView& view) const;
  bool used_now(TensorId t, const NpuView& view) const;
  Move whole(TensorId t, const NpuView& view) const;

  int running_ = 0;  // ops
  Seconds busy_, since_;
  std::vector<Seconds> ready_, start_, end_;  // per op; the last two measured in iteration 1
  std::vector<Swap> swaps_;
  std::vector<std::vector<std::size_t>> evicted_at_, triggered_at_, back_at_;  // per op: swaps
  std::deque<std::size_t> outs_, ins_;
  Side offered_[2] = {Side::kPassive, Side::kPassive}, moving_[2] = {Side::kPassive, Side::kPassive};
};

}  // namespace hyperoffload
