#include "sim/report/chrome_trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "sim/model/check.h"
#include "sim/report/result_fields.h"
#include "sim/report/trace_events.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kManyEvents = 1'000'000;  // viewers fail silently on large files (hundreds of MB)

enum SliceKind { kOp, kWaitInputs, kWaitHost, kWaitBytes, kWaitRoom, kTransfer, kIteration };

// catapult's names, by TensorKind.
constexpr std::array<const char*, 7> kKindColours = {"rail_response", "rail_animation",      "rail_idle",
                                                     "rail_load",     "thread_state_iowait", "generic_work",
                                                     "grey"};
constexpr const char* kOpColour = "thread_state_running";
constexpr const char* kWaitBytesColour = "terrible";
constexpr const char* kWaitRoomColour = "bad";
constexpr const char* kIterationColour = "white";

struct DirectionText {
  const char* track;
  const char* counter;
  const char* planned;  // the verb when a plan's action asked for it
  const char* other;
};
constexpr DirectionText kDirections[] = {{"pool -> HBM", "pool -> HBM (GB/s)", "prefetch", "load"},
                                         {"HBM -> pool", "HBM -> pool (GB/s)", "store", "store"}};

double gib(Bytes bytes) { return std::ldexp(static_cast<double>(bytes.value), -30); }

// An args object, grown field by field.
class ArgsText {
 public:
  ArgsText& add(const char* key, const std::string& json) {
    text_ += fmt::format("{}\"{}\":{}", text_.size() > 1 ? "," : "", key, json);
    return *this;
  }
  ArgsText& add(const char* key, std::int64_t value) { return add(key, std::to_string(value)); }
  ArgsText& add_us(const char* key, Seconds time) { return add(key, microseconds(picoseconds(time))); }
  std::string done() { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

class TimelineWriter {
 public:
  TimelineWriter(std::ostream& out, const Timeline& timeline)
      : timeline_(timeline),
        events_(out),
        window_from_(picoseconds(timeline.filter.from)),
        window_to_(picoseconds(timeline.filter.to)),
        shortest_(picoseconds(timeline.filter.min_duration)) {
    read(timeline.graph);
  }

  TimelineSummary write() {
    events_.open(json_text({{"trace", graph_->name()},
                            {"hardware", timeline_.hardware.name},
                            {"policy", timeline_.policy},
                            {"iterations", timeline_.record.iterations},
                            {"time_unit", "us"}}));
    for (std::size_t i = 0; i < timeline_.record.npus.size(); ++i)
      if (timeline_.filter.npu < 0 || static_cast<std::size_t>(timeline_.filter.npu) == i) write_npu(i);
    events_.close();
    summary_.events = events_.count();
    if (summary_.left_out > 0 && slices_ == 0)
      summary_.warning = fmt::format(
          "what was chosen has no op, wait or transfer in it: the run ends at {} us", microseconds(end_));
    if (summary_.events > kManyEvents)
      summary_.warning = fmt::format(
          "the timeline has {} events; viewers become slow, or show nothing, beyond about {}: "
          "--timeline-from and -to, --timeline-npu and --timeline-min-duration choose fewer, a name in .json.gz "
          "makes the file smaller",
          summary_.events, kManyEvents);
    return summary_;
  }

 private:
  void read(const Graph& graph) {
    graph_ = &graph;
    op_names_.clear();
    tensor_names_.clear();
    for (const Op& op : graph.ops()) op_names_.push_back(json_quoted(op.name));
    for (const Tensor& t : graph.tensors()) tensor_names_.push_back(json_quoted(t.name));
  }

  void write_npu(std::size_t index) {
    npu_ = &timeline_.record.npus[index];
    plan_ = timeline_.rank_plans.empty() ? timeline_.plan : timeline_.rank_plans.at(index);
    if (!timeline_.ranks.empty()) read(*timeline_.ranks.at(index));
    process_ = static_cast<int>(index) + 1;  // 0 means the idle process to some viewers
    events_.process(process_, json_quoted(fmt::format("NPU {}", index)));
    number_flows();
    write_iterations();
    for (std::size_t e = 0; e < graph_->engines().size(); ++e) write_engine(EngineId(e));
    write_transfers(Direction::kPoolToHbm);
    write_transfers(Direction::kHbmToPool);
    Picoseconds end = npu_->iteration_end.empty() ? 0 : picoseconds(npu_->iteration_end.back());
    for (const TransferRecord& t : npu_->transfers) end = std::max(end, picoseconds(t.end));
    end_ = std::max(end_, end);
    if (window_from_ > end) return;  // no level holds at times that don't exist
    write_memory();
    write_link_use(Direction::kPoolToHbm);
    write_link_use(Direction::kHbmToPool);
  }

  // One flow an op that waited, numbered through the file.
  void number_flows() {
    flow_of_op_.assign(npu_->ops.size(), 0);
    waiters_.clear();
    for (std::size_t i = 0; i < npu_->ops.size(); ++i) {
      const int transfer = npu_->ops[i].waited_transfer;
      HYPER_CHECK(npu_->ops[i].op.index() < graph_->ops().size(), "an op record names no op of the graph");
      if (transfer < 0) continue;
      HYPER_CHECK(static_cast<std::size_t>(transfer) < npu_->transfers.size(),
                  "an op record names no transfer");
      const TransferRecord& t = npu_->transfers[static_cast<std::size_t>(transfer)];
      if (!shown(npu_->ops[i].start, npu_->ops[i].end) || !shown(t.start, t.end)) continue;
      flow_of_op_[i] = ++flows_;
      waiters_.push_back({transfer, static_cast<std::int32_t>(i)});
    }
    std::sort(waiters_.begin(), waiters_.end());
  }

  bool in_window(Picoseconds from, Picoseconds to) const {
    return to >= window_from_ && from < window_to_ && (to > window_from_ || from == to);
  }
  bool long_enough(Picoseconds from, Picoseconds to) const { return to - from >= shortest_; }
  bool shown(Seconds from, Seconds to) const {
    return in_window(picoseconds(from), picoseconds(to)) && long_enough(picoseconds(from), picoseconds(to));
  }

  void write_track(const std::string& name, std::vector<Slice> slices) {
    const std::size_t all = slices.size();
    std::erase_if(slices, [&](const Slice& s) {
      return !in_window(s.from, s.to) || (s.kind != kIteration && !long_enough(s.from, s.to));
    });
    summary_.left_out += static_cast<std::int64_t>(all - slices.size());
    const auto lanes = lay_out(std::move(slices));
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const TrackId track{process_, ++threads_};
      events_.track(track, json_quoted(lane == 0 ? name : fmt::format("{} ({})", name, lane + 1)));
      for (const Slice& slice : lanes[lane]) {
        if (slice.from == slice.to) ++summary_.zero_length;
        slices_ += slice.kind != kIteration;
        write_slice(track, slice);
      }
    }
  }

  void write_slice(TrackId track, const Slice& s) {
    const auto i = static_cast<std::size_t>(s.index);
    switch (s.kind) {
      case kOp:
        return write_op(track, s, i);
      case kTransfer:
        return write_transfer(track, s, i);
      case kIteration:
        return events_.slice(track, s.from, s.to, json_quoted(fmt::format("iteration {}", i)), "iteration",
                             kIterationColour, ArgsText().add("iteration", s.index).done());
      default:
        return write_wait(track, s, i);
    }
  }

  void write_iterations() {
    std::vector<Slice> slices;
    for (std::size_t k = 0; k < npu_->iteration_start.size(); ++k)
      slices.push_back({picoseconds(npu_->iteration_start[k]), picoseconds(npu_->iteration_end.at(k)),
                        kIteration, static_cast<std::int32_t>(k)});
    write_track("iterations", std::move(slices));
  }

  void write_engine(EngineId engine) {
    std::vector<Slice> slices;
    Seconds free(0);
    for (std::size_t i = 0; i < npu_->ops.size(); ++i) {
      const OpRecord& op = npu_->ops[i];
      if (graph_->op(op.op).engine != engine) continue;
      add_waits(slices, op, free, static_cast<std::int32_t>(i));
      slices.push_back({picoseconds(op.start), picoseconds(op.end), kOp, static_cast<std::int32_t>(i)});
      free = op.end;
    }
    write_track(graph_->engines()[engine.index()], std::move(slices));
  }

  void add_waits(std::vector<Slice>& slices, const OpRecord& op, Seconds engine_free,
                 std::int32_t index) const {
    const auto k = static_cast<std::size_t>(op.iteration);
    Seconds from = std::max(engine_free, op.ready);
    const auto add = [&](Seconds to, SliceKind kind) {
      const Slice slice{picoseconds(from), picoseconds(std::min(to, op.start)), kind, index};
      if (slice.to - slice.from > 2) slices.push_back(slice);  // less is rounding, not a wait
      from = std::max(from, to);
    };
    if (k < npu_->inputs_taken.size() && npu_->inputs_taken[k] > npu_->iteration_start.at(k)) {
      const Seconds began = std::max(engine_free, npu_->iteration_start[k]);
      if (began < npu_->inputs_taken[k]) {
        from = began;
        add(npu_->inputs_taken[k], kWaitInputs);
        from = std::max(from, op.ready);
      }
    }
    if (op.decided > from) add(op.decided, kWaitHost);
    add(op.resident, kWaitBytes);
    add(op.start, kWaitRoom);
  }

  void write_op(TrackId track, const Slice& slice, std::size_t i) {
    const OpRecord& record = npu_->ops[i];
    const Op& op = graph_->op(record.op);
    ArgsText args;
    args.add("iteration", record.iteration);
    if (op.layer >= 0) args.add("layer", op.layer);
    if (!op.phase.empty()) args.add("phase", json_quoted(op.phase));
    if (!op.kernel.empty()) args.add("kernel", json_quoted(op.kernel));
    args.add_us("alone_us", record.alone);
    if (const Seconds wait = record.start - record.ready; wait.value > 1e-12) args.add_us("wait_us", wait);
    if (op.flops) args.add("flops", json_text(op.flops->value));
    if (op.hbm_bytes) args.add("hbm_bytes", op.hbm_bytes->value);
    if (op.workspace > Bytes(0)) args.add("workspace_bytes", op.workspace.value);
    events_.slice(track, slice.from, slice.to, op_names_[record.op.index()], "op", kOpColour, args.done());
    if (flow_of_op_[i] > 0) events_.flow('f', track, slice.from, flow_of_op_[i]);
  }

  void write_wait(TrackId track, const Slice& slice, std::size_t i) {
    const OpRecord& record = npu_->ops[i];
    ArgsText args;
    args.add("op", op_names_[record.op.index()]).add("iteration", record.iteration);
    args.add("wait_us", microseconds(slice.to - slice.from));
    if (slice.kind != kWaitBytes) {
      const bool host = slice.kind == kWaitHost, room = slice.kind == kWaitRoom;
      args.add("cause", host ? R"("host")" : room ? R"("no_room")" : R"("input_room")");
      const char* name = host ? R"("wait: host")" : room ? R"("wait: room")" : R"("wait: room for inputs")";
      return events_.slice(track, slice.from, slice.to, name, "wait", kWaitRoomColour, args.done());
    }
    args.add("cause", R"("late_transfer")");
    std::string name = R"("wait: transfer")";
    if (!record.waited_for.is_none()) {
      args.add("tensor", tensor_names_[record.waited_for.index()]);
      name = "\"wait: " + tensor_names_[record.waited_for.index()].substr(1);
    }
    events_.slice(track, slice.from, slice.to, name, "wait", kWaitBytesColour, args.done());
  }

  void write_transfers(Direction direction) {
    std::vector<Slice> slices;
    for (std::size_t i = 0; i < npu_->transfers.size(); ++i) {
      const TransferRecord& t = npu_->transfers[i];
      if (t.direction == direction)
        slices.push_back({picoseconds(t.start), picoseconds(t.end), kTransfer, static_cast<std::int32_t>(i)});
    }
    write_track(kDirections[static_cast<std::size_t>(direction)].track, std::move(slices));
  }

  std::string anchor(OpId op, const char* none) const { return op.is_none() ? none : op_names_[op.index()]; }

  // Why it was made, as far as the plan or the ops that waited tell.
  std::string reason_of(const TransferRecord& t, std::int32_t index) const {
    const bool load = t.direction == Direction::kPoolToHbm;
    const auto waiter = std::lower_bound(waiters_.begin(), waiters_.end(), std::pair(index, std::int32_t{0}));
    if (load && waiter != waiters_.end() && waiter->first == index)
      return graph_->op(npu_->ops[static_cast<std::size_t>(waiter->second)].op).name + " waits for it";
    if (!plan_ || t.action < 0)
      return load ? "an op will read it" : "its room in HBM is needed";
    const Action& action = plan_->actions.at(static_cast<std::size_t>(t.action));
    const std::string next = next_user(action);
    if (next.empty()) return load ? "planned" : "its room in HBM can be used afterwards";
    return load ? next + " uses it next" : "its room in HBM can be used until " + next;
  }

  // The op that accesses the action's tensor next, in this iteration or else in the next one.
  std::string next_user(const Action& action) const {
    if (!action.before_op.is_none()) return graph_->op(action.before_op).name;
    const auto accesses = graph_->accesses(action.tensor);
    for (const Access& access : accesses)
      if (access.op.value > action.after_op.value) return graph_->op(access.op).name;
    const bool again = graph_->tensor(action.tensor).persistent && timeline_.record.iterations > 1;
    return again && !accesses.empty() ? graph_->op(accesses.front().op).name : "";
  }

  void write_transfer(TrackId track, const Slice& slice, std::size_t i) {
    const TransferRecord& t = npu_->transfers[i];
    const Tensor& tensor = graph_->tensor(t.tensor);
    const DirectionText& direction = kDirections[static_cast<std::size_t>(t.direction)];
    ArgsText args;
    args.add("tensor", tensor_names_[t.tensor.index()]).add("kind", json_quoted(to_string(tensor.kind)));
    args.add("bytes", t.bytes().value);
    args.add("from_tier", t.direction == Direction::kPoolToHbm ? R"("pool")" : R"("HBM")");
    args.add("to_tier", t.direction == Direction::kPoolToHbm ? R"("HBM")" : R"("pool")");
    args.add("reason", json_quoted(reason_of(t, static_cast<std::int32_t>(i))));
    if (t.bytes() != tensor.bytes) args.add("range_bytes", fmt::format("[{},{}]", t.from.value, t.to.value));
    args.add("iteration", t.iteration);
    if (plan_ && t.action >= 0) {
      const Action& action = plan_->actions.at(static_cast<std::size_t>(t.action));
      args.add("after_op", anchor(action.after_op, "null"));
      if (!action.before_op.is_none()) args.add("before_op", anchor(action.before_op, "null"));
    }
    args.add_us("latency_us", t.flow_start - t.start);
    if (const Seconds wait = t.start - t.queued; wait.value > 1e-12) args.add_us("wait_for_room_us", wait);
    const char* verb = t.action >= 0 ? direction.planned : direction.other;
    const std::string name = fmt::format("\"{} {}", verb, tensor_names_[t.tensor.index()].substr(1));
    events_.slice(track, slice.from, slice.to, name, "transfer",
                  kKindColours[static_cast<std::size_t>(tensor.kind)], args.done());
    const auto transfer = static_cast<std::int32_t>(i);
    for (auto w = std::lower_bound(waiters_.begin(), waiters_.end(), std::pair(transfer, std::int32_t{0}));
         w != waiters_.end() && w->first == transfer; ++w)
      events_.flow('s', track, slice.from, flow_of_op_[static_cast<std::size_t>(w->second)]);
  }

  void write_memory() {
    if (npu_->memory.empty()) return;
    const Picoseconds begin = picoseconds(npu_->memory.front().time);
    const Picoseconds end =
        std::max({begin, npu_->iteration_end.empty() ? begin : picoseconds(npu_->iteration_end.back()),
                  picoseconds(npu_->memory.back().time)});
    if (window_from_ > end || window_to_ < begin) return;
    write_level("HBM (GiB)", &MemorySample::hbm, end);
    write_level("pool (GiB)", &MemorySample::pool, end);
    for (Picoseconds time : {std::max(begin, window_from_), std::min(end, window_to_)}) {
      events_.counter(process_, "HBM capacity (GiB)", "capacity", time, gib(timeline_.hardware.hbm_usable()));
      events_.counter(process_, "pool capacity (GiB)", "capacity", time,
                      gib(timeline_.hardware.pool_capacity));
    }
  }

  void write_level(const char* name, Bytes MemorySample::*level, Picoseconds end) {
    Bytes last(-1);
    Level counter{*this, name};
    for (const MemorySample& sample : npu_->memory) {
      if (sample.*level == last) continue;
      last = sample.*level;
      counter.put(picoseconds(sample.time), gib(last));
    }
    if (picoseconds(npu_->memory.back().time) < end) counter.put(end, gib(last));
    counter.finish();
  }

  void write_link_use(Direction direction) {
    struct Change {
      Picoseconds time;
      int transfers;  // +1 at a start, -1 at an end
      double rate;    // GB/s, negative at an end
    };
    std::vector<Change> changes;
    for (const TransferRecord& t : npu_->transfers) {
      const Picoseconds from = picoseconds(t.flow_start), to = picoseconds(t.end);
      if (t.direction != direction || to <= from) continue;
      const double rate = static_cast<double>(t.bytes().value) / (t.end - t.flow_start).value / 1e9;
      changes.push_back({from, 1, rate});
      changes.push_back({to, -1, -rate});
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.time < b.time; });
    const char* name = kDirections[static_cast<std::size_t>(direction)].counter;
    Level counter{*this, name};
    if (!changes.empty() && changes.front().time > 0) counter.put(0, 0);
    double rate = 0;
    int under_way = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      under_way += changes[i].transfers;
      rate = under_way == 0 ? 0 : rate + changes[i].rate;
      if (i + 1 == changes.size() || changes[i + 1].time != changes[i].time)
        counter.put(changes[i].time, rate);
    }
    counter.finish();
  }

  // A counter within the window: what holds at its start, then each change.
  struct Level {
    TimelineWriter& writer;
    const char* name;
    bool earlier = false;  // a level from before the window, still to be written
    double before = 0;

    void put(Picoseconds time, double value) {
      if (time < writer.window_from_) {
        before = value;
        earlier = true;
        return;
      }
      if (time > writer.window_to_) return;
      if (time > writer.window_from_) finish();
      earlier = false;
      writer.events_.counter(writer.process_, name, "used", time, value);
    }
    void finish() {
      if (earlier) writer.events_.counter(writer.process_, name, "used", writer.window_from_, before);
      earlier = false;
    }
  };

  const Timeline& timeline_;
  const Graph* graph_ = nullptr;  // of the NPU being written
  const Plan* plan_ = nullptr;
  TraceEvents events_;
  const Picoseconds window_from_, window_to_, shortest_;
  TimelineSummary summary_;
  std::vector<std::string> op_names_, tensor_names_;  // quoted

  const NpuRecord* npu_ = nullptr;
  Picoseconds end_ = 0;      // of all NPUs written so far
  std::int64_t slices_ = 0;  // written, but for iterations
  int process_ = 0;
  int threads_ = 0;
  std::int64_t flows_ = 0;
  std::vector<std::int64_t> flow_of_op_;                        // by index of the op record; 0: none
  std::vector<std::pair<std::int32_t, std::int32_t>> waiters_;  // (transfer, op record), sorted
};

}  // namespace

TimelineSummary write_chrome_trace(std::ostream& out, const Timeline& timeline) {
  return TimelineWriter(out, timeline).write();
}

}  // namespace hyperoffload
