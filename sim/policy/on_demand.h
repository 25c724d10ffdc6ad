// `on_demand`: reactive swapping, as a runtime does it that sees only the next op (the behaviour
// HyperOffload, arXiv 2602.00748, argues against; eviction order `oldest` is that of hyper-parallel's
// warm-up step, its issue 693, but for ties: there the larger goes first). Rules 19-21 of docs/semantics.md.
//
// A miss or a lack of room makes the op wait while one service moves one tensor at a time.
// O(log residents) an eviction, plus the pinned tensors skipped.
#pragma once

#include <set>
#include <utility>

#include "sim/policy/policy.h"

namespace hyperoffload {

class OnDemandPolicy : public Policy {
 public:
  enum class Evict { kLru, kOldest };
  explicit OnDemandPolicy(Evict evict) : evict_(evict) {}

  std::vector<TensorId> initial_pool(const NpuView& view) override;
  std::optional<Move> next_detach(const NpuView& view, bool ops_had_their_turn) override;
  std::optional<Move> next_transfer(Direction direction, const NpuView& view) override;
  void op_blocked(OpId op) override { blocked_.insert(op); }
  void op_started(OpId op, const NpuView& view) override;
  void op_ended(OpId op, const NpuView& view) override;
  void inputs_taken(const NpuView& view) override;
  void tensor_died(TensorId t) override { forget(t); }
  void transfer_started(Direction direction, const Move& move, const NpuView& view) override;
  void transfer_ended(Direction direction, const Move& move, const NpuView& view) override;

 protected:
  bool anyone_waits() const { return !blocked_.empty(); }
  void forget(TensorId t);
  void touched(TensorId t, bool taken, const NpuView& view);

 private:
  struct Step {
    enum class Kind { kDetach, kLoad, kStore } kind;
    TensorId tensor;
    OpId served;            // the op it is for
    bool eviction = false;  // of a store: the tensor leaves HBM once it is done
  };
  std::optional<Step> next_step(const NpuView& view);
  void no_longer_blocked(OpId op);
  std::optional<Step> step_for(OpId op, const NpuView& view) const;
  std::optional<Step> step_for_pool_op(OpId op, const NpuView& view) const;
  std::optional<Step> evict_one(OpId served, const NpuView& view) const;
  bool pinned(TensorId t, OpId served, const NpuView& view) const;
  void rank(TensorId t, Seconds when);

  Evict evict_;
  std::optional<Step> asked_;      // the transfer asked for last: the one under way, if any is
  std::optional<OpId> served_;     // the op being served; it has not started yet
  std::optional<Step> stored_;     // a victim whose store has just ended
  std::set<OpId> blocked_;                            // none() first: the iteration's inputs
  std::set<std::pair<Seconds, TensorId>> residents_;  // the first is the next victim
  std::vector<Seconds> ranked_;                       // per tensor: its key in residents_; < 0: not in it
};

}  // namespace hyperoffload
