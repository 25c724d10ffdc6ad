// A policy decides, while time runs, what moves between HBM and the pool. One object an NPU.
// The replay asks within an instant, in this order: detaches, then ops, then detaches again (now those that
// answer to ops that could not start), then one transfer a direction; again until nothing changes. A policy that answers the same questions the same way is deterministic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/replay/npu_view.h"

namespace hyperoffload {

struct Plan;

struct Move {  // of the bytes [from, to) of a tensor
  TensorId tensor;
  Bytes from, to;
  int iteration = 0;  // for the record
  int action = -1;    // index into a plan's actions, for the record
  Seconds handling{};  // before the link's latency: what a fault takes until its copy is under way
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::vector<TensorId> initial_pool(const NpuView&) { return {}; }  // beside `initial: pool`
  virtual std::vector<std::vector<Bytes>> cuts(const Graph&) { return {}; }  // byte offsets of pieces
  virtual std::optional<Move> next_detach(const NpuView&, bool /*ops_had_their_turn*/) { return std::nullopt; }
  // Whether it was checked with its NPU's share of the pool (fair_pool()), and is held to it.
  virtual bool keeps_to_share() const { return false; }
  // The plan whose addresses the replay is to verify, or that takes only part of HBM; null: none.
  virtual const Plan* addressed_plan() const { return nullptr; }
  // Asked once, when the op's engine is free and its dependencies are done: so long (>= 0) the host needs
  // before the op is looked at further.
  virtual Seconds host_time(OpId, const NpuView&) { return Seconds(0); }
  virtual bool op_may_start(OpId, const NpuView&) { return true; }
  // What would start on an idle direction now if there is room; it starts as soon as there is.
  virtual std::optional<Move> next_transfer(Direction, const NpuView&) { return std::nullopt; }
  // Told when the engine is free and dependencies are done, but bytes are absent or room is short (none:
  // the iteration's inputs lack room).
  virtual void op_blocked(OpId) {}
  // All that it wants to do with a tensor born in `iteration` is done: the tensor may die.
  virtual bool done_with(TensorId, int /*iteration*/) { return true; }
  virtual void op_started(OpId, const NpuView&) {}
  virtual void op_ended(OpId, const NpuView&) {}
  virtual void iteration_started(const NpuView&) {}
  virtual void inputs_taken(const NpuView&) {}
  virtual void tensor_died(TensorId) {}
  virtual void transfer_started(Direction, const Move&, const NpuView&) {}
  virtual void transfer_ended(Direction, const Move&, const NpuView&) {}
};

}  // namespace hyperoffload
