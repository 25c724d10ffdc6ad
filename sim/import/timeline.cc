#include "sim/import/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/import/option_value.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

// For an op: the last ended op of each other stream, where it isn't implied by an earlier one.
class ObservedOrder {
 public:
  void add(EngineId engine, OpId op, Picoseconds end) {
    grow(engine);
    streams_[engine.index()].push_back({op, end});
  }

  std::vector<OpId> before(EngineId engine, Picoseconds start) {
    grow(engine);
    std::vector<OpId> found;
    for (std::size_t other = 0; other < streams_.size(); ++other) {
      std::size_t& ended = ended_[other];
      while (ended < streams_[other].size() && streams_[other][ended].end <= start) ++ended;
      std::size_t& known = known_[engine.index()][other];
      if (other == engine.index() || ended <= known) continue;
      known = ended;
      found.push_back(streams_[other][ended - 1].op);
    }
    return found;
  }

 private:
  struct Ended {
    OpId op;
    Picoseconds end;
  };
  void grow(EngineId engine) {
    const std::size_t count = std::max(streams_.size(), engine.index() + 1);
    streams_.resize(count);
    ended_.resize(count);
    known_.resize(count);
    for (auto& row : known_) row.resize(count);
  }
  std::vector<std::vector<Ended>> streams_;
  std::vector<std::size_t> ended_;               // of each stream: how many had ended at the last look
  std::vector<std::vector<std::size_t>> known_;  // [stream][other]: how many of `other` it waits for already
};

bool chosen(const std::optional<std::string>& value, const std::string& name, const std::string& word) {
  if (!value) return false;
  return one_word(*value, "--" + name, {word}) == word;
}

}  // namespace

void StreamTimeline::add(const std::string& name, EngineId engine, std::optional<Picoseconds> start,
                         std::optional<Picoseconds> duration) {
  events_.push_back({names_.number(name), static_cast<std::uint32_t>(events_.size()), engine,
                     start.value_or(0), duration.value_or(0), start.has_value(), duration.has_value()});
}

void StreamTimeline::sort() {
  std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
    if (a.untimed() != b.untimed()) return b.untimed();
    return a.start < b.start;
  });
}

// With `clip`, ends each event where the next of its stream starts.
std::vector<StreamTimeline::Stream> StreamTimeline::look_at_streams(bool clip) {
  std::vector<Stream> streams;
  std::vector<Event*> last;
  for (Event& event : events_) {
    if (event.engine.index() >= streams.size()) {
      streams.resize(event.engine.index() + 1);
      last.resize(event.engine.index() + 1);
    }
    Stream& stream = streams[event.engine.index()];
    if (event.untimed()) continue;
    if (stream.ops++ == 0) stream.first = stream.end = event.start;
    if (event.start < stream.end) {
      ++stream.overlaps;
      stream.worst = std::max(stream.worst, stream.end - event.start);
    }
    stream.busy += std::max<Picoseconds>(0, event.end() - std::max(stream.end, event.start));
    stream.sum += event.duration;
    stream.end = std::max(stream.end, event.end());
    Event*& before = last[event.engine.index()];
    if (clip && before && before->end() > event.start) before->duration = event.start - before->start;
    before = &event;
  }
  return streams;
}

void StreamTimeline::remark(TraceMaker& maker, const std::vector<Stream>& streams,
                      const ImportOptions& options) const {
  std::size_t zero = 0, instant = 0, no_start = 0, no_duration = 0;
  for (const Event& event : events_) {
    no_start += !event.has_start;
    no_duration += !event.has_duration;
    if (!event.has_start || !event.has_duration) continue;
    zero += event.untimed();
    instant += !event.untimed() && event.duration == 0;
  }
  if (no_start > 0)
    maker.remark(fmt::format("{} without a start: they stand at the end, and shift no origin",
                             count_of(no_start, "event")));
  if (no_duration > 0)
    maker.remark(fmt::format("{} without a duration: 0 taken", count_of(no_duration, "event")));
  if (zero > 0)
    maker.remark(fmt::format("{} with zero time: they stand at the end, and shift no origin",
                             count_of(zero, "event")));
  if (instant > 0) maker.remark(fmt::format("{} with a duration of 0", count_of(instant, "event")));
  Picoseconds idle = 0;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const Stream& stream = streams[i];
    if (stream.ops == 0) continue;
    const std::string& name = maker.engine_name(EngineId(i));
    idle += stream.end - stream.first - stream.busy;
    if (stream.overlaps > 0)
      maker.remark(
          fmt::format("{} on {}: an op starts before the one before it has ended, by {} us at worst; "
                      "durations sum to {} us, "
                      "the stream is busy for {} us{}",
                      count_of(stream.overlaps, "overlap"), name, microseconds_text(stream.worst),
                      microseconds_text(stream.sum), microseconds_text(stream.busy),
                      options.overlaps ? "" : " (--overlaps clip ends an op where the next starts)"));
    if (stream.sum > stream.end - stream.first)
      maker.remark(
          fmt::format("durations on {} sum to more than the {} us between its first start and its last end",
                      name, microseconds_text(stream.end - stream.first)));
  }
  if (idle > 0 && !options.gaps)
    maker.remark(fmt::format(
        "{} us in which a stream was idle between its ops are left out (--gaps keep puts idle ops in)",
        microseconds_text(idle)));
  const auto used = std::count_if(streams.begin(), streams.end(), [](const Stream& s) { return s.ops > 0; });
  if (used > 1 && !options.dependencies)
    maker.remark(
        fmt::format("no dependencies between the {} streams are in the file, other than those of tensors "
                    "(--dependencies observed "
                    "makes an op wait for what had ended when it started)",
                    used));
}

std::vector<OpId> StreamTimeline::emit(TraceMaker& maker, const ImportOptions& options) {
  const bool clip = chosen(options.overlaps, "overlaps", "clip"), gaps = chosen(options.gaps, "gaps", "keep"),
             observed = chosen(options.dependencies, "dependencies", "observed");
  for (const Event& event : events_)
    if (event.duration < 0)
      throw InputError(maker.source() + ": " + names_.name(event.name),
                       microseconds_text(event.duration) + " us", "a duration of 0 or more");
  sort();
  const std::vector<Stream> streams = look_at_streams(clip);
  remark(maker, streams, options);

  const Picoseconds origin = events_.empty() ? 0 : events_.front().start;
  if (!events_.empty()) maker.note("origin_us", '"' + microseconds_text(origin) + '"');
  std::vector<Picoseconds> end(streams.size(), origin);
  std::vector<OpId> ops(events_.size());
  ObservedOrder order;
  for (const Event& event : events_) {
    Op op;
    op.engine = event.engine;
    if (observed && !event.untimed()) op.after = order.before(event.engine, event.start);
    Picoseconds& free = end[event.engine.index()];
    if (gaps && !event.untimed() && event.start > free) {
      Op idle;
      idle.name = "idle";
      idle.engine = event.engine;
      idle.duration = to_seconds(event.start - free);
      maker.add_op(std::move(idle));
    }
    op.name = names_.name(event.name);
    op.duration = to_seconds(event.duration);
    if (!event.untimed()) free = std::max(free, event.end());
    const OpId id = ops[event.number] = maker.add_op(std::move(op));
    if (observed && !event.untimed()) order.add(event.engine, id, event.end());
  }
  return ops;
}

}  // namespace hyperoffload
