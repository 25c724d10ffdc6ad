#include "sim/import/kineto_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"

namespace hyperoffload {
namespace {

class MemoryTensors {
 public:
  MemoryTensors(const KinetoEvents& events, const std::vector<OpId>& ops, TraceMaker& maker)
      : events_(events), maker_(maker) {
    for (std::size_t i = 0; i < events.device.size(); ++i) {
      const auto launch = events.launches.find(events.device[i].correlation);
      if (launch == events.launches.end())
        ++without_launch_;
      else
        launches_.push_back({launch->second.start, ops[i]});
    }
    std::stable_sort(launches_.begin(), launches_.end(),
                     [](const Launch& a, const Launch& b) { return a.at < b.at; });
  }

  void add() {
    if (launches_.empty())
      throw InputError("--tensors memory", "no device event with a launch of its correlation",
                       "launches: they place the memory events");
    std::vector<MemoryEvent> memory = events_.memory;
    std::stable_sort(memory.begin(), memory.end(),
                     [](const MemoryEvent& a, const MemoryEvent& b) { return a.at < b.at; });
    std::unordered_map<std::string, MemoryEvent> open;  // by place
    std::int64_t before = 0;
    for (const MemoryEvent& event : memory) {
      const auto known = open.find(event.place);
      if (event.bytes > 0) {
        lost_frees_ += known != open.end();
        if (known != open.end()) tensor(known->second.bytes, known->second.at, event.at);
        open[event.place] = event;
      } else if (known != open.end()) {
        tensor(known->second.bytes, known->second.at, event.at);
        open.erase(known);
      } else if (event.bytes < 0) {
        ++there_before_;
        before -= event.bytes;
        tensor(-event.bytes, std::nullopt, event.at);
      }
    }
    std::vector<MemoryEvent> left;
    for (const auto& [_, event] : open) left.push_back(event);
    std::sort(left.begin(), left.end(), [](const MemoryEvent& a, const MemoryEvent& b) {
      return a.at != b.at ? a.at < b.at : a.place < b.place;
    });
    for (const MemoryEvent& event : left) tensor(event.bytes, event.at, std::nullopt);
    stay(before);
    remark(left.size());
  }

 private:
  struct Launch {
    Picoseconds at = 0;
    OpId op;
  };

  // Alive from the first op launched at or after `from` to the last launched before `to`.
  void tensor(std::int64_t bytes, std::optional<Picoseconds> from, std::optional<Picoseconds> to) {
    const auto at_or_after = [&](Picoseconds time) {
      return std::lower_bound(launches_.begin(), launches_.end(), time,
                              [](const Launch& a, Picoseconds t) { return a.at < t; });
    };
    const auto first = from ? at_or_after(*from) : launches_.begin();
    const auto end = to ? at_or_after(*to) : launches_.end();
    if (first >= end) {
      ++unused_;
      return;
    }
    const TensorId id = maker_.add_tensor("memory", Bytes(bytes), TensorKind::kActivation);
    if (from) maker_.op_at(first->op).writes.push_back(id);
    const OpId last = (end - 1)->op;
    if (!from || last > first->op) maker_.op_at(last).reads.push_back(id);
  }

  // `freed`: what the events free of it.
  void stay(std::int64_t freed) {
    const std::int64_t bytes = events_.allocated_before - freed;
    if (bytes > 0) maker_.add_tensor("allocated before", Bytes(bytes), TensorKind::kOther, true);
  }

  void remark(std::size_t left) const {
    maker_.remark(fmt::format(
        "{} from {}: {} that were there before, {} that stay; {} between two launches {} left out",
        count_of(maker_.tensor_count(), "tensor"), count_of(events_.memory.size(), "memory event"),
        there_before_, left, count_of(unused_, "allocation"), unused_ == 1 ? "is" : "are"));
    if (lost_frees_ > 0)
      maker_.remark(fmt::format("{} of an address that was not freed", count_of(lost_frees_, "allocation")));
    if (without_launch_ > 0)
      maker_.remark(
          fmt::format("{} without a launch of the same correlation: no memory event is placed at them",
                      count_of(without_launch_, "device event")));
  }

  const KinetoEvents& events_;
  TraceMaker& maker_;
  std::vector<Launch> launches_;
  std::size_t without_launch_ = 0, unused_ = 0, there_before_ = 0, lost_frees_ = 0;
};

}  // namespace

void add_memory_tensors(const KinetoEvents& events, const std::vector<OpId>& ops, TraceMaker& maker) {
  if (events.memory.empty())
    throw InputError("--tensors memory", "no memory events of a device",
                     "a trace made with profile_memory=True");
  MemoryTensors(events, ops, maker).add();
}

}  // namespace hyperoffload
