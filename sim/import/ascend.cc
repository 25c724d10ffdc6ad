#include "sim/import/ascend.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/import/json_records.h"
#include "sim/import/name_table.h"
#include "sim/import/timeline.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

const std::string kExpected = "a timeline of an Ascend device (msprof, torch_npu, MindSpore)";
const std::string kTableHead = "op_name, stream_id, start_time(ms), duration(ms)";

enum Field : std::size_t { kPhase, kName, kProcess, kThread, kStart, kDuration, kGivenName, kShape };

class EventReader {
 public:
  EventReader(TextStream& stream, TraceMaker& maker) : stream_(stream), maker_(maker) {}

  void read(StreamTimeline& timeline) {
    JsonRecordReader reader;
    reader.arrays = {"", "traceEvents"};
    reader.fields = {{{"ph"}}, {{"name"}}, {{"pid"}},          {{"tid"}},
                     {{"ts"}}, {{"dur"}},  {{"args", "name"}}, {{"args", "input_0", "shape"}}};
    reader.record = [this](const std::string& array, std::size_t index, const JsonRecord& record) {
      event(array, index, record);
    };
    read_json_records(stream_, reader);
    choose(timeline);
  }

 private:
  struct Event {
    std::uint32_t name = 0, process = 0, thread = 0;
    std::optional<Picoseconds> start, duration;  // none: not given
  };

  void event(const std::string& array, std::size_t index, const JsonRecord& r) {
    ++events_seen_;
    const std::string& phase = r.text(kPhase);
    if (phase == "M") {
      if (r.text(kName) == "process_name") process_names_[r.text(kProcess)] = r.text(kGivenName);
      if (r.text(kName) == "thread_name")
        thread_names_[{r.text(kProcess), r.text(kThread)}] = r.text(kGivenName);
    }
    if (phase != "X") return;
    const auto time = [&](Field field, const char* key) -> std::optional<Picoseconds> {
      if (!r.has(field)) return std::nullopt;
      if (const auto time = parse_picoseconds(r.text(field), kPicosPerMicro)) return time;
      throw InputError(fmt::format("{}: {}[{}].{}", stream_.source(), array, index, key),
                       in_quotes(r.text(field)), "microseconds");
    };
    shapes_ += r.has(kShape);
    events_.push_back({names_.number(r.text(kName)), names_.number(r.text(kProcess)),
                       names_.number(r.text(kThread)), time(kStart, "ts"), time(kDuration, "dur")});
  }

  std::string process_of(const Event& event) const {
    const auto name = process_names_.find(names_.name(event.process));
    return name == process_names_.end() ? std::string() : name->second;
  }
  std::string thread_of(const Event& event) const {
    const auto name = thread_names_.find({names_.name(event.process), names_.name(event.thread)});
    return name == thread_names_.end() ? std::string() : name->second;
  }

  void choose(StreamTimeline& timeline) {
    if (events_seen_ == 0) throw InputError(stream_.source(), "no events", kExpected);
    const auto any_of = [&](const char* process) {
      return std::any_of(process_names_.begin(), process_names_.end(),
                         [&](const auto& entry) { return entry.second == process; });
    };
    const bool hardware = any_of("Ascend Hardware"), hccl = any_of("HCCL") || any_of("Communication");
    std::map<std::string, std::size_t> others;
    for (const Event& event : events_) {
      const std::string process = process_of(event), thread = thread_of(event);
      const bool summary = thread.starts_with("Step Trace") || thread.starts_with("Communication Kernel") ||
                           thread.starts_with("Group ");
      const bool wanted =
          process_names_.empty() ||
          (hardware ? process == "Ascend Hardware" : (process == "HCCL" || process == "Communication"));
      if (!wanted || summary || !(hardware || hccl || process_names_.empty())) {
        ++others[process.empty() ? "no process" : process + (summary ? " (" + thread + ")" : "")];
        continue;
      }
      timeline.add(names_.name(event.name), maker_.engine(engine_name(event, thread)), event.start,
                   event.duration);
    }
    std::string left;
    for (const auto& [name, count] : others)
      left += fmt::format("{}{} of {}", left.empty() ? "" : ", ", count, name);
    if (timeline.size() == 0)
      throw InputError(
          stream_.source(),
          "no tasks of \"Ascend Hardware\" or \"HCCL\"" + (left.empty() ? "" : " (" + left + ")"), kExpected);
    maker_.remark(fmt::format("{} from tasks of the device{}", count_of(timeline.size(), "op"),
                              left.empty() ? "" : "; none from " + left));
    maker_.remark(shapes_ > 0
                      ? "no tensors: shapes of inputs and outputs are there, but not which tensors they are"
                      : "no tensors: the timeline names none");
  }

  // "Stream 7" or "Plane 0" as the thread is called, else "stream 519".
  std::string engine_name(const Event& event, const std::string& thread) const {
    std::string name = thread.empty() ? "stream " + names_.name(event.thread) : thread;
    if (name[0] >= 'A' && name[0] <= 'Z') name[0] = static_cast<char>(name[0] + 32);
    return name;
  }

  TextStream& stream_;
  TraceMaker& maker_;
  NameTable names_;
  std::vector<Event> events_;
  std::map<std::string, std::string> process_names_;
  std::map<std::pair<std::string, std::string>, std::string> thread_names_;
  std::size_t events_seen_ = 0, shapes_ = 0;
};

// MindSpore's table; an op's name may have commas, the last three columns don't.
class TableReader {
 public:
  TableReader(TextStream& stream, TraceMaker& maker, StreamTimeline& timeline)
      : stream_(stream), maker_(maker), timeline_(timeline) {}

  void read() {
    std::string rest;
    for (std::string_view piece = stream_.next_piece(); !piece.empty(); piece = stream_.next_piece()) {
      rest += piece;
      std::size_t begin = 0;
      for (std::size_t end = rest.find('\n'); end != std::string::npos;
           begin = end + 1, end = rest.find('\n', begin))
        line(std::string_view(rest).substr(begin, end - begin));
      rest.erase(0, begin);
    }
    if (!rest.empty()) line(rest);
    if (timeline_.size() == 0) throw InputError(stream_.source(), "no rows", kExpected);
    maker_.remark(count_of(timeline_.size(), "op") + " from rows of the table");
    maker_.remark("no tensors: the table names none");
  }

 private:
  void line(std::string_view text) {
    ++line_;
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
    if (text.empty() || line_ == 1) return;
    const std::string_view row = text;
    std::string_view columns[3];
    for (std::size_t c = 3; c-- > 0;) {
      const std::size_t comma = text.rfind(',');
      if (comma == std::string_view::npos) fail(row);
      columns[c] = text.substr(comma + 1);
      text = text.substr(0, comma);
    }
    const auto start = parse_picoseconds(columns[1], kPicosPerMilli),
               duration = parse_picoseconds(columns[2], kPicosPerMilli);
    if (!start || !duration) fail(row);
    while (!columns[0].empty() && columns[0].front() == ' ') columns[0].remove_prefix(1);
    timeline_.add(std::string(text), maker_.engine("stream " + std::string(columns[0])), *start, *duration);
  }

  [[noreturn]] void fail(std::string_view found) const {
    throw InputError(fmt::format("{}:{}", stream_.source(), line_), in_quotes(found),
                     "a row of " + kTableHead);
  }

  TextStream& stream_;
  TraceMaker& maker_;
  StreamTimeline& timeline_;
  int line_ = 0;
};

}  // namespace

ImportResult import_ascend(const std::vector<std::string>& files, const ImportOptions& options) {
  TraceMaker maker("ascend", files);
  StreamTimeline timeline;
  TextStream stream(files[0], kExpected);
  const std::string_view begin = stream.next_piece();
  if (begin.empty()) throw InputError(stream.source(), "an empty file", kExpected);
  stream.put_back(begin);
  const std::string_view line = begin.substr(0, begin.find_first_of("\r\n"));
  if (line == kTableHead)
    TableReader(stream, maker, timeline).read();
  else if (const std::size_t first = begin.find_first_not_of(" \t\r\n");
           first != std::string_view::npos && (begin[first] == '[' || begin[first] == '{'))
    EventReader(stream, maker).read(timeline);
  else
    throw InputError(stream.source(), in_quotes(line), kExpected);
  timeline.emit(maker, options);
  return maker.finish("tasks");
}

}  // namespace hyperoffload
