// Chrome trace events as text, one a line, streamed: the only place that knows their syntax.
//
// Names and args are handed over as finished JSON (`json_quoted`), times in picoseconds.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "sim/report/track_slices.h"

namespace hyperoffload {

std::string json_quoted(const std::string& text);  // broken UTF-8 repaired
std::string microseconds(Picoseconds time);        // "12.000001", no trailing zeros

struct TrackId {
  int process = 0;
  int thread = 0;  // unique over all processes: some viewers take thread ids for global
};

class TraceEvents {
 public:
  explicit TraceEvents(std::ostream& out) : out_(out) {}

  void open(const std::string& other_data);  // a JSON object, about the whole run
  void process(int process, const std::string& quoted_name);
  void track(TrackId track, const std::string& quoted_name);
  void slice(TrackId track, Picoseconds from, Picoseconds to, std::string_view quoted_name,
             const char* category, const char* colour, std::string_view args);
  void counter(int process, const char* name, const char* series, Picoseconds time, double value);
  void flow(char phase, TrackId track, Picoseconds time, std::int64_t id);  // 's' start, 'f' finish
  void close();

  std::int64_t count() const { return count_; }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args);

  std::ostream& out_;
  fmt::memory_buffer buffer_;
  std::int64_t count_ = 0;
};

}  // namespace hyperoffload
