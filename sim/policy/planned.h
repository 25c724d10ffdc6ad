// `graph` and any plan file: a plan's actions, executed as docs/semantics.md rules 13-16 say.
//
// One body repeats over the iterations (two where actions are restricted to the first or the later
// ones). Per tensor the actions form a chain; each counts its place in it over all iterations, so
// "done so far" is one number a tensor. What an action or an op waits for is worked out once per body:
// O(accesses + actions x engines) to set up, O(accesses) a question.
#pragma once

#include "sim/model/plan.h"
#include "sim/policy/policy.h"

namespace hyperoffload {

class PlannedPolicy final : public Policy {
 public:
  PlannedPolicy(const Graph& graph, const Plan& plan);  // both must outlive it

  std::vector<TensorId> initial_pool(const NpuView&) override { return plan_.initial_pool; }
  const Plan* addressed_plan() const override { return plan_.arena || plan_.room ? &plan_ : nullptr; }
  std::vector<std::vector<Bytes>> cuts(const Graph&) override;
  bool keeps_to_share() const override { return true; }
  std::optional<Move> next_detach(const NpuView& view, bool) override;
  bool op_may_start(OpId op, const NpuView& view) override;
  std::optional<Move> next_transfer(Direction direction, const NpuView& view) override;
  bool done_with(TensorId t, int iteration) override { return done_[t.index()] >= chain_before(t, iteration + 1); }
  void op_ended(OpId op, const NpuView& view) override;
  void iteration_started(const NpuView& view) override;
  void inputs_taken(const NpuView& view) override { iteration_started(view); }
  void transfer_ended(Direction direction, const Move& move, const NpuView& view) override;

 private:
  struct Need {  // an op's access: the tensor's chain must have come this far
    TensorId tensor;
    int place = -1;       // of the last relevant action before the access in this body; -1: in none
    bool stores = false;  // stores are relevant too
  };
  struct Body {
    std::vector<int> queue[2];             // actions by direction, in file order
    std::vector<std::vector<int>> chain;   // per tensor: actions in order
    std::vector<std::vector<OpId>> waits;  // per action: accesses to be done first, one an engine at most
    std::vector<std::vector<Need>> needs;  // per op
    std::vector<std::vector<TensorId>> anchored_detaches;  // per op: tensors with a detach behind it
    std::vector<TensorId> starting_detaches;               // tensors with a detach at the iteration's start
    std::vector<int> last_move, last_any;  // per tensor: place of its last prefetch or detach, last action
  };

  Body build_body(int iteration) const;
  void build_chain(Body& body, TensorId t) const;
  const Body& body(int iteration) const { return iteration == 0 ? first_ : later_; }
  std::int64_t chain_before(TensorId t, int iteration) const;  // actions on t in the iterations before
  std::int64_t needed(const Need& need, int iteration) const;
  bool anchored(const Body& body, int action, int iteration, const NpuView& view) const;
  std::optional<Move> due_detach(TensorId t, const NpuView& view) const;

  const Graph& graph_;
  const Plan& plan_;
  Body first_, later_;
  std::vector<std::int64_t> done_;  // per tensor: actions done, over all iterations
  std::vector<TensorId> maybe_detaches_;  // tensors whose next action may be a detach that is due
  int queue_iteration_[2] = {0, 0};
  std::size_t queue_place_[2] = {0, 0};
};

}  // namespace hyperoffload
