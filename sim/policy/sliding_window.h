// `sliding_window`: look-ahead at run time by next use, after MindSpore's runtime variant of HyperOffload. Of that is
// known, from its headers: sets ordered by next use, an initial horizon of 1 op, a buffer of 0.1 x memory, a stream
// each way. What else is needed is ours:
//
// The window is the first op in program order that is not done, and the `horizon` ops behind it, those of the next
// iteration included. What these read is
// loaded in the order of use, into free room, or into that of tensors which the window does not use. While less
// than `buffer` of HBM is free, the tensor used again last leaves, if the window does not use it. An op that waits comes
// first: for its bytes and room anything may leave that no running op and not that op itself uses, last used first. A
// victim without a valid pool copy is stored before; loads and stores run beside each other. Uses behind a
// `known_after` op count once that is done. At the start tensors are placed by first use, `buffer` left free.
// O(log tensors) a decision, plus the pinned ones skipped.
#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/policy/policy.h"

namespace hyperoffload {

class SlidingWindowPolicy final : public Policy {
 public:
  SlidingWindowPolicy(int horizon, double buffer) : horizon_(horizon), buffer_(buffer) {}

  std::vector<TensorId> initial_pool(const NpuView& view) override;
  std::optional<Move> next_detach(const NpuView& view, bool ops_had_their_turn) override;
  std::optional<Move> next_transfer(Direction direction, const NpuView& view) override;
  void op_blocked(OpId op) override { blocked_.insert(op); }
  void op_started(OpId op, const NpuView& view) override;
  void op_ended(OpId op, const NpuView& view) override;
  void iteration_started(const NpuView& view) override;
  void inputs_taken(const NpuView& view) override;
  void tensor_died(TensorId t) override { forget(t); }
  void transfer_started(Direction direction, const Move& move, const NpuView& view) override;
  void transfer_ended(Direction direction, const Move& move, const NpuView& view) override;

 private:
  // An op's place counted through all iterations; kNever: no use is known.
  using Place = std::int64_t;
  static constexpr Place kNever = std::int64_t{1} << 62;
  struct Victim {
    TensorId tensor;
    bool clean = false;
  };

  void follow(const Graph& graph);
  Place place_of(OpId op, int iteration) const { return iteration * ops_ + op.value; }
  Place next_use(TensorId t, const NpuView& view) const;
  void rank(TensorId t, const NpuView& view);
  void forget(TensorId t);
  void move_window(const NpuView& view);

  std::optional<OpId> served(const NpuView& view);
  bool needs_something(OpId op, const NpuView& view) const;
  std::optional<TensorId> wanted_by(OpId op, const NpuView& view) const;
  Bytes room_for(OpId op, const NpuView& view) const;
  std::optional<TensorId> wanted_by_window(const NpuView& view) const;
  std::optional<TensorId> wanted(const NpuView& view);
  std::optional<TensorId> must_store(const NpuView& view);
  std::optional<Victim> victim(const NpuView& view);
  std::optional<Victim> last_used(const NpuView& view, OpId for_op, Place beyond) const;
  bool pinned(TensorId t, OpId for_op, const NpuView& view) const;
  bool fits(Bytes bytes, const NpuView& view) const;

  const int horizon_;
  const double buffer_;
  Place ops_ = 0;
  std::size_t first_open_ = 0;  // ops in front of it, in program order, are done
  std::set<OpId> blocked_;                         // none() first: the iteration's inputs
  std::optional<OpId> served_;
  std::set<std::pair<Place, TensorId>> by_use_;    // of residents: the last is the first victim
  std::vector<Place> ranked_;                      // per tensor: its key there; < 0: not in it
  std::vector<std::vector<TensorId>> known_by_;    // per op: tensors whose uses it makes known
  std::optional<TensorId> asked_to_leave_;         // a victim whose store is asked for
  std::optional<TensorId> leaving_;                // a victim being stored
  std::vector<TensorId> stored_;                   // victims whose store has ended
};

}  // namespace hyperoffload
