#include "sim/import/memory_snapshot.h"

#include <fmt/format.h>

#include <map>

#include "sim/import/exact_time.h"
#include "sim/import/option_value.h"
#include "sim/import/pickle.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

using Type = PickleValue::Type;
const std::string kExpected = "a PyTorch memory snapshot (a pickle)";

class SnapshotReader {
 public:
  SnapshotReader(const std::vector<std::string>& files, const ImportOptions& options)
      : source_(source_name(files[0])), options_(options), maker_("memory-snapshot", files) {}

  ImportResult read(const std::string& bytes) {
    const Pickle pickle(bytes, source_);
    if (pickle.top().type != Type::kDict) throw InputError(source_, "a pickle of no dict", kExpected);
    const PickleValue* traces = pickle.top().find("device_traces");
    const PickleValue* segments = pickle.top().find("segments");
    if (!traces || traces->type != Type::kList) throw InputError(source_, "no device_traces", kExpected);
    device_ = choose_device(*traces);
    const PickleValue& events = *traces->items[device_];
    for (std::size_t i = 0; i < events.items.size(); ++i) event(*events.items[i], i);
    for (const auto& [_, live] : live_) maker_.keep_to(last_op(), live);
    if (segments && segments->type == Type::kList) there_all_the_time(*segments);
    remark(events.items.size());
    return maker_.finish("allocations");
  }

 private:
  std::size_t choose_device(const PickleValue& traces) const {
    std::size_t chosen = traces.items.size(), with_events = 0;
    for (std::size_t i = traces.items.size(); i-- > 0;)
      if (!traces.items[i]->items.empty()) {
        chosen = i;
        ++with_events;
      }
    if (options_.device) {
      const std::int64_t wanted = whole_number(*options_.device, "--device", "a device's number", 1 << 20);
      if (wanted >= static_cast<std::int64_t>(traces.items.size()) ||
          traces.items[static_cast<std::size_t>(wanted)]->items.empty())
        throw InputError("--device", *options_.device, "a device with events");
      return static_cast<std::size_t>(wanted);
    }
    if (with_events == 0)
      throw InputError(source_, "no events in device_traces",
                       "a snapshot taken while memory history was recorded");
    if (with_events > 1)
      throw InputError(source_, fmt::format("events of {} devices", with_events),
                       "--device N, which takes one");
    return chosen;
  }

  std::int64_t number(const PickleValue& event, const char* key, std::size_t index,
                      bool needed = true) const {
    const PickleValue* value = event.find(key);
    if (value && value->type == Type::kInteger) return value->integer;
    if (value || needed)
      throw InputError(fmt::format("{}: device_traces[{}][{}]", source_, device_, index),
                       fmt::format("no whole number \"{}\"", key), "one");
    return -1;
  }

  void event(const PickleValue& event, std::size_t index) {
    const PickleValue* action = event.find("action");
    if (!action || action->type != Type::kText)
      throw InputError(fmt::format("{}: device_traces[{}][{}]", source_, device_, index),
                       "an event without an action", "one");
    ++actions_[action->text];
    if (action->text == "alloc")
      allocate(event, index);
    else if (action->text == "free_completed")
      free(number(event, "addr", index), number(event, "size", index));
  }

  void allocate(const PickleValue& event, std::size_t index) {
    const std::int64_t address = number(event, "addr", index), size = number(event, "size", index);
    if (size < 0)
      throw InputError(fmt::format("{}: device_traces[{}][{}]", source_, device_, index), "a negative size",
                       "0 or more");
    if (const auto known = live_.find(address); known != live_.end()) {
      ++without_free_;
      live_.erase(known);
    }
    Op op;
    op.name = "alloc";
    op.duration = Seconds(0);
    const std::int64_t time = number(event, "time_us", index, false);
    if (time >= 0 && time_ >= 0 && time >= time_)
      maker_.op_at(last_op()).duration = to_seconds(static_cast<Picoseconds>(time - time_) * 1'000'000);
    backwards_ += time >= 0 && time < time_;
    time_ = time;
    timed_ += time >= 0;
    const TensorId id = maker_.add_tensor("block", Bytes(size), TensorKind::kActivation);
    op.writes.push_back(id);
    maker_.add_op(std::move(op));
    live_[address] = id;
    seen_[address] = true;
  }

  OpId last_op() const { return OpId(maker_.op_count() - 1); }

  void free(std::int64_t address, std::int64_t size) {
    const auto known = live_.find(address);
    if (known != live_.end()) {
      maker_.keep_to(last_op(), known->second);
      live_.erase(known);
    } else if (!seen_[address]) {
      ++there_before_;
      seen_[address] = true;
      if (maker_.op_count() > 0)
        maker_.op_at(last_op()).reads.push_back(
            maker_.add_tensor("block before", Bytes(size), TensorKind::kActivation));
    }
  }

  // Active blocks that no event is about.
  void there_all_the_time(const PickleValue& segments) {
    std::int64_t reserved = 0, active = 0;
    for (const PickleValue* segment : segments.items) {
      const PickleValue* device = segment->find("device");
      if (device && device->integer != static_cast<std::int64_t>(device_)) continue;
      const PickleValue *blocks = segment->find("blocks"), *total = segment->find("total_size"),
                        *begin = segment->find("address");
      ++segments_;
      if (total) reserved += total->integer;
      std::int64_t address = begin ? begin->integer : 0;
      for (const PickleValue* block : blocks ? blocks->items : std::vector<const PickleValue*>{}) {
        const PickleValue *size = block->find("size"), *state = block->find("state"),
                          *at = block->find("address");
        if (!size || !state) continue;
        if (at) address = at->integer;
        if (state->text.starts_with("active")) {
          active += size->integer;
          if (!seen_[address]) {
            maker_.add_tensor("block all the time", Bytes(size->integer), TensorKind::kOther, true);
            ++persistent_;
          }
        }
        address += size->integer;
      }
    }
    if (segments_ > 0)
      maker_.remark(fmt::format("{} of {} bytes at the end, {} of them in active blocks",
                                count_of(segments_, "segment"), reserved, active));
  }

  void remark(std::size_t events) {
    std::string actions;
    for (const auto& [name, count] : actions_)
      actions += fmt::format("{}{} {}", actions.empty() ? "" : ", ", count, name);
    maker_.remark(fmt::format("{} ({}): an op for each alloc", count_of(events, "event"), actions));
    if (there_before_ > 0)
      maker_.remark(count_of(there_before_, "block") +
                    " freed without an allocation: the recorded ring begins in the middle");
    if (persistent_ > 0)
      maker_.remark(count_of(persistent_, "active block") + " without any event: persistent");
    if (without_free_ > 0)
      maker_.remark(count_of(without_free_, "allocation") + " of an address that was not freed");
    if (!live_.empty())
      maker_.remark(count_of(live_.size(), "block") + " never freed: they live to the last op");
    maker_.remark(
        "which ops use a block isn't known: it is written when it is allocated and read last before it is "
        "freed");
    if (backwards_ > 0)
      maker_.remark(fmt::format("{} earlier than the one before: no time passes between them",
                                count_of(backwards_, "allocation")));
    if (timed_ < maker_.op_count()) maker_.remark("no durations: good for peaks, not for times");
  }

  std::string source_;
  const ImportOptions& options_;
  TraceMaker maker_;
  std::size_t device_ = 0;
  std::map<std::int64_t, TensorId> live_;  // by address
  std::map<std::int64_t, bool> seen_;      // addresses that an event was about
  std::map<std::string, std::size_t> actions_;
  std::int64_t time_ = -1;
  std::size_t timed_ = 0, backwards_ = 0, there_before_ = 0, without_free_ = 0, persistent_ = 0, segments_ = 0;
};

}  // namespace

ImportResult import_memory_snapshot(const std::vector<std::string>& files, const ImportOptions& options) {
  return SnapshotReader(files, options).read(read_file(files[0], kExpected));
}

}  // namespace hyperoffload
