#include "sim/replay/npu_replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/check.h"
#include "sim/model/error.h"
#include "sim/replay/op_accesses.h"
#include "sim/replay/residents.h"

namespace hyperoffload {
namespace {

// What may be taken of HBM: a plan may leave some of it free.
Bytes room_of(const Policy& policy, const Hardware& hardware) {
  const Plan* const plan = policy.addressed_plan();
  return plan ? plan->room_of(hardware.hbm_usable()) : hardware.hbm_usable();
}

}  // namespace

NpuReplay::NpuReplay(int index, const RankWork& work, const Hardware& hardware,
                     std::unique_ptr<Policy> policy, const ReplayOptions& options, Machine& machine,
                     Pool& pool)
    : index_(index),
      graph_(*work.graph),
      costs_(work.costs),
      options_(options),
      one_transfer_engine_(hardware.transfer_engines == 1),
      weigh_demand_(hardware.priority.demand != hardware.priority.prefetch),
      policy_(std::move(policy)),
      machine_(machine),
      hbm_(options.everything_in_place ? Bytes::max() : room_of(*policy_, hardware)),
      memory_(graph_, policy_->cuts(graph_), hbm_, pool, index),
      view_{graph_, hardware, memory_, -1, Seconds(0), {}, {}, {false, false}, true, Bytes(0)} {
  const Graph& graph = graph_;
  const std::size_t engines = engine_count();
  view_.ops_done.assign(engines, 0);
  view_.running.assign(engines, OpId::none());
  heads_.resize(engines);
  open_record_.assign(engines, 0);
  workspace_.resize(engines);
  op_slots_.resize(engines);
  host_slots_.resize(engines);
  for (std::size_t e = 0; e < engines; ++e) {
    op_slots_[e].owner = this;
    op_slots_[e].engine = EngineId(e);
    host_slots_[e].owner = this;
    host_slots_[e].engine = EngineId(e);
  }
  for (int d = 0; d < 2; ++d) {
    copy_slots_[d].owner = this;
    copy_slots_[d].direction = static_cast<Direction>(d);
    copy_slots_[d].flowing.slot = copy_slots_[d].handled.slot = &copy_slots_[d];
  }
  if (options.series) series_.emplace(engines, hardware.npu_count > 64 ? 256 : 1024);
  if (const Plan* plan = policy_->addressed_plan(); plan && plan->arena && !options.everything_in_place) {
    addresses_ = std::make_unique<AddressCheck>(graph, *plan, hardware.hbm_usable());
    watch_ = &addresses_->residency();
  }
  if (policy_->keeps_to_share()) pool.hold_to_share(index);
  accesses_left_.assign(graph.tensors().size(), 0);
  born_in_.assign(graph.tensors().size(), -1);
  last_transfer_.assign(graph.tensors().size(), -1);
  for (std::size_t t = 0; t < graph.tensors().size(); ++t)
    if (graph.is_input(TensorId(t))) {
      inputs_.push_back(TensorId(t));
      view_.input_bytes += graph.tensors()[t].bytes;
    }
}

bool NpuReplay::fits_in_pool(TensorId t) {
  pool_pieces_.clear();
  memory_.unallocated(t, Bytes(0), graph_.tensor(t).bytes, pool_pieces_);
  return memory_.pool().fits(pool_pieces_);
}

void NpuReplay::place_initial() {
  std::vector<char> in_pool(graph_.tensors().size(), 0);
  if (!options_.everything_in_place) {
    for (TensorId t : policy_->initial_pool(view_)) in_pool[t.index()] = 1;
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t)
      if (graph_.tensors()[t].initial == Tier::kPool) in_pool[t] = 1;
  }
  for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
    if (!graph_.tensors()[t].persistent) continue;
    const Tier tier = in_pool[t] ? Tier::kPool : Tier::kHbm;
    const Bytes bytes = graph_.tensors()[t].bytes;
    if (tier == Tier::kHbm ? !hbm_.fits(bytes) : !fits_in_pool(TensorId(t)))
      throw InfeasibleError(fmt::format(
          "the start does not fit: {} for \"{}\" ({} B of {} B taken); largest residents: {}",
          tier == Tier::kHbm
              ? fmt::format("HBM is short of {} B", (bytes - (hbm_.capacity() - hbm_.used())).value)
              : memory_.pool().shortage({index_, TensorId(t), Bytes(0), bytes}),
          graph_.tensors()[t].name, (tier == Tier::kHbm ? hbm_.used() : memory_.pool().used()).value,
          (tier == Tier::kHbm ? hbm_.capacity() : memory_.pool().capacity()).value,
          largest_residents(graph_, memory_, tier)));
    memory_.place(TensorId(t), tier);
  }
  if (watch_) watch_->begin();
  sample_series();
}

void NpuReplay::settle() {
  view_.now = machine_.now();
  waits_for_pool_ = false;
  bool changed = true;
  while (changed && !finished_) {
    changed = start_iteration();
    if (finished_) break;
    changed |= detach_all(false);
    changed |= start_inputs();
    // An op that takes no time has ended: its frees come before the next take. So do those of detaches.
    if (start_ops() || detach_all(true)) {
      changed = true;
      continue;
    }
    changed |= start_transfers();
  }
  note_address_fault();
  sample_memory();
  sample_series();
}

void NpuReplay::note_address_fault() {
  if (!addresses_ || !addresses_->fault() || !address_fault_.empty()) return;
  address_fault_ = fmt::format("at {:.9g} s on NPU {}, iteration {}: {}", view_.now.value, index_,
                               view_.iteration + 1, *addresses_->fault());
}

bool NpuReplay::start_iteration() {
  if (ops_left_ > 0) return false;
  if (view_.iteration >= 0) record_.iteration_end.push_back(view_.now);
  if (view_.iteration + 1 == options_.iterations) {
    finished_ = true;
    record_.hbm_peak = hbm_.peak();
    if (series_) series_->finish(view_.now);
    return false;
  }
  ++view_.iteration;
  record_.iteration_start.push_back(view_.now);
  if (series_) series_->start_iteration(view_.iteration, view_.now);
  if (!options_.full_record) {
    record_.ops.clear();
    std::erase_if(transfers_, [](const auto& entry) { return entry.second.end.value >= 0; });
  }
  ops_left_ = graph_.ops().size();
  view_.inputs_taken = inputs_.empty();
  if (view_.inputs_taken) record_.inputs_taken.push_back(view_.now);
  std::fill(view_.ops_done.begin(), view_.ops_done.end(), 0);
  std::fill(heads_.begin(), heads_.end(), Head{});
  policy_->iteration_started(view_);
  return true;
}

bool NpuReplay::start_inputs() {
  if (view_.inputs_taken) return false;
  if (std::any_of(inputs_.begin(), inputs_.end(), [&](TensorId t) { return memory_.alive(t); })) return false;
  if (!memory_.hbm().fits(view_.input_bytes)) {
    policy_->op_blocked(OpId::none());
    return false;
  }
  for (TensorId t : inputs_) {
    memory_.place(t, Tier::kHbm);
    if (watch_) watch_->take_input(t);
    is_born(t);
  }
  sample_series();
  view_.inputs_taken = true;
  record_.inputs_taken.push_back(view_.now);
  policy_->inputs_taken(view_);
  return true;
}

// Starts what can start, engines in the program order of their next ops. True: one has ended, look again.
bool NpuReplay::start_ops() {
  engine_order_.clear();
  for (std::size_t e = 0; e < engine_count(); ++e)
    if (view_.running[e].is_none() &&
        view_.ops_done[e] < static_cast<int>(graph_.engine_ops(EngineId(e)).size()))
      engine_order_.push_back(EngineId(e));
  const auto next_op = [&](EngineId e) {
    return graph_.engine_ops(e)[static_cast<std::size_t>(view_.ops_done[e.index()])];
  };
  std::sort(engine_order_.begin(), engine_order_.end(),
            [&](EngineId a, EngineId b) { return next_op(a) < next_op(b); });
  for (EngineId e : engine_order_)
    if (try_start(e)) return true;
  return false;
}

// True if the op has started and ended within this instant.
bool NpuReplay::try_start(EngineId engine) {
  const OpId id = graph_.engine_ops(engine)[static_cast<std::size_t>(view_.ops_done[engine.index()])];
  const Op& op = graph_.op(id);
  for (OpId dep : graph_.cross_engine_deps(id))
    if (!view_.op_done(dep)) return false;
  Head& head = heads_[engine.index()];
  if (head.ready.value < 0) {
    head.ready = view_.now;
    if (!options_.everything_in_place) ask_host(engine, id);
  }
  if (!view_.inputs_taken || head.waits_for_host) return false;
  if (!options_.everything_in_place) {
    const bool here = accesses_in_place(id, head.missing);
    if (!policy_->op_may_start(id, view_) || !here) {
      head.resident = Seconds(-1);
      if (weigh_demand_) demand_for(op);
      policy_->op_blocked(id);
      return false;
    }
  }
  if (head.resident.value < 0) head.resident = view_.now;
  if (!room_is_there(op)) {
    if (head.room_short == Bytes(0)) head.room_short = room_needed(op) - room_left(op);
    if (op.memory == Tier::kPool) wait_for_pool();
    policy_->op_blocked(id);
    return false;
  }
  begin_op(engine, id);
  return view_.running[engine.index()].is_none();
}

void NpuReplay::ask_host(EngineId engine, OpId id) {
  const Seconds takes = options_.host_overhead + policy_->host_time(id, view_);
  if (takes.value <= 0) return;
  heads_[engine.index()].waits_for_host = true;
  machine_.after(takes, host_slots_[engine.index()]);
}

void NpuReplay::host_is_done(EngineId engine) {
  heads_[engine.index()].waits_for_host = false;
  heads_[engine.index()].decided = machine_.now();
  dirty_ = true;
}

bool NpuReplay::accesses_in_place(OpId id, TensorId& missing) const {
  const Op& op = graph_.op(id);
  bool fine = true;
  for_each_read_then_write(op, [&](TensorId t, bool reads, bool writes) {
    bool here;
    if (op.memory == Tier::kHbm)
      here = (!reads || memory_.resident(t)) && (!writes || !memory_.in_transfer(t));  // arriving ones, too
    else
      here = (!reads || memory_.valid_in_pool(t)) && (!writes || !memory_.any_in_hbm(t));
    if (here) return;
    fine = false;
    missing = t;
  });
  return fine;
}

// Of its tier; of the pool as allocated.
Bytes NpuReplay::room_needed(const Op& op) {
  Bytes need = op.workspace;
  pool_pieces_.clear();
  if (op.memory == Tier::kPool) pool_pieces_.push_back(memory_.workspace_in_pool(op.workspace));
  for (TensorId t : op.writes) {
    if (options_.everything_in_place && memory_.alive(t)) continue;
    if (op.memory == Tier::kPool)
      memory_.unallocated(t, Bytes(0), graph_.tensor(t).bytes, pool_pieces_);
    else if (!std::binary_search(op.reads.begin(), op.reads.end(), t))
      need += memory_.absent_bytes(t);
  }
  return op.memory == Tier::kPool ? memory_.pool().needs(pool_pieces_) : need;
}

Bytes NpuReplay::room_left(const Op& op) const {
  return op.memory == Tier::kPool ? memory_.pool().left_for(index_) : hbm_.capacity() - hbm_.used();
}

void NpuReplay::wait_for_pool() {
  waits_for_pool_ = true;
  ever_waited_for_pool_ |= !policy_->keeps_to_share();  // its share nobody else can take
}

// An op waits for these tensors: what moves them now is demand.
void NpuReplay::demand_for(const Op& op) {
  for (Direction direction : {Direction::kPoolToHbm, Direction::kHbmToPool}) {
    if (!view_.busy[static_cast<int>(direction)]) continue;
    const TensorId moving = copy_slots_[static_cast<int>(direction)].move.tensor;
    for_each_access(op, [&](TensorId t, bool, bool) {
      if (t == moving) machine_.copy_is_demand(index_, direction);
    });
  }
}

// Whether an op that is ready waits for the tensor.
bool NpuReplay::awaited(TensorId tensor) const {
  for (std::size_t e = 0; e < engine_count(); ++e) {
    if (!view_.running[e].is_none() || heads_[e].ready.value < 0) continue;
    bool found = false;
    for_each_access(graph_.op(graph_.engine_ops(EngineId(e))[static_cast<std::size_t>(view_.ops_done[e])]),
                    [&](TensorId t, bool, bool) { found |= t == tensor; });
    if (found) return true;
  }
  return false;
}

void NpuReplay::begin_op(EngineId engine, OpId id) {
  const Op& op = graph_.op(id);
  const OpCost& cost = costs_[id.index()];
  if (op.memory == Tier::kHbm)
    hbm_.take(op.workspace);
  else if (op.workspace > Bytes(0))
    workspace_[engine.index()] = memory_.pool().take(memory_.workspace_in_pool(op.workspace));
  for (TensorId t : op.writes) {
    if (options_.everything_in_place && memory_.alive(t)) continue;
    if (!memory_.alive(t)) is_born(t);
    if (op.memory == Tier::kHbm)
      memory_.write_in_hbm(t);
    else
      memory_.write_in_pool(t);
  }
  if (watch_) watch_->start_op(id);
  view_.running[engine.index()] = id;
  Head& head = heads_[engine.index()];
  OpRecord record{view_.iteration,  id, head.ready, head.resident, view_.now, Seconds(-1), cost.alone,
                  TensorId::none(), -1, head.room_short, head.decided};
  if (head.resident > std::max(head.ready, head.decided) && !head.missing.is_none()) {
    record.waited_for = head.missing;
    record.waited_transfer =
        static_cast<int>(last_transfer_[head.missing.index()]);  // absolute until take_record()
  }
  head = Head{};
  sample_series();
  open_record_[engine.index()] = record_.ops.size();
  record_.ops.push_back(record);
  policy_->op_started(id, view_);
  if (machine_.takes_time(index_, id))
    machine_.run_op(index_, id, engine, op_slots_[engine.index()]);
  else
    end_op(engine);
}

void NpuReplay::end_op(EngineId engine) {
  const OpId id = view_.running[engine.index()];
  const Op& op = graph_.op(id);
  view_.now = machine_.now();
  view_.running[engine.index()] = OpId::none();
  ++view_.ops_done[engine.index()];
  --ops_left_;
  dirty_ = true;
  OpRecord& record = record_.ops[open_record_[engine.index()]];
  record.end = view_.now;
  if (series_) series_->ran(engine, record.start, record.end);
  if (op.memory == Tier::kHbm)
    hbm_.give(op.workspace);
  else if (op.workspace > Bytes(0))
    memory_.pool().give(memory_.workspace_in_pool(op.workspace), workspace_[engine.index()]);
  if (watch_) watch_->end_op(id);
  for_each_read_then_write(op, [&](TensorId t, bool, bool) { access_over(t); });
  policy_->op_ended(id, view_);
}

void NpuReplay::is_born(TensorId t) {
  accesses_left_[t.index()] = static_cast<int>(graph_.accesses(t).size());
  born_in_[t.index()] = view_.iteration;
}

void NpuReplay::access_over(TensorId t) {
  if (graph_.tensor(t).persistent) return;
  --accesses_left_[t.index()];
  die_if_over(t);
}

void NpuReplay::die_if_over(TensorId t) {
  if (graph_.tensor(t).persistent || accesses_left_[t.index()] > 0 || !memory_.alive(t) ||
      memory_.in_transfer(t) || !policy_->done_with(t, born_in_[t.index()]))
    return;
  memory_.die(t);
  if (watch_) watch_->die(t);
  policy_->tensor_died(t);
}

}  // namespace hyperoffload
