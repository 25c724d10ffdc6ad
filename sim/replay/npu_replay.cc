#include "sim/replay/npu_replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/check.h"
#include "sim/model/error.h"
#include "sim/replay/residents.h"

namespace hyperoffload {
namespace {

// Calls visit(tensor, reads, writes) once a tensor; both lists are sorted.
template <class Visit>
void for_each_access(const Op& op, Visit visit) {
  for (TensorId t : op.reads) visit(t, true, std::binary_search(op.writes.begin(), op.writes.end(), t));
  for (TensorId t : op.writes)
    if (!std::binary_search(op.reads.begin(), op.reads.end(), t)) visit(t, false, true);
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
      hbm_(options.everything_in_place ? Bytes::max() : hardware.hbm_usable()),
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
  if (const Plan* plan = policy_->addressed_plan(); plan && !options.everything_in_place) {
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
  for_each_access(op, [&](TensorId t, bool reads, bool writes) {
    bool here;
    if (op.memory == Tier::kHbm)
      here = (!reads || memory_.resident(t)) && (!writes || !memory_.storing(t));
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
  for_each_access(op, [&](TensorId t, bool, bool) { access_over(t); });
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

bool NpuReplay::detach_all(bool ops_had_their_turn) {
  bool any = false;
  while (const auto move = policy_->next_detach(view_, ops_had_their_turn)) {
    memory_.detach(move->tensor, move->from, move->to);
    if (watch_) watch_->detach(move->tensor, move->from, move->to);
    die_if_over(move->tensor);
    any = true;
  }
  return any;
}

bool NpuReplay::start_transfers() {
  Direction order[] = {Direction::kPoolToHbm, Direction::kHbmToPool};
  // One engine for both serves who came to the head of its queue first.
  if (one_transfer_engine_ && queued_[1].value >= 0 && (queued_[0].value < 0 || queued_[1] < queued_[0]))
    std::swap(order[0], order[1]);
  const bool first = start_transfer(order[0]);
  return start_transfer(order[1]) || first;
}

// True: a transfer of no duration has come and gone.
bool NpuReplay::start_transfer(Direction direction) {
  const int d = static_cast<int>(direction);
  if (view_.busy[d]) return false;
  const auto move = policy_->next_transfer(direction, view_);
  if (!move) {
    queued_[d] = Seconds(-1);
    room_short_[d] = Bytes(0);
    return false;
  }
  if (queued_[d].value < 0) queued_[d] = view_.now;
  if (one_transfer_engine_ && view_.busy[1 - d]) return false;
  if (direction == Direction::kPoolToHbm) {
    const Bytes absent = memory_.absent_bytes(move->tensor, move->from, move->to);
    if (!hbm_.fits(absent)) {
      if (room_short_[d] == Bytes(0)) room_short_[d] = absent - (hbm_.capacity() - hbm_.used());
      return false;
    }
  } else {
    pool_pieces_.clear();
    memory_.unallocated(move->tensor, move->from, move->to, pool_pieces_);
    if (!memory_.pool().fits(pool_pieces_)) {
      if (room_short_[d] == Bytes(0))
        room_short_[d] = memory_.pool().needs(pool_pieces_) - memory_.pool().left_for(index_);
      wait_for_pool();
      return false;
    }
  }
  begin_copy(direction, *move, std::exchange(queued_[d], Seconds(-1)));
  return !view_.busy[d];
}

void NpuReplay::begin_copy(Direction direction, const Move& move, Seconds queued) {
  const int d = static_cast<int>(direction);
  memory_.start_transfer(move.tensor, move.from, move.to, direction == Direction::kPoolToHbm);
  if (watch_ && direction == Direction::kPoolToHbm) watch_->prefetch(move.action);
  view_.busy[d] = true;
  CopySlot& slot = copy_slots_[d];
  slot.move = move;
  transfers_.emplace_back(transfer_count_++,
                          TransferRecord{direction, move.iteration, move.tensor, move.from, move.to, queued,
                                         view_.now, view_.now, Seconds(-1), move.action,
                                         std::exchange(room_short_[d], Bytes(0))});
  sample_series();
  policy_->transfer_started(direction, move, view_);
  if (move.handling.value > 0)
    machine_.after(move.handling, slot.handled);
  else
    carry(direction);
}

void NpuReplay::carry(Direction direction) {
  CopySlot& slot = copy_slots_[static_cast<int>(direction)];
  const Move& move = slot.move;
  if (machine_.copy_takes_time(direction, move.to - move.from))
    machine_.copy(index_, direction, memory_.places(move.tensor, move.from, move.to),
                  weigh_demand_ && awaited(move.tensor), slot.flowing, slot);
  else
    end_copy(direction);
}

// The record of the transfer under way in a direction: at most one of each, so near the end.
std::pair<std::int64_t, TransferRecord>& NpuReplay::open_transfer(Direction direction) {
  for (auto it = transfers_.rbegin(); it != transfers_.rend(); ++it)
    if (it->second.end.value < 0 && it->second.direction == direction) return *it;
  check_failed(__FILE__, __LINE__, "no transfer is under way");
}

void NpuReplay::copy_flows(Direction direction) {
  open_transfer(direction).second.flow_start = machine_.now();
}

void NpuReplay::end_copy(Direction direction) {
  const int d = static_cast<int>(direction);
  view_.now = machine_.now();
  view_.busy[d] = false;
  dirty_ = true;
  const Move move = copy_slots_[d].move;
  auto& [index, record] = open_transfer(direction);
  record.end = view_.now;
  last_transfer_[move.tensor.index()] = index;
  if (series_) series_->carried(direction, record.flow_start, record.end, record.bytes());
  if (finished_) return;
  memory_.end_transfer(move.tensor, move.from, move.to, direction == Direction::kPoolToHbm);
  policy_->transfer_ended(direction, move, view_);
  die_if_over(move.tensor);
}

void NpuReplay::sample_series() {
  if (!series_ || finished_) return;
  HbmFill fill = memory_.hbm_by_kind();
  fill[kTensorKinds] = hbm_.used() - total(fill);
  series_->sample(view_.now, fill, memory_.pool().used());
}

void NpuReplay::sample_memory() {
  if (!options_.full_record || finished_) return;
  if (!record_.memory.empty() && record_.memory.back().hbm == memory_.hbm().used() &&
      record_.memory.back().pool == memory_.pool().used())
    return;
  record_.memory.push_back({view_.now, memory_.hbm().used(), memory_.pool().used()});
}

Bytes NpuReplay::working_set(const Op& op) const {
  Bytes sum = op.workspace;
  for_each_access(op, [&](TensorId t, bool, bool) { sum += graph_.tensor(t).bytes; });
  return sum;
}

std::string NpuReplay::waiting_for() {
  std::string text;
  const auto add = [&](std::string reason) { text += (text.empty() ? "" : "; ") + std::move(reason); };
  if (!view_.inputs_taken)
    add(fmt::format("the inputs of iteration {} wait for {} B of HBM, {} B are free", view_.iteration,
                    view_.input_bytes.value, (hbm_.capacity() - hbm_.used()).value));
  for (std::size_t e = 0; e < engine_count(); ++e)
    if (const std::string ranks = machine_.waits_for_ranks(index_, EngineId(e)); !ranks.empty())
      add(fmt::format("collective \"{}\" waits for rank {}", graph_.op(view_.running[e]).name, ranks));
  for (std::size_t e = 0; view_.inputs_taken && e < engine_count(); ++e) {
    const auto& queue = graph_.engine_ops(EngineId(e));
    if (!view_.running[e].is_none() || view_.ops_done[e] >= static_cast<int>(queue.size())) continue;
    const OpId id = queue[static_cast<std::size_t>(view_.ops_done[e])];
    const Op& op = graph_.op(id);
    TensorId missing;
    const bool in_hbm = op.memory == Tier::kHbm;
    const Bytes capacity = in_hbm ? hbm_.capacity() : memory_.pool().most_for(index_);
    if (heads_[e].ready.value < 0) {
      add(fmt::format("op \"{}\" waits for ops of other engines", op.name));
    } else if (const Bytes all = working_set(op); all > capacity) {
      add(fmt::format("op \"{}\" is short of {} B of {}: its tensors and workspace take {} B, {} B are there",
                      op.name, (all - capacity).value, in_hbm ? "HBM" : "the pool", all.value,
                      capacity.value));
    } else if (!accesses_in_place(id, missing)) {
      add(fmt::format("op \"{}\" waits for \"{}\" ({} B; {} B of HBM are free)", op.name,
                      graph_.tensor(missing).name, graph_.tensor(missing).bytes.value,
                      (hbm_.capacity() - hbm_.used()).value));
    } else {
      const Bytes free = room_left(op), need = room_needed(op);
      add(fmt::format("op \"{}\" is short of {} B of {} (needs {} B, {} B are free)", op.name,
                      (need - free).value, in_hbm ? "HBM" : "the pool", need.value, free.value));
    }
  }
  return fmt::format("{}; largest residents of HBM: {}", text,
                     largest_residents(graph_, memory_, Tier::kHbm));
}

NpuRecord NpuReplay::take_record(bool with_series) {
  if (series_ && with_series) record_.series = series_->take();
  std::vector<std::int64_t> absolute;
  for (auto& [index, transfer] : transfers_) {
    absolute.push_back(index);
    record_.transfers.push_back(transfer);
  }
  for (OpRecord& op : record_.ops) {
    const auto it =
        std::lower_bound(absolute.begin(), absolute.end(), static_cast<std::int64_t>(op.waited_transfer));
    const bool kept = op.waited_transfer >= 0 && it != absolute.end() && *it == op.waited_transfer;
    op.waited_transfer = kept ? static_cast<int>(it - absolute.begin()) : -1;
  }
  return std::move(record_);
}

}  // namespace hyperoffload
