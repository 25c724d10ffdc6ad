// The transfers of NpuReplay: detaching, starting, flowing, ending.
#include "sim/replay/npu_replay.h"

#include <utility>

#include "sim/model/check.h"

namespace hyperoffload {

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

}  // namespace hyperoffload
