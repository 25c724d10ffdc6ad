#include "sim/report/chrome_trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "test/report/toy_run.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;
using nlohmann::json;

constexpr Direction kIn = Direction::kPoolToHbm;
constexpr Direction kOut = Direction::kHbmToPool;

// Two NPUs; on each, op1 waits for the load of w1, then for room.
RunRecord waiting_run() {
  RunRecord record = one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 17, 19, 29)},
                              {transfer(kIn, 1, 4, 6, 7, 17), transfer(kOut, 0, 10, 10, 12, 32)});
  wait_for(record.npus[0].ops[1], 0, 1);
  record.npus[0].transfers[0].action = 0;
  record.npus[0].memory = {{us(0), Bytes(1000), Bytes(1000)},
                           {us(6), Bytes(2000), Bytes(1000)},
                           {us(29), Bytes(1000), Bytes(2000)}};
  record.npus.push_back(record.npus[0]);
  return record;
}

std::string text_of(const Graph& graph, const RunRecord& record, const Plan* plan = nullptr,
                    TimelineSummary* summary = nullptr) {
  std::ostringstream out;
  const Hardware hw = toy_hardware();
  const TimelineSummary s = write_chrome_trace(out, {graph, hw, record, "graph", plan});
  if (summary) *summary = s;
  return out.str();
}

std::string filtered(const Graph& graph, const RunRecord& record, const TimelineFilter& filter,
                     TimelineSummary* summary = nullptr) {
  std::ostringstream out;
  const Hardware hw = toy_hardware();
  const TimelineSummary s = write_chrome_trace(out, {graph, hw, record, "graph", nullptr, filter});
  if (summary) *summary = s;
  return out.str();
}

std::vector<json> events_of(const std::string& text, const std::string& phase,
                            const std::string& category = "") {
  std::vector<json> events;
  const json trace = json::parse(text);  // outlives the loop over it
  for (const json& e : trace["traceEvents"])
    if (e["ph"] == phase && (category.empty() || e["cat"] == category)) events.push_back(e);
  return events;
}

using Track = std::pair<int, int>;
Track track_of(const json& e) { return {e["pid"], e["tid"]}; }

std::map<Track, std::string> track_names(const std::string& text) {
  std::map<Track, std::string> names;
  for (const json& e : events_of(text, "M"))
    if (e["name"] == "thread_name") names[track_of(e)] = e["args"]["name"];
  return names;
}

// What any viewer needs: numbers, sorted and disjoint slices, unique flow ids that lead forward.
void check_invariants(const std::string& text) {
  std::map<Track, double> end;
  std::map<Track, std::vector<std::pair<double, double>>> slices;
  for (const json& e : events_of(text, "X")) {
    REQUIRE(e["ts"].is_number());
    REQUIRE(e["dur"].is_number());
    const double ts = e["ts"], dur = e["dur"];
    CHECK(ts >= 0);
    CHECK(dur >= 0);
    CHECK(end[track_of(e)] <= ts);
    end[track_of(e)] = ts + dur;
    slices[track_of(e)].push_back({ts, ts + dur});
  }
  std::map<std::int64_t, json> starts;
  for (const json& e : events_of(text, "s")) {
    CHECK(e["id"].get<std::int64_t>() < (std::int64_t{1} << 53));
    CHECK(starts.emplace(e["id"].get<std::int64_t>(), e).second);
  }
  std::size_t finished = 0;
  for (const json& e : events_of(text, "f")) {
    REQUIRE(starts.count(e["id"].get<std::int64_t>()) == 1);
    const json& start = starts[e["id"].get<std::int64_t>()];
    CHECK(start["ts"].get<double>() <= e["ts"].get<double>());
    CHECK(start["pid"] == e["pid"]);
    for (const json* side : {&start, &e}) {  // both lie in a slice of their track
      const double ts = (*side)["ts"];
      bool inside = false;
      for (const auto& [from, to] : slices[track_of(*side)]) inside = inside || (from <= ts && ts <= to);
      CHECK(inside);
    }
    ++finished;
  }
  CHECK(finished == starts.size());
}

}  // namespace

TEST_CASE("There is one named, ordered process per NPU and one track per engine and direction") {
  const Graph graph = toy_graph({0, 0}, {"compute", "comm"});
  const std::string text = text_of(graph, waiting_run());
  check_invariants(text);
  std::set<int> threads;
  for (const auto& [track, name] : track_names(text)) threads.insert(track.second);
  CHECK(threads.size() == 2 * 5);  // unique over both processes
  std::vector<std::string> names;
  for (const auto& [track, name] : track_names(text))
    if (track.first == 1) names.push_back(name);
  CHECK(names == std::vector<std::string>{"iterations", "compute", "comm", "pool -> HBM", "HBM -> pool"});
  std::vector<std::string> processes;
  for (const json& e : events_of(text, "M"))
    if (e["name"] == "process_name") processes.push_back(e["args"]["name"]);
  CHECK(processes == std::vector<std::string>{"NPU 0", "NPU 1"});
}

TEST_CASE("Slices carry times in us, their bytes, kind, iteration and the reason of a wait (case 68)") {
  const Graph graph = toy_graph({0, 0});
  Plan plan;
  plan.actions.push_back(
      {ActionKind::kPrefetch, TensorId(1), OpId(0), OpId(1), Bytes(0), Bytes(1000), IterationScope::kEvery});
  const std::string text = text_of(graph, waiting_run(), &plan);
  const json op = events_of(text, "X", "op")[1];
  CHECK(op["name"] == "op1");
  CHECK(op["ts"] == 19);
  CHECK(op["dur"] == 29 - 19);
  CHECK(op["args"]["iteration"] == 0);
  CHECK(op["args"]["wait_us"] == 19 - 10);

  const auto waits = events_of(text, "X", "wait");
  REQUIRE(waits.size() == 2 * 2);
  CHECK(waits[0]["name"] == "wait: w1");
  CHECK(waits[0]["ts"] == 10);
  CHECK(waits[0]["dur"] == 17 - 10);
  CHECK(waits[0]["args"]["cause"] == "late_transfer");
  CHECK(waits[1]["args"]["cause"] == "no_room");
  CHECK(waits[1]["dur"] == 19 - 17);

  const auto transfers = events_of(text, "X", "transfer");
  CHECK(transfers[0]["name"] == "prefetch w1");
  CHECK(transfers[0]["args"]["bytes"] == 1000);
  CHECK(transfers[0]["args"]["kind"] == "weight");
  CHECK(transfers[0]["args"]["from_tier"] == "pool");
  CHECK(transfers[0]["args"]["to_tier"] == "HBM");
  CHECK(transfers[0]["args"]["reason"] == "op1 waits for it");
  CHECK(transfers[1]["args"]["reason"] == "its room in HBM is needed");  // no plan asked for it
  CHECK(transfers[0]["args"]["after_op"] == "op0");
  CHECK(transfers[0]["args"]["before_op"] == "op1");
  CHECK(transfers[0]["args"]["wait_for_room_us"] == 6 - 4);
  CHECK(transfers[1]["name"] == "store w0");
  CHECK(transfers[1]["ts"].get<double>() + transfers[1]["dur"].get<double>() == 32);  // in flight at the end
}

TEST_CASE("A flow leads from the transfer to the op that waited for it") {
  const Graph graph = toy_graph({0, 0});
  const std::string text = text_of(graph, waiting_run());
  const auto starts = events_of(text, "s"), ends = events_of(text, "f");
  REQUIRE(starts.size() == 2);  // one an NPU
  CHECK(starts[0]["id"] != starts[1]["id"]);
  CHECK(track_names(text)[track_of(starts[0])] == "pool -> HBM");
  CHECK(starts[0]["ts"] == 6);
  CHECK(track_names(text)[track_of(ends[0])] == "compute");
  CHECK(ends[0]["ts"] == 19);
}

TEST_CASE("Counters show memory in GiB, exactly, with its capacity, and link use in GB/s") {
  const Graph graph = toy_graph({0, 0});
  const std::string text = text_of(graph, waiting_run());
  std::map<std::string, std::vector<std::pair<double, double>>> series;
  for (const json& e : events_of(text, "C"))
    if (e["pid"] == 1)
      for (const auto& [key, value] : e["args"].items()) series[e["name"]].push_back({e["ts"], value});
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  using Points = std::vector<std::pair<double, double>>;
  CHECK(series["HBM (GiB)"] == Points{{0, 1000 / kGiB}, {6, 2000 / kGiB}, {29, 1000 / kGiB}});
  CHECK(series["pool (GiB)"] == Points{{0, 1000 / kGiB}, {29, 2000 / kGiB}});
  CHECK(series["HBM capacity (GiB)"] == Points{{0, 5000 / kGiB}, {29, 5000 / kGiB}});
  REQUIRE(series["pool -> HBM (GB/s)"].size() == 3);
  CHECK(series["pool -> HBM (GB/s)"][0].second == 0);
  CHECK(series["pool -> HBM (GB/s)"][1].first == 7);  // after the latency
  CHECK(series["pool -> HBM (GB/s)"][1].second == Approx(1000 / 10e-6 / 1e9));
  CHECK(series["pool -> HBM (GB/s)"][2] == std::pair<double, double>(17, 0));
}

TEST_CASE("Concurrent transfers of one direction go to separate tracks (case 67)") {
  const Graph graph = toy_graph({0, 0});
  RunRecord record =
      one_pass({op_record(0, 0, 0, 0, 10)}, {transfer(kIn, 0, 0, 0, 1, 11), transfer(kIn, 1, 5, 5, 6, 16)});
  const std::string text = text_of(graph, record);
  check_invariants(text);
  std::set<std::string> names;
  for (const auto& [track, name] : track_names(text)) names.insert(name);
  CHECK(names.count("pool -> HBM (2)") == 1);
  for (const json& e : events_of(text, "C"))
    if (e["name"] == "pool -> HBM (GB/s)" && e["ts"] == 6)
      CHECK(e["args"]["used"].get<double>() == Approx(0.2));
}

TEST_CASE("Transfers without bytes and ops without time neither break the link's counter nor go unsaid") {
  const Graph graph = toy_graph({0, 0});
  TransferRecord empty = transfer(kIn, 0, 0, 0, 1, 1);
  empty.to = Bytes(0);
  TransferRecord slow_nothing = transfer(kIn, 0, 2, 2, 3, 4);
  slow_nothing.to = Bytes(0);
  TimelineSummary summary;
  const std::string text =
      text_of(graph, one_pass({op_record(0, 0, 0, 0, 0), op_record(1, 0, 0, 0, 10)}, {empty, slow_nothing}),
              nullptr, &summary);
  check_invariants(text);
  CHECK(summary.zero_length == 1);
  for (const json& e : events_of(text, "C")) CHECK(e["args"].begin()->get<double>() == 0);
}

TEST_CASE("Names of any bytes give strict JSON (case 73)") {
  GraphSpec spec;
  spec.name = "t\"\\\n\xff";
  spec.engines = {"com\"pute\x01"};
  Tensor tensor;
  tensor.name = "w\"\\ \xc3\x28 \xe2\x82\xac";
  tensor.bytes = Bytes(1000);
  tensor.persistent = true;
  spec.tensors = {tensor};
  Op op;
  op.name = "op\"\xff{}\t";
  op.duration = us(10);
  op.reads = {TensorId(0)};
  op.engine = EngineId(0);
  op.phase = "ph\"ase";
  spec.ops = {op};
  const Graph graph = build_graph(std::move(spec));
  RunRecord record = one_pass({op_record(0, 0, 11, 11, 21)}, {transfer(kIn, 0, 0, 0, 1, 11)});
  wait_for(record.npus[0].ops[0], 0, 0);
  const std::string text = text_of(graph, record);
  check_invariants(text);
  const auto ops = events_of(text, "X", "op");
  REQUIRE(ops.size() == 1);
  CHECK(ops[0]["name"] == "op\"\xEF\xBF\xBD{}\t");
  CHECK(events_of(text, "X", "wait")[0]["name"] == "wait: w\"\\ \xEF\xBF\xBD( \xe2\x82\xac");
}

TEST_CASE("Iterations have a track and waits for inputs stand before the first op") {
  const Graph graph = toy_graph({0});
  RunRecord record = one_pass({op_record(0, 0, 0, 0, 10, 0), op_record(0, 10, 13, 13, 23, 1)});
  record.iterations = 2;
  record.npus[0].iteration_start = {us(0), us(10)};
  record.npus[0].iteration_end = {us(10), us(23)};
  record.npus[0].inputs_taken = {us(0), us(13)};
  const std::string text = text_of(graph, record);
  check_invariants(text);
  CHECK(events_of(text, "X", "iteration")[1]["name"] == "iteration 1");
  const auto waits = events_of(text, "X", "wait");
  REQUIRE(waits.size() == 1);
  CHECK(waits[0]["args"]["cause"] == "input_room");
  CHECK(waits[0]["ts"] == 10);
  CHECK(waits[0]["dur"] == 13 - 10);
}

TEST_CASE("The same run gives the same bytes, and a long one a warning (case 72)") {
  const Graph graph = toy_graph({0});
  TimelineSummary small;
  const Graph pair = toy_graph({0, 0});
  CHECK(text_of(pair, waiting_run()) == text_of(pair, waiting_run(), nullptr, &small));
  CHECK(small.warning.empty());

  std::vector<OpRecord> ops;
  for (int i = 0; i < 1'000'000; ++i)
    ops.push_back(op_record(0, 10.0 * i, 10.0 * i, 10.0 * i, 10.0 * (i + 1)));
  std::ostringstream out;
  const Hardware hw = toy_hardware();
  const RunRecord record = one_pass(std::move(ops));
  const TimelineSummary summary = write_chrome_trace(out, {graph, hw, record, "graph"});
  CHECK(summary.events > 1'000'000);
  CHECK_FALSE(summary.warning.empty());
}

TEST_CASE("A planned transfer says what uses its tensor next") {
  const Graph graph = toy_graph({0, 0});
  Plan plan;
  plan.actions.push_back(
      {ActionKind::kStore, TensorId(0), OpId(0), OpId::none(), Bytes(0), Bytes(1000), IterationScope::kEvery});
  plan.actions.push_back(
      {ActionKind::kPrefetch, TensorId(1), OpId::none(), OpId::none(), Bytes(0), Bytes(1000), IterationScope::kEvery});
  RunRecord record =
      one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 10, 10, 20)}, {transfer(kIn, 1, 0, 0, 1, 9), transfer(kOut, 0, 10, 10, 12, 32)});
  record.npus[0].transfers[0].action = 1;
  record.npus[0].transfers[1].action = 0;
  const auto once = events_of(text_of(graph, record, &plan), "X", "transfer");
  CHECK(once[0]["args"]["reason"] == "op1 uses it next");
  CHECK(once[1]["args"]["reason"] == "its room in HBM can be used afterwards");
  record.iterations = 2;  // then w0 is read again, by op0 of the next one
  const auto again = events_of(text_of(graph, record, &plan), "X", "transfer");
  CHECK(again[1]["args"]["reason"] == "its room in HBM can be used until op0");
}

TEST_CASE("A window of time keeps what reaches into it, and the levels it starts with") {
  const Graph graph = toy_graph({0, 0});
  TimelineFilter filter;
  filter.from = us(10);
  filter.to = us(17);
  TimelineSummary summary;
  const std::string text = filtered(graph, waiting_run(), filter, &summary);
  check_invariants(text);
  CHECK(events_of(text, "X", "op").empty());  // op0 ends at 10, op1 starts at 19
  REQUIRE(events_of(text, "X", "wait").size() == 2);  // for bytes, from 10 to 17, on each NPU
  CHECK(events_of(text, "X", "transfer").size() == 2 * 2);
  CHECK(events_of(text, "s").empty());  // the op at its end isn't shown
  CHECK(summary.left_out == 2 * 3);     // two ops and the wait for room
  std::vector<std::pair<double, double>> hbm;
  for (const json& e : events_of(text, "C"))
    if (e["pid"] == 1 && e["name"] == "HBM (GiB)") hbm.push_back({e["ts"], e["args"]["used"].get<double>() * (1 << 30)});
  CHECK(hbm == std::vector<std::pair<double, double>>{{10, 2000}});  // since 6
}

TEST_CASE("A window behind the run's end has no level in it, and says that it is empty") {
  const Graph graph = toy_graph({0, 0});
  const RunRecord run = waiting_run();
  Seconds end;
  for (const NpuRecord& npu : run.npus) {
    end = std::max(end, npu.iteration_end.back());
    for (const TransferRecord& t : npu.transfers) end = std::max(end, t.end);
  }
  for (const double later : {1e-6, 1.0}) {
    TimelineFilter filter;
    filter.from = end + Seconds(later);
    TimelineSummary summary;
    const std::string text = filtered(graph, run, filter, &summary);
    CHECK(events_of(text, "C").empty());
    CHECK(events_of(text, "X").empty());
    CHECK(summary.warning.find("has no op, wait or transfer in it: the run ends at") != std::string::npos);
  }
  // Up to the end there are levels, none later than it.
  TimelineFilter last;
  last.from = end - Seconds(1e-9);
  last.to = end + Seconds(1);
  CHECK_FALSE(events_of(filtered(graph, run, last), "C").empty());
  for (const json& e : events_of(filtered(graph, run, last), "C")) CHECK(e["ts"].get<double>() <= end.value * 1e6 * (1 + 1e-12));
  // Durations may leave nothing, too; without a choice nothing is said.
  TimelineFilter lengthy;
  lengthy.min_duration = Seconds(1);
  TimelineSummary summary;
  filtered(graph, run, lengthy, &summary);
  CHECK(summary.warning.find("no op, wait or transfer") != std::string::npos);
  filtered(graph, run, {}, &summary);
  CHECK(summary.warning.empty());
}

TEST_CASE("One NPU, or only what takes long, can be chosen") {
  const Graph graph = toy_graph({0, 0});
  TimelineFilter second;
  second.npu = 1;
  const std::string text = filtered(graph, waiting_run(), second);
  check_invariants(text);
  for (const char* phase : {"M", "X", "C", "s", "f"})
    for (const json& e : events_of(text, phase)) CHECK(e["pid"] == 2);
  CHECK(events_of(text, "X", "op").size() == 2);

  TimelineFilter lengthy;
  lengthy.min_duration = us(11);
  TimelineSummary summary;
  const std::string rest = filtered(graph, waiting_run(), lengthy, &summary);
  check_invariants(rest);
  CHECK(events_of(rest, "X", "transfer").size() == 2 * 2);  // 11 and 22 us
  CHECK(events_of(rest, "X", "op").empty());                // 10 us each
  CHECK(events_of(rest, "X", "iteration").size() == 2);
  CHECK(summary.left_out == 2 * (2 + 2));
}

TEST_CASE("What a strict parser refuses is never written: times and levels are finite, names UTF-8") {
  const Graph graph = toy_graph({0, 0});
  const std::string text = text_of(graph, waiting_run());
  CHECK(text.find("NaN") == std::string::npos);
  CHECK(text.find("Infinity") == std::string::npos);
  CHECK(text.find("inf") == std::string::npos);
  CHECK(nlohmann::json::accept(text));
}

}  // namespace hyperoffload
