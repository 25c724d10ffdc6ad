// The replay of one NPU: ops on engines, memory, and the transfers its policy asks for.
// Driven by World (replay.cc): completions tell it what ended, settle() does all that can be done now.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/model/check_addresses.h"
#include "sim/model/op_cost.h"
#include "sim/policy/policy.h"
#include "sim/replay/replay.h"

namespace hyperoffload {

class NpuReplay {
 public:
  NpuReplay(int index, const RankWork& work, const Hardware& hardware, std::unique_ptr<Policy> policy,
            const ReplayOptions& options, Machine& machine, Pool& pool);

  void place_initial();  // InfeasibleError if it doesn't fit
  void settle();         // frees, then takes, until nothing changes at this instant

  bool finished() const { return finished_; }
  bool waits_for_pool() const { return waits_for_pool_; }
  bool ever_waited_for_pool() const { return ever_waited_for_pool_; }
  bool take_dirty() { return std::exchange(dirty_, false); }
  void make_dirty() { dirty_ = true; }
  std::string waiting_for();  // one sentence, for a run that is stuck
  // The first address of its plan that did not hold, and when; empty: all did.
  const std::string& address_fault() const { return address_fault_; }
  Seconds last_iteration() const { return record_.iteration_end.back() - record_.iteration_start.back(); }
  NpuRecord take_record(bool with_series);

 private:
  struct OpSlot final : Completion {
    NpuReplay* owner = nullptr;
    EngineId engine;
    void done() override { owner->end_op(engine); }
  };
  struct CopySlot final : Completion {
    struct Flowing final : Completion {
      CopySlot* slot = nullptr;
      void done() override { slot->owner->copy_flows(slot->direction); }
    } flowing;
    struct Handled final : Completion {
      CopySlot* slot = nullptr;
      void done() override { slot->owner->carry(slot->direction); }
    } handled;
    NpuReplay* owner = nullptr;
    Direction direction = Direction::kPoolToHbm;
    Move move;
    void done() override { owner->end_copy(direction); }
  };
  struct HostSlot final : Completion {
    NpuReplay* owner = nullptr;
    EngineId engine;
    void done() override { owner->host_is_done(engine); }
  };
  struct Head {  // the next op of an engine, while it waits
    Seconds ready{-1}, resident{-1}, decided{0};
    bool waits_for_host = false;
    TensorId missing;
    Bytes room_short;
  };

  bool start_iteration();
  bool start_inputs();
  bool start_ops();
  bool try_start(EngineId engine);
  void ask_host(EngineId engine, OpId op);
  void host_is_done(EngineId engine);
  bool accesses_in_place(OpId op, TensorId& missing) const;
  Bytes room_needed(const Op& op);
  Bytes room_left(const Op& op) const;
  bool room_is_there(const Op& op) { return room_needed(op) <= room_left(op); }
  Bytes working_set(const Op& op) const;
  void begin_op(EngineId engine, OpId op);
  void end_op(EngineId engine);
  void is_born(TensorId t);
  void access_over(TensorId t);
  void die_if_over(TensorId t);
  bool detach_all(bool ops_had_their_turn);
  bool start_transfers();
  bool start_transfer(Direction direction);
  void demand_for(const Op& op);
  bool awaited(TensorId tensor) const;
  bool fits_in_pool(TensorId t);
  void wait_for_pool();
  void begin_copy(Direction direction, const Move& move, Seconds queued);
  void carry(Direction direction);
  std::pair<std::int64_t, TransferRecord>& open_transfer(Direction direction);
  void copy_flows(Direction direction);
  void end_copy(Direction direction);
  void note_address_fault();
  void sample_memory();
  void sample_series();
  std::size_t engine_count() const { return graph_.engines().size(); }

  const int index_;
  const Graph& graph_;
  const std::vector<OpCost>& costs_;
  const ReplayOptions& options_;
  const bool one_transfer_engine_, weigh_demand_;
  std::unique_ptr<Policy> policy_;
  Machine& machine_;
  Ledger hbm_;
  Memory memory_;
  NpuView view_;

  std::vector<OpSlot> op_slots_;
  std::vector<HostSlot> host_slots_;
  CopySlot copy_slots_[2];
  std::vector<Head> heads_;
  std::vector<std::size_t> open_record_;     // per engine: index of the running op's record
  std::vector<EngineId> engine_order_;       // scratch: engines by their next op
  std::vector<PoolPiece> pool_pieces_;       // scratch
  std::vector<Extents> workspace_;           // per engine: of a running op in the pool
  std::vector<int> accesses_left_;           // per tensor that dies: of the iteration it was born in
  std::vector<int> born_in_;                 // per tensor that dies: that iteration
  std::vector<std::int64_t> last_transfer_;  // per tensor: absolute index of its last transfer
  std::vector<TensorId> inputs_;
  std::size_t ops_left_ = 0;  // of this iteration
  bool finished_ = false, dirty_ = true, waits_for_pool_ = false,
       ever_waited_for_pool_ = false;
  Seconds queued_[2] = {Seconds(-1), Seconds(-1)};
  Bytes room_short_[2];  // of the head of each queue, when it was first short

  NpuRecord record_;
  std::optional<SeriesRecorder> series_;
  std::unique_ptr<AddressCheck> addresses_;  // null: the plan has none, or there is no plan
  Residency* watch_ = nullptr;               // theirs
  std::string address_fault_;
  std::deque<std::pair<std::int64_t, TransferRecord>> transfers_;  // with their absolute index
  std::int64_t transfer_count_ = 0;
};

}  // namespace hyperoffload
