// What NpuReplay tells of itself: levels over time, what a stuck run waits for, its record.
#include "sim/replay/npu_replay.h"

#include <fmt/format.h>

#include "sim/replay/residents.h"

namespace hyperoffload {

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
