#include "sim/import/kineto_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "sim/import/json_records.h"
#include "sim/import/nccl.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/parse_units.h"

namespace hyperoffload {
namespace {

enum Field : std::size_t {
  kPhase,
  kCategory,
  kName,
  kStart,
  kDuration,
  kProcess,
  kThread,
  kDevice,
  kStream,
  kCorrelation,
  kExternalId,
  kRecordFunctionId,
  kCopyBytes,
  kMemoryBytes,
  kAddress,
  kDeviceType,
  kDeviceId,
  kTotalAllocated,
  kCollectiveName,
  kElementsIn,
  kElementsOut,
  kType,
  kRanks,
  kGroupSize
};

std::vector<JsonField> fields() {
  return {{{"ph"}},
          {{"cat"}},
          {{"name"}},
          {{"ts"}},
          {{"dur"}},
          {{"pid"}},
          {{"tid"}},
          {{"args", "device"}},
          {{"args", "stream"}},
          {{"args", "correlation"}},
          {{"args", "External id"}},
          {{"args", "Record function id"}},
          {{"args", "bytes"}},
          {{"args", "Bytes"}},
          {{"args", "Addr"}},
          {{"args", "Device Type"}},
          {{"args", "Device Id"}},
          {{"args", "Total Allocated"}},
          {{"args", "Collective name"}},
          {{"args", "In msg nelems"}},
          {{"args", "Out msg nelems"}},
          {{"args", "dtype"}},
          {{"args", "Process Group Ranks"}},
          {{"args", "Group size"}}};
}

// What PCIe 5.0 x16 carries a direction, nominally.
constexpr BytesPerSecond kUsualLink(64e9);

std::int64_t whole_or_none(const std::string& text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

class KinetoReader {
 public:
  KinetoReader(const std::string& file, const KinetoWanted& wanted, const ImportOptions& options,
               StreamTimeline& timeline, TraceMaker& maker)
      : stream_(file, "a PyTorch profiler trace (Kineto)"),
        wanted_(wanted),
        options_(options),
        timeline_(timeline),
        maker_(maker) {
    // Older versions write Kernel, Memcpy and Memset.
    device_categories_ = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"};
    if (options.category) {
      std::string rest = *options.category + ",";
      for (std::size_t comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
        device_categories_.insert(lower(rest.substr(0, comma)));
        rest.erase(0, comma + 1);
      }
    }
    if (options.link) link_ = parse_rate(*options.link, "--link");
    if (link_.value <= 0) throw InputError("--link", in_quotes(*options.link), "a rate above 0");
  }

  KinetoEvents read() {
    JsonRecordReader reader;
    reader.arrays = {"traceEvents"};
    reader.fields = fields();
    reader.record = [this](const std::string&, std::size_t index, const JsonRecord& record) {
      event(index, record);
    };
    reader.member = [this](const std::string& key, const JsonValue& value) { members_.add(key, value); };
    read_json_records(stream_, reader);
    if (events_.events == 0)
      throw InputError(stream_.source(), members_.without_records("traceEvents"), stream_.expected());
    name_engines();
    remark();
    return std::move(events_);
  }

 private:
  void event(std::size_t index, const JsonRecord& r) {
    ++events_.events;
    const std::string& phase = r.text(kPhase);
    if (phase == "i" && r.text(kName) == "[memory]") return memory(index, r);
    if (phase != "X") return;
    const std::string& category = r.text(kCategory);
    ++events_.categories[category.empty() ? "without a category" : category];
    if (device_categories_.count(lower(category)) > 0)
      device(index, r);
    else if (wanted_.host_ops && (category == "cpu_op" || category == "user_annotation"))
      host_op(index, r);
    else if (wanted_.launches && r.has(kCorrelation))
      launch(index, r);
  }

  // nullopt: the event doesn't say it.
  std::optional<Picoseconds> time(std::size_t index, const JsonRecord& r, Field field, const char* key) const {
    if (!r.has(field)) return std::nullopt;
    const auto time = parse_picoseconds(r.text(field), kPicosPerMicro);
    if (!time)
      throw InputError(fmt::format("{}: traceEvents[{}].{}", stream_.source(), index, key),
                       in_quotes(r.text(field)), "microseconds");
    return time;
  }

  void device(std::size_t index, const JsonRecord& r) {
    const std::string device = r.has(kDevice) ? r.text(kDevice) : r.text(kProcess);
    ++devices_[device];
    if (options_.device && device != *options_.device) return;
    ++device_categories_seen_[r.text(kCategory)];
    const std::string stream = r.has(kStream) ? r.text(kStream) : r.text(kThread);
    const std::optional<Picoseconds> given = time(index, r, kDuration, "dur");
    const Picoseconds duration = given.value_or(0);
    timeline_.add(r.text(kName), engine(device, stream), time(index, r, kStart, "ts"), given);
    events_.device.push_back({whole_or_none(r.text(kCorrelation)), whole_or_none(r.text(kExternalId))});
    const std::string& name = r.text(kName);
    std::size_t& communication = communication_[engine(device, stream)];
    communication += is_communication(name);
    ++ops_on_[engine(device, stream)];
    if (is_communication(name)) {
      if (const auto collective =
              nccl_collective({r.text(kCollectiveName), r.text(kElementsIn), r.text(kElementsOut), r.text(kType),
                               r.text(kRanks), r.text(kGroupSize)}))
        events_.collectives.emplace(events_.device.size() - 1, *collective);
      else
        ++events_.unsaid_collectives;
    }
    if (duration > 0 && r.has(kCopyBytes) &&
        (name.find("HtoD") != std::string::npos || name.find("DtoH") != std::string::npos)) {
      const double rate = static_cast<double>(whole_or_none(r.text(kCopyBytes))) / to_seconds(duration).value;
      too_fast_ += rate > link_.value;
      fastest_ = std::max(fastest_, rate);
    }
  }

  EngineId engine(const std::string& device, const std::string& stream) {
    const auto [place, fresh] = engines_.try_emplace({device, stream});
    if (fresh) place->second = maker_.engine(fmt::format("device {} stream {}", device, stream));
    return place->second;
  }

  void host_op(std::size_t index, const JsonRecord& r) {
    const std::optional<Picoseconds> start = time(index, r, kStart, "ts");
    if (!start) {
      ++unplaced_;
      return;
    }
    events_.host_ops.push_back({events_.names.number(r.text(kName)), events_.names.number(r.text(kThread)),
                                *start, *start + time(index, r, kDuration, "dur").value_or(0),
                                whole_or_none(r.text(kExternalId)),
                                whole_or_none(r.text(kRecordFunctionId))});
  }

  void launch(std::size_t index, const JsonRecord& r) {
    if (const std::optional<Picoseconds> start = time(index, r, kStart, "ts"))
      events_.launches.try_emplace(whole_or_none(r.text(kCorrelation)),
                                   LaunchEvent{*start, events_.names.number(r.text(kThread))});
    else
      ++unplaced_;
  }

  void memory(std::size_t index, const JsonRecord& r) {
    if (r.text(kDeviceType) == "0") return;  // host memory
    if (options_.device && r.text(kDeviceId) != *options_.device) return;
    ++events_.memory_events;
    if (!wanted_.memory) return;
    std::int64_t bytes = 0;
    const std::string& text = r.text(kMemoryBytes);
    if (std::from_chars(text.data(), text.data() + text.size(), bytes).ec != std::errc())
      throw InputError(fmt::format("{}: traceEvents[{}].args.Bytes", stream_.source(), index),
                       in_quotes(text), "whole bytes");
    const std::optional<Picoseconds> at = time(index, r, kStart, "ts");
    if (!at) {
      ++unplaced_;
      return;
    }
    if (events_.memory.empty() || *at < first_memory_) {
      first_memory_ = *at;
      events_.allocated_before = std::max<std::int64_t>(0, whole_or_none(r.text(kTotalAllocated)) - bytes);
    }
    events_.memory.push_back(
        {*at, bytes, r.text(kDeviceType) + '/' + r.text(kDeviceId) + '/' + r.text(kAddress)});
  }

  bool only_communicates(EngineId id) const { return communication_.at(id) == ops_on_.at(id); }

  // One device goes without saying; nor need streams be told apart where only one communicates.
  void name_engines() {
    if (devices_.size() > 1 && !options_.device) {
      maker_.remark(fmt::format("events of {}: a layer trace is that of one (--device N takes one)",
                                count_of(devices_.size(), "device")));
      return;
    }
    for (const auto& [key, id] : engines_)
      maker_.rename_engine(id, (only_communicates(id) ? "comm stream " : "stream ") + key.second);
  }

  void remark() const {
    if (timeline_.size() == 0) fail_without_device_events();
    maker_.remark(fmt::format("{} from device events ({}); {} are none", count_of(timeline_.size(), "op"),
                              counts_by_category(device_categories_seen_),
                              count_of(events_.events - timeline_.size(), "other event")));
    if (unplaced_ > 0)
      maker_.remark(fmt::format("{} of the host or of memory without a start: not used",
                                count_of(unplaced_, "event")));
    if (too_fast_ > 0)
      maker_.remark(
          fmt::format("{} between host and device faster than {:.6g} GB/s, the fastest with {:.6g} GB/s: "
                      "such a duration is that of "
                      "the call, not of the copy{}",
                      count_of(too_fast_, "copy", "copies"), link_.value / 1e9, fastest_ / 1e9,
                      options_.link ? "" : ", unless the link is faster than PCIe 5.0 x16 (--link tells)"));
  }

  [[noreturn]] void fail_without_device_events() const {
    std::string found = "no kernel, gpu_memcpy or gpu_memset event";
    if (options_.device && !devices_.empty()) found += " of device " + *options_.device;
    found += fmt::format(" among {}", count_of(events_.events, "event"));
    if (!events_.categories.empty()) found += " (" + counts_by_category(events_.categories) + ")";
    throw InputError(stream_.source(), found,
                     "device activity (--category NAME takes events of another category for it)");
  }

  TextStream stream_;
  KinetoWanted wanted_;
  const ImportOptions& options_;
  StreamTimeline& timeline_;
  TraceMaker& maker_;
  KinetoEvents events_;
  std::set<std::string> device_categories_;
  std::map<std::string, std::size_t> devices_, device_categories_seen_;
  std::map<std::pair<std::string, std::string>, EngineId> engines_;
  std::map<EngineId, std::size_t> ops_on_, communication_;  // by engine
  TopMembers members_;
  BytesPerSecond link_ = kUsualLink;
  std::size_t too_fast_ = 0;
  std::size_t unplaced_ = 0;  // events of the host or of memory without a start
  double fastest_ = 0;
  Picoseconds first_memory_ = 0;
};

}  // namespace

KinetoEvents read_kineto_events(const std::string& file, const KinetoWanted& wanted,
                                const ImportOptions& options, StreamTimeline& timeline, TraceMaker& maker) {
  return KinetoReader(file, wanted, options, timeline, maker).read();
}

std::string counts_by_category(const std::map<std::string, std::size_t>& categories) {
  std::vector<std::pair<std::string, std::size_t>> sorted(categories.begin(), categories.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, count] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text;
}

}  // namespace hyperoffload
