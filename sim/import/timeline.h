// Ops from events that a profiler saw: each has a start, a duration and an engine (a stream).
//
// Ops stand in the order of their starts (ties: in the file's order). A layer trace has no starts: what is
// lost is the idle time of a stream and, without dependencies, how streams stood to each other. Both are
// said; `gaps` keep puts idle ops in, `dependencies` observed lets an op wait for the last op of each other
// stream that had ended when it started. Events of one stream that overlap are counted: a replay runs them
// one after another; `overlaps` clip ends an op where the next one starts. An event whose start and duration
// are 0, or whose start isn't given, has no time: it goes to the end, and the origin is that of the others. A
// duration that isn't given is 0. Both are counted. O(events log events + events * streams).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/import/exact_time.h"
#include "sim/import/name_table.h"
#include "sim/import/trace_maker.h"

namespace hyperoffload {

class StreamTimeline {
 public:
  // Events are numbered in the order they are added.
  void add(const std::string& name, EngineId engine, std::optional<Picoseconds> start,
           std::optional<Picoseconds> duration);
  std::size_t size() const { return events_.size(); }

  // Puts the ops into the trace, and remarks; says for each event which op it became.
  std::vector<OpId> emit(TraceMaker& maker, const ImportOptions& options);

 private:
  struct Event {
    std::uint32_t name = 0, number = 0;
    EngineId engine;
    Picoseconds start = 0, duration = 0;
    bool has_start = true, has_duration = true;
    Picoseconds end() const { return start + duration; }
    bool untimed() const { return !has_start || (start == 0 && duration == 0); }
  };
  // What one stream looked like.
  struct Stream {
    std::size_t ops = 0, overlaps = 0;
    Picoseconds first = 0, end = 0, busy = 0, sum = 0, worst = 0;
  };

  void sort();
  std::vector<Stream> look_at_streams(bool clip);
  void remark(TraceMaker& maker, const std::vector<Stream>& streams, const ImportOptions& options) const;

  std::vector<Event> events_;
  NameTable names_;
};

}  // namespace hyperoffload
