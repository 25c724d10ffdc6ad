#include "sim/report/trace_events.h"

#include <cmath>

#include "sim/report/result_fields.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kFlushBytes = 1 << 16;

}  // namespace

std::string json_quoted(const std::string& text) { return json_text(text); }

std::string microseconds(Picoseconds time) {
  const Picoseconds whole = time / 1'000'000, part = time % 1'000'000;
  if (part == 0) return std::to_string(whole);
  std::string text = fmt::format("{}{}.{:06}", time < 0 && whole == 0 ? "-" : "", whole, std::abs(part));
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

template <class... Args>
void TraceEvents::line(fmt::format_string<Args...> format, Args&&... args) {
  const std::string_view separator = count_++ ? ",\n" : "\n";
  buffer_.append(separator.data(), separator.data() + separator.size());
  fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
  if (buffer_.size() < kFlushBytes) return;
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

void TraceEvents::open(const std::string& other_data) {
  fmt::format_to(std::back_inserter(buffer_),
                 "{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[", other_data);
}

void TraceEvents::process(int process, const std::string& quoted_name) {
  line(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", process, quoted_name);
  line(R"({{"ph":"M","pid":{0},"name":"process_sort_index","args":{{"sort_index":{0}}}}})", process);
}

void TraceEvents::track(TrackId track, const std::string& quoted_name) {
  line(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", track.process,
       track.thread, quoted_name);
  line(R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_sort_index","args":{{"sort_index":{1}}}}})",
       track.process, track.thread);
}

void TraceEvents::slice(TrackId track, Picoseconds from, Picoseconds to, std::string_view quoted_name,
                        const char* category, const char* colour, std::string_view args) {
  line(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","cname":"{}","args":{}}})",
       track.process, track.thread, microseconds(from), microseconds(to - from), quoted_name, category,
       colour, args);
}

void TraceEvents::counter(int process, const char* name, const char* series, Picoseconds time, double value) {
  line(R"({{"ph":"C","pid":{},"ts":{},"name":"{}","args":{{"{}":{}}}}})", process, microseconds(time), name,
       series, json_text(value));
}

void TraceEvents::flow(char phase, TrackId track, Picoseconds time, std::int64_t id) {
  line(R"({{"ph":"{}",{}"pid":{},"tid":{},"ts":{},"id":{},"name":"arrival","cat":"transfer"}})", phase,
       phase == 'f' ? R"("bp":"e",)" : "", track.process, track.thread, microseconds(time), id);
}

void TraceEvents::close() {
  const std::string_view end = "\n]}\n";
  buffer_.append(end.data(), end.data() + end.size());
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
  out_.flush();
}

}  // namespace hyperoffload
