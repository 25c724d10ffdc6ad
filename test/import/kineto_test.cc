// Kineto traces: what each event becomes, exact times, and what is said about odd ones. Cases of part F by
// number.
#include <map>

#include "sim/report/trace_info.h"
#include "test/import/data.h"
#include "test/support/tiny.h"

namespace hyperoffload {
namespace {

std::string device_event(const std::string& category, const std::string& name, int stream,
                         const std::string& ts, const std::string& dur, const std::string& more = "") {
  return "{\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": \"" + name +
         "\", \"pid\": 0, \"tid\": " + std::to_string(stream) + ", \"ts\": " + ts + ", \"dur\": " + dur +
         ", \"args\": {\"device\": 0, \"stream\": " + std::to_string(stream) + more + "}}";
}

std::string trace_of(const std::vector<std::string>& events) {
  std::string text = "{\"schemaVersion\": 1, \"traceEvents\": [";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i > 0 ? ",\n" : "\n") + events[i];
  return text + "]}";
}

ImportResult import_events(const std::vector<std::string>& events, const ImportOptions& options = {}) {
  const TemporaryFiles files;
  return import_trace("kineto", {files.add("trace.json", trace_of(events))}, options);
}

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  return names;
}

}  // namespace

TEST_CASE("kernels, copies and memsets become ops in the order of their starts, annotations don't") {
  const auto result = import_events(
      {device_event("kernel", "mm", 7, "12", "3"), device_event("gpu_memcpy", "Memcpy DtoD", 20, "10", "1"),
       device_event("gpu_memset", "Memset", 7, "11", "0.5"), device_event("kernel", "mm", 7, "20", "3.25"),
       device_event("gpu_user_annotation", "step", 7, "10", "50"),
       R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 1})",
       R"({"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 9007199254740993, "pid": 1, "tid": 1, "ts": 5})"});
  const Graph& g = result.graph;
  CHECK(op_names(g) == std::vector<std::string>{"Memcpy DtoD", "Memset", "mm", "mm#2"});
  CHECK(g.engines() == std::vector<std::string>{"stream 7", "stream 20"});
  CHECK(g.engines()[g.ops()[0].engine.index()] == "stream 20");
  CHECK(g.ops()[1].duration->value == 0.5e-6);
  CHECK(g.ops()[3].duration->value == 3.25e-6);
  CHECK(has_remark(
      result, "4 ops from device events (2 kernel, 1 gpu_memcpy, 1 gpu_memset); 3 other events are none"));
  CHECK(has_remark(result, "no tensors"));
  CHECK(has_remark(result, "no dependencies between the 2 streams"));
}

TEST_CASE("times beyond double precision stay exact, as numbers and as text (case 69)") {
  // 3 ns apart at an epoch where doubles are 250 ns apart.
  const auto result = import_events({device_event("kernel", "b", 7, "\"1689180448554837.124\"", "\"0.002\""),
                                     device_event("kernel", "a", 7, "1689180448554837.121", "0.003"),
                                     device_event("kernel", "c", 7, "\"1689180448554837.127\"", "1")});
  CHECK(op_names(result.graph) == std::vector<std::string>{"a", "b", "c"});
  CHECK(result.graph.ops()[0].duration->value == 3e-9);
  CHECK(has_remark(result, "0.001 us in which a stream was idle"));  // b ends at .126, c starts at .127
  CHECK(contains(result.graph.meta_json(), "\"origin_us\": \"1689180448554837.121\""));
}

TEST_CASE("events with zero time are counted and shift no origin (case 70)") {
  const auto result = import_events(
      {device_event("kernel", "a", 7, "1000", "1"), device_event("kernel", "z", 7, "0.000", "0.000"),
       device_event("kernel", "y", 7, "0", "0"), device_event("kernel", "b", 7, "1001", "1")});
  CHECK(op_names(result.graph) == std::vector<std::string>{"a", "b", "z", "y"});
  CHECK(has_remark(result, "2 events with zero time"));
  CHECK(contains(result.graph.meta_json(), "\"origin_us\": \"1000\""));
  CHECK(contains(input_error([] { import_events({device_event("kernel", "z", 7, "0", "0")}); }),
                 "found 1 op without any time or bytes"));  // case 63
}

TEST_CASE("events without a start or a duration are counted as such, and shift no origin") {
  const std::string no_start =
      R"({"ph": "X", "cat": "kernel", "name": "s", "dur": 2, "args": {"device": 0, "stream": 7}})";
  const std::string no_duration =
      R"({"ph": "X", "cat": "kernel", "name": "d", "ts": 1001, "dur": null, "args": {"device": 0, "stream": 7}})";
  const auto result =
      import_events({no_start, device_event("kernel", "n", 7, "null", "3"),
                     device_event("kernel", "a", 7, "1000", "1"), no_duration});
  CHECK(op_names(result.graph) == std::vector<std::string>{"a", "d", "s", "n"});
  CHECK(total_seconds(result.graph) == Approx((2 + 3 + 1) * 1e-6));
  CHECK(has_remark(result, "2 events without a start: they stand at the end, and shift no origin"));
  CHECK(has_remark(result, "1 event without a duration: 0 taken"));
  CHECK_FALSE(has_remark(result, "a duration of 0"));
  CHECK_FALSE(has_remark(result, "zero time"));
  CHECK_FALSE(has_remark(result, "idle"));
  CHECK(contains(result.graph.meta_json(), "\"origin_us\": \"1000\""));
  const TemporaryFiles files;
  const auto ascend = import_trace("ascend", {files.add("a.json", "[" + no_start + "," + no_duration + "]")}, {});
  CHECK(has_remark(ascend, "1 event without a start"));
  CHECK(has_remark(ascend, "1 event without a duration"));
}

TEST_CASE("overlaps on one stream are counted, and clipped where asked for (case 71)") {
  // a runs 4 us into b: the stream is busy from 0 to 12.
  const std::vector<std::string> events = {device_event("kernel", "a", 7, "100", "10"),
                                           device_event("kernel", "b", 7, "106", "6")};
  const auto plain = import_events(events);
  CHECK(has_remark(plain,
                   "1 overlap on stream 7: an op starts before the one before it has ended, by 4 us at "
                   "worst; durations sum to 16 us, the stream is busy for 12 us"));
  CHECK(has_remark(plain, "durations on stream 7 sum to more than the 12 us"));
  CHECK(total_seconds(plain.graph) == Approx(16e-6));
  ImportOptions options;
  options.overlaps = "clip";
  const auto clipped = import_events(events, options);
  CHECK(clipped.graph.ops()[0].duration->value == 6e-6);
  CHECK(total_seconds(clipped.graph) == Approx(12e-6));
}

TEST_CASE("gaps and dependencies of a timeline are kept where asked for") {
  // stream 7: a 0-2, c 5-6; stream 8: b 3-4, d 6-7.
  const std::vector<std::string> events = {
      device_event("kernel", "a", 7, "0", "2"), device_event("kernel", "b", 8, "3", "1"),
      device_event("kernel", "c", 7, "5", "1"), device_event("kernel", "d", 8, "6", "1")};
  ImportOptions options;
  options.dependencies = "observed";
  const Graph observed = import_events(events, options).graph;
  CHECK(observed.ops()[1].after == std::vector<OpId>{OpId(0)});  // b waits for a
  CHECK(observed.ops()[2].after == std::vector<OpId>{OpId(1)});  // c for b
  CHECK(observed.ops()[3].after == std::vector<OpId>{OpId(2)});  // d for c, which ends when d starts
  options.dependencies.reset();
  options.gaps = "keep";
  const auto gaps = import_events(events, options);
  CHECK(op_names(gaps.graph) == std::vector<std::string>{"a", "idle", "b", "idle#2", "c", "idle#3", "d"});
  CHECK(gaps.graph.ops()[1].duration->value == 3e-6);  // stream 8 from the origin on
  CHECK(gaps.graph.ops()[5].duration->value == 2e-6);
  options.gaps = "keeps";
  CHECK(contains(input_error([&] { import_events(events, options); }),
                 "--gaps: found \"keeps\", expected \"keep\""));
}

TEST_CASE("copies faster than the link are told (case 23)") {
  // 128,000 bytes in 1 us are 128 GB/s.
  const std::vector<std::string> events = {
      device_event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, "0", "1", ", \"bytes\": 128000"),
      device_event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 7, "2", "1", ", \"bytes\": 999999")};
  CHECK(has_remark(import_events(events),
                   "1 copy between host and device faster than 64 GB/s, the fastest with 128 GB/s"));
  ImportOptions options;
  options.link = "450GB/s";
  CHECK_FALSE(has_remark(import_events(events, options), "between host and device"));
  options.link = "0GB/s";
  CHECK(contains(input_error([&] { import_events(events, options); }), "--link: found \"0GB/s\", expected a rate above 0"));
}

TEST_CASE("one device of several, and further categories") {
  std::string other = device_event("kernel", "x", 7, "1", "1");
  other.replace(other.find("\"device\": 0"), 11, "\"device\": 1");
  const std::vector<std::string> events = {device_event("kernel", "a", 7, "0", "1"), other,
                                           device_event("mtia_ccp_events", "m", 9, "3", "1")};
  const auto both = import_events(events);
  CHECK(both.graph.engines() == std::vector<std::string>{"device 0 stream 7", "device 1 stream 7"});
  CHECK(has_remark(both, "events of 2 devices"));
  ImportOptions options;
  options.device = "1";
  CHECK(op_names(import_events(events, options).graph) == std::vector<std::string>{"x"});
  options.device = "2";
  CHECK(contains(input_error([&] { import_events(events, options); }),
                 "no kernel, gpu_memcpy or gpu_memset event of device 2"));
  options.device.reset();
  options.category = "mtia_ccp_events";
  CHECK(import_events(events, options).graph.ops().size() == 3);
}

TEST_CASE("memory events become tensors that live from the launch after them to the one before the free") {
  const auto launch = [](int correlation, const std::string& ts) {
    return "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 1, \"tid\": "
           "1, \"ts\": " +
           ts + ", \"dur\": 1, \"args\": {\"correlation\": " + std::to_string(correlation) + "}}";
  };
  const auto memory = [](const std::string& ts, int bytes, int address, int total) {
    return "{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"ts\": " + ts +
           ", \"args\": {\"Device Type\": 1, \"Device Id\": 0, \"Bytes\": " + std::to_string(bytes) +
           ", \"Addr\": " + std::to_string(address) + ", \"Total Allocated\": " + std::to_string(total) +
           "}}";
  };
  // Launches at 10, 20, 30; 1000 bytes are there before, of which 300 are freed in the window.
  const std::vector<std::string> events = {
      memory("9", 500, 1, 1500),
      launch(1, "10"),
      memory("15", -300, 9, 1200),
      memory("16", 70, 2, 1270),
      launch(2, "20"),
      memory("25", -500, 1, 770),
      launch(3, "30"),
      device_event("kernel", "k1", 7, "100", "1", ", \"correlation\": 1"),
      device_event("kernel", "k2", 7, "110", "1", ", \"correlation\": 2"),
      device_event("kernel", "k3", 7, "120", "1", ", \"correlation\": 3")};
  CHECK(has_remark(import_events(events), "4 memory events of the device are not used (--tensors memory"));
  ImportOptions options;
  options.tensors = "memory";
  const Graph g = import_events(events, options).graph;
  REQUIRE(g.tensors().size() == 4);
  CHECK(g.tensors()[0].bytes == Bytes(300));  // freed at 15: read by k1
  CHECK(g.tensors()[0].kind == TensorKind::kInput);
  CHECK(g.tensors()[1].bytes == Bytes(500));
  CHECK(g.accesses(TensorId(1)).front().op == OpId(0));
  CHECK(g.accesses(TensorId(1)).back().op == OpId(1));
  CHECK(g.tensors()[2].bytes == Bytes(70));
  CHECK(g.accesses(TensorId(2)).front().op == OpId(1));
  CHECK(g.accesses(TensorId(2)).back().op == OpId(2));
  CHECK(g.tensors()[3].bytes == Bytes(700));
  CHECK(g.tensors()[3].persistent);
  CHECK(trace_info(g).peak_live == Bytes(300 + 500 + 700));
}

TEST_CASE("an execution trace gives the kernels of a Kineto trace their tensors") {
  const TemporaryFiles files;
  const auto host = [](int id, const std::string& name, int ts, int dur) {
    return "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" + name +
           "\", \"pid\": 1, \"tid\": 5, \"ts\": " + std::to_string(ts) + ", \"dur\": " + std::to_string(dur) +
           ", \"args\": {\"External id\": " + std::to_string(id) + "}}";
  };
  const auto kernel = [](const std::string& name, int id, int ts) {
    return device_event("kernel", name, 7, std::to_string(ts), "5",
                        ", \"External id\": " + std::to_string(id) + ", \"correlation\": 900");
  };
  // empty makes storage 20; mm reads 10 and 11 and returns 12 in two kernels; add_ changes 20 in place for
  // the first time.
  const std::string trace =
      trace_of({host(1, "aten::empty", 0, 1), host(2, "aten::mm", 2, 3), host(3, "aten::add_", 6, 3),
                kernel("gemm", 2, 100), kernel("reduce", 2, 110), kernel("add", 3, 120)});
  const std::string nodes = R"json({"schema": "1.0.1", "nodes": [
    {"name": "root", "id": 1, "rf_id": 0, "parent": 1, "tid": 0, "op_schema": "", "inputs": [], "outputs": []},
    {"name": "aten::add_", "id": 5, "rf_id": 3, "parent": 1, "tid": 1,
     "op_schema": "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
     "inputs": [[30, 20, 0, 6, 4, "cuda:0"], [31, 12, 0, 6, 4, "cuda:0"], 1],
     "outputs": [[30, 20, 0, 6, 4, "cuda:0"]]},
    {"name": "aten::mm", "id": 4, "rf_id": 2, "parent": 1, "tid": 1,
     "op_schema": "aten::mm(Tensor self, Tensor mat2) -> Tensor",
     "inputs": [[28, 10, 2, 6, 4, "cuda:0"], [29, 11, 0, 6, 4, "cuda:0"]],
     "outputs": [[31, 12, 0, 6, 4, "cuda:0"]]},
    {"name": "aten::empty", "id": 3, "rf_id": 1, "parent": 1, "tid": 1,
     "op_schema": "aten::empty.memory_format(SymInt[] size) -> Tensor",
     "inputs": [[2, 3]], "outputs": [[30, 20, 0, 6, 4, "cuda:0"]]}]})json";
  const auto result =
      import_trace("kineto", {files.add("trace.json", trace), files.add("et.json", nodes)}, {});
  const Graph& g = result.graph;
  std::map<std::string, TensorId> ids;
  for (std::size_t i = 0; i < g.tensors().size(); ++i) ids[g.tensors()[i].name] = TensorId(i);
  REQUIRE(ids.size() == 4);
  CHECK(g.tensor(ids["storage10"]).bytes == Bytes((2 + 6) * 4));  // up to the end of what is used
  CHECK(g.tensor(ids["storage10"]).kind == TensorKind::kInput);
  CHECK(g.tensor(ids["storage12"]).bytes == Bytes(24));
  const Op &gemm = g.ops()[0], &reduce = g.ops()[1], &add = g.ops()[2];
  CHECK(gemm.reads == std::vector<TensorId>{ids["storage10"], ids["storage11"]});
  CHECK(gemm.writes == std::vector<TensorId>{ids["storage12"]});
  CHECK(reduce.reads.size() == 3);  // and what the first kernel began
  CHECK(add.reads == std::vector<TensorId>{ids["storage12"]});
  CHECK(add.writes == std::vector<TensorId>{ids["storage20"]});
  CHECK(has_remark(result, "4 storages of the execution trace, 2 of them there before it"));
  CHECK_FALSE(has_remark(result, "parent"));
  std::string rootless = nodes;
  rootless.replace(rootless.find("\"parent\": 1, \"tid\": 1"), 11, "\"parent\": 8");
  CHECK(has_remark(
      import_trace("kineto", {files.add("trace.json", trace), files.add("et1.json", rootless)}, {}),
      "1 node names 1 parent that is not in the file"));
  // Another run: no operator of that name.
  std::string different = nodes;
  for (std::size_t at = different.find("aten::mm\""); at != std::string::npos;
       at = different.find("aten::mm\""))
    different.replace(at, 8, "aten::bm");
  CHECK(contains(
      input_error([&] {
        import_trace("kineto", {files.add("trace.json", trace), files.add("et2.json", different)}, {});
      }),
      "found an execution trace in which 1 of 3 shared ids name another operator"));
}

TEST_CASE("a Kineto trace that is no strict JSON is refused with line and column (case 73)") {
  const TemporaryFiles files;
  const auto message = [&](const std::string& text) {
    return input_error([&] { import_trace("kineto", {files.add("bad.json", text)}, {}); });
  };
  CHECK(contains(message("{\"traceEvents\": [\n{\"ts\": NaN}]}"), "bad.json:2:"));
  CHECK(contains(message("{\"traceEvents\": [\n{\"ph\": \"X\"},"), "a JSON syntax error"));
  CHECK(contains(message("{\"traceEvents\": [{\"name\": \"\xff\"}]}"), "ill-formed UTF-8"));
  CHECK(contains(message(""), "found an empty file, expected a PyTorch profiler trace"));
  CHECK(contains(message("[1, 2]"), "found an array, expected a PyTorch profiler trace"));
  CHECK(contains(message("{\"nodes\": []}"), "found no traceEvents (keys: \"nodes\")"));
  CHECK(contains(message("{}"), "found no traceEvents, expected"));
  CHECK(contains(message("{\"traceEvents\": [], \"schemaVersion\": 1}"), "found no records in traceEvents"));
  CHECK(contains(message("{\"traceEvents\": [1]}"), "found no records in traceEvents"));
  for (const char* value : {"{}", "3", "null"})
    CHECK(contains(message(std::string("{\"traceEvents\": ") + value + "}"), "found no array in traceEvents"));
  CHECK(contains(message(trace_of({device_event("kernel", "a", 7, "\"soon\"", "1")})),
                 "traceEvents[0].ts: found \"soon\", expected microseconds"));
  CHECK(contains(message(trace_of({device_event("kernel", "a", 7, "1", "-1")})),
                 "found -1 us, expected a duration of 0 or more"));
}

TEST_CASE("the live bytes of a real trace's memory events peak at the allocator's own maximum") {
  // "Total Allocated" at its highest, of the device, counted with jq over the file.
  for (const auto& [name, bytes] :
       std::map<std::string, std::int64_t>{{"h100", 2'088'508'416}, {"mi300", 2'219'047'936}}) {
    const auto file =
        real_file("kineto_tracelens/traces__" + name + "__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz");
    if (!file) return;
    ImportOptions options;
    options.tensors = "memory";
    CHECK(trace_info(import_trace("kineto", {*file}, options).graph).peak_live == Bytes(bytes));
  }
}

TEST_CASE("the overlaps of the B200 trace are found (case 71)") {
  const auto file = real_file("kineto_tracelens/traces__b200__eager_trace.json.gz");
  if (!file) return;
  CHECK(has_remark(
      import_trace("kineto", {*file}, {}),
      "74 overlaps on stream 7: an op starts before the one before it has ended, by 3.744 us at worst"));
}

TEST_CASE("an execution trace is laid beside a Kineto trace whose ids differ") {
  const auto trace = real_file("et_param/linear_kineto.json.gz"),
             nodes = real_file("et_param/linear_et.json.gz");
  if (!trace || !nodes) return;
  const auto result = import_trace("kineto", {*trace, *nodes}, {});
  CHECK(result.graph.ops().size() == 8716 + 1640);
  CHECK(has_remark(result, "operators occur 39 times"));
  // Another run's: refused.
  const auto other = real_file("et_param/resnet_et.json.gz");
  if (other)
    CHECK(contains(input_error([&] {
                     import_trace("kineto", {*trace, *other}, {});
                   }),
                   "expected one of the same run"));
}

}  // namespace hyperoffload
