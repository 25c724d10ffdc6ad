// PyTorch execution traces alone, Ascend and MindSpore timelines, LLMServingSim's text.
#include <nlohmann/json.hpp>
#include <map>
#include <set>

#include "sim/model/read_file.h"
#include "sim/report/trace_info.h"
#include "test/import/data.h"
#include "test/support/tiny.h"

namespace hyperoffload {
namespace {

ImportResult import_text(const std::string& format, const std::string& text,
                         const ImportOptions& options = {}) {
  const TemporaryFiles files;
  return import_trace(format, {files.add("trace.txt", text)}, options);
}

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  return names;
}

// In the newer layout; mm returns storage 3, t is a view of 2, add_ changes 3, empty makes 9, item reads on
// the host.
const std::string kNodes = R"json({"schema": "1.1.0-chakra.0.0.4", "nodes": [
  {"id": 1, "name": "process", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [], "types": []},
   "outputs": {"values": [], "shapes": [], "types": []}, "attrs": []},
  {"id": 2, "name": "aten::linear", "ctrl_deps": 1, "inputs": {"values": [[10, 1, 0, 4, 4, "cuda:0"]]},
   "outputs": {"values": [[12, 3, 0, 4, 4, "cuda:0"]]},
   "attrs": [{"name": "op_schema", "type": "string", "value": "aten::linear(Tensor input) -> Tensor"}]},
  {"id": 3, "name": "aten::t", "ctrl_deps": 2, "inputs": {"values": [[11, 2, 0, 4, 4, "cuda:0"]]},
   "outputs": {"values": [[13, 2, 0, 4, 4, "cuda:0"]]},
   "attrs": [{"name": "op_schema", "type": "string", "value": "aten::t(Tensor(a) self) -> Tensor(a)"}]},
  {"id": 4, "name": "aten::mm", "ctrl_deps": 2,
   "inputs": {"values": [[10, 1, 0, 4, 4, "cuda:0"], [13, 2, 0, 4, 4, "cuda:0"]]},
   "outputs": {"values": [[12, 3, 0, 4, 4, "cuda:0"]]},
   "attrs": [{"name": "op_schema", "type": "string", "value": "aten::mm(Tensor self, Tensor mat2) -> Tensor"}]},
  {"id": 5, "name": "aten::empty", "ctrl_deps": 1, "inputs": {"values": [[4]]},
   "outputs": {"values": [[14, 9, 0, 4, 4, "cuda:0"]]},
   "attrs": [{"name": "op_schema", "type": "string", "value": "aten::empty(SymInt[] size) -> Tensor"}]},
  {"id": 6, "name": "aten::add_", "ctrl_deps": 1,
   "inputs": {"values": [[12, 3, 0, 4, 4, "cuda:0"], [[14, 9, 0, 4, 4, "cuda:0"]]]},
   "outputs": {"values": [[12, 3, 0, 4, 4, "cuda:0"]]},
   "attrs": [{"name": "op_schema", "type": "string", "value": "aten::add_(Tensor(a!) self, Tensor[] other) -> Tensor(a!)"}]},
  {"id": 7, "name": "aten::add", "ctrl_deps": 1, "inputs": {"values": [[20, 30, 0, 1, 8, "cpu"]]},
   "outputs": {"values": [[21, 31, 0, 1, 8, "cpu"]]},
   "attrs": [{"name": "op_schema", "type": "string", "value": "aten::add(Tensor self) -> Tensor"}]},
  {"id": 8, "name": "aten::relu", "ctrl_deps": 1, "inputs": {"values": [[10, 1, 0, 4, 4, "cuda:0"]]},
   "outputs": {"values": [[30, 3, 0, 4, 4, "cuda:0"]]},
   "attrs": [{"name": "op_schema", "type": "string", "value": "aten::relu(Tensor self) -> Tensor"}]}]})json";

}  // namespace

TEST_CASE("an execution trace alone has the operators that work on the device") {
  const auto result = import_text("pytorch-et", kNodes);
  const Graph& g = result.graph;
  CHECK(op_names(g) == std::vector<std::string>{"aten::mm", "aten::add_", "aten::relu"});
  // Storage 3 begins a new life where relu returns it without having got it.
  std::set<std::string> names;
  for (const Tensor& tensor : g.tensors()) names.insert(tensor.name);
  CHECK(names == std::set<std::string>{"storage1", "storage2", "storage3", "storage9", "storage3#2"});
  CHECK(g.ops()[1].reads.size() == 2);
  CHECK(g.ops()[1].writes.size() == 1);
  CHECK(has_remark(result, "no times"));
  ImportOptions options;
  options.costs = "shapes";
  const Graph costed = import_text("pytorch-et", kNodes, options).graph;
  CHECK(costed.ops()[0].hbm_bytes == Bytes(3 * 16));
  CHECK_FALSE(costed.ops()[0].duration);
  CHECK(contains(input_error([] { import_text("pytorch-et", "{\"schema\": \"1.1\", \"nodes\": []}"); }),
                 "found no records in nodes"));
  CHECK(contains(input_error([] {
                   import_text("kineto", "{}", [] {
                     ImportOptions o;
                     o.costs = "shapes";
                     return o;
                   }());
                 }),
                 "--costs: found the format kineto, expected a format that has this option: pytorch-et"));
}

TEST_CASE("parents of an execution trace that make no forest are left out and counted (case 65)") {
  const auto with_parents = [](const std::map<int, int>& parents) {
    std::string text = kNodes;
    for (const auto& [id, parent] : parents) {
      const std::size_t at = text.find("\"ctrl_deps\": ", text.find("\"id\": " + std::to_string(id))) + 13;
      text.replace(at, 1, std::to_string(parent));
    }
    return import_text("pytorch-et", text);
  };
  CHECK_FALSE(has_remark(with_parents({}), "parent"));  // the process is its own
  CHECK(has_remark(with_parents({{3, 99}, {4, 99}, {5, 98}}),
                   "3 nodes name 2 parents that are not in the file: taken as roots"));
  CHECK(has_remark(with_parents({{4, 4}}), "1 parent that is the node itself is left out"));
  const auto cycle = with_parents({{2, 4}});  // linear in mm, and mm in linear
  CHECK(has_remark(cycle, "1 parent that closes a cycle is left out"));
  CHECK(op_names(cycle.graph) == op_names(with_parents({}).graph));
}

TEST_CASE("every real execution trace imports") {
  const auto path = real_file("et_param");
  if (!path) return;
  std::size_t imported = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*path)) {
    const std::string name = entry.path().filename().string();
    if (!contains(name, "_et.json")) continue;
    INFO(name);
    if (contains(name, ".tar")) continue;
    const auto result = import_trace("pytorch-et", {entry.path().string()}, {});
    CHECK_FALSE(has_remark(result, "parent"));
    const Graph& g = result.graph;
    // By other means: leaves with a schema and a device tensor, that aren't allocations nor return an input's
    // storage unchanged.
    const auto nodes = nlohmann::json::parse(read_file(entry.path().string(), "nodes"))["nodes"];
    std::set<std::int64_t> parents;
    for (const auto& n : nodes) parents.insert(n.value("parent", n.value("ctrl_deps", std::int64_t{0})));
    std::size_t leaves = 0;
    for (const auto& n : nodes) leaves += parents.count(n["id"].get<std::int64_t>()) == 0;
    CHECK(g.ops().size() < leaves);
    CHECK(g.ops().size() > leaves / 10);
    ++imported;
  }
  CHECK(imported == 4);
}

TEST_CASE("a tar archive is read if it has one file, and refused if it has several") {
  const auto one = real_file("et_param/hf_GPT2_et.json.tar.gz"),
             several = real_file("et_param/dlrm_kineto.tar.gz");
  if (!one || !several) return;
  CHECK(has_remark(import_trace("pytorch-et", {*one}, {}), "of 27156 nodes"));  // "id" counted with grep
  CHECK(contains(input_error([&] { import_trace("kineto", {*several}, {}); }),
                 "found a tar archive of several files (dlrm_kineto/worker2"));
}

TEST_CASE("tasks of the Ascend hardware are ops, what sums them up is not (case 69)") {
  const std::string events = R"json([
    {"name": "process_name", "pid": 3, "tid": 0, "args": {"name": "Ascend Hardware"}, "ph": "M"},
    {"name": "thread_name", "pid": 3, "tid": 2, "args": {"name": "Stream 2"}, "ph": "M"},
    {"name": "thread_name", "pid": 3, "tid": 9, "args": {"name": "Step Trace(Model ID:2)"}, "ph": "M"},
    {"name": "process_name", "pid": 5, "tid": 0, "args": {"name": "HCCL"}, "ph": "M"},
    {"name": "Iteration 1", "pid": 3, "tid": 9, "ts": "1695000000000000.1", "dur": 99, "ph": "X"},
    {"name": "MatMul", "pid": 3, "tid": 2, "ts": "1695000000000000.123", "dur": "1.001", "ph": "X"},
    {"name": "Cast", "pid": 3, "tid": 2, "ts": "1695000000000000.121", "dur": 0.002, "ph": "X"},
    {"name": "Notify_Wait", "pid": 5, "tid": 0, "ts": "1695000000000000.121", "dur": 5, "ph": "X"},
    {"name": "HostToDevice", "ph": "s", "id": "9223372036854775809", "ts": "1695000000000000.2", "pid": 3, "tid": 2}
  ])json";
  const auto result = import_text("ascend", events);
  CHECK(op_names(result.graph) == std::vector<std::string>{"Cast", "MatMul"});
  CHECK(result.graph.ops()[1].duration->value == 1.001e-6);
  CHECK(result.graph.engines() == std::vector<std::string>{"stream 2"});
  CHECK(has_remark(
      result,
      "2 ops from tasks of the device; none from 1 of Ascend Hardware (Step Trace(Model ID:2)), 1 of HCCL"));
  CHECK(contains(input_error([] { import_text("ascend", "[]"); }), "found no events"));
}

TEST_CASE("MindSpore's table of ops keeps names with commas and exact milliseconds") {
  const auto result =
      import_text("mindspore",
                  "op_name, stream_id, start_time(ms), "
                  "duration(ms)\nDefault/a,b-op1,519,438068.41592,0.00266\nDefault/c,7,438068.41500,1\n");
  CHECK(op_names(result.graph) == std::vector<std::string>{"Default/c", "Default/a,b-op1"});
  CHECK(result.graph.ops()[1].duration->value == 2.66e-6);
  CHECK(result.graph.engines() == std::vector<std::string>{"stream 519", "stream 7"});
  CHECK(contains(input_error([] {
                   import_text("mindspore", "op_name, stream_id, start_time(ms), duration(ms)\nx,1\n");
                 }),
                 "trace.txt:2: found \"x,1\""));
}

TEST_CASE("every real Ascend and MindSpore timeline imports, or is refused for what it is") {
  const auto path = real_file("ascend");
  if (!path) return;
  for (const auto& entry : std::filesystem::directory_iterator(*path)) {
    const std::string file = entry.path().string(), name = entry.path().filename().string();
    INFO(name);
    if (contains(name, "step_trace")) {
      CHECK(contains(input_error([&] { import_trace("ascend", {file}, {}); }),
                     "expected a timeline of an Ascend device"));
      continue;
    }
    const std::string text = read_file(file, "a timeline");
    std::size_t expected = 0;
    if (contains(name, ".txt")) {
      expected = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) - 1;
    } else {
      const auto events = nlohmann::json::parse(text);
      std::set<std::int64_t> hardware, aggregate;  // processes; threads of sums
      for (const auto& e : events) {
        if (e["ph"] == "M" && e["name"] == "process_name" &&
            (e["args"]["name"] == (contains(name, "hccl") ? "HCCL" : "Ascend Hardware")))
          hardware.insert(e["pid"].get<std::int64_t>());
        if (e["ph"] == "M" && e["name"] == "thread_name") {
          const std::string thread = e["args"]["name"];
          if (contains(thread, "Step Trace") || thread == "Communication Kernel")
            aggregate.insert(e["pid"].get<std::int64_t>() * 1'000'000 + e["tid"].get<std::int64_t>());
        }
      }
      for (const auto& e : events)
        if (e["ph"] == "X" &&
            (contains(name, "mindinsight") ||
             (hardware.count(e["pid"]) > 0 &&
              aggregate.count(e["pid"].get<std::int64_t>() * 1'000'000 + e["tid"].get<std::int64_t>()) == 0)))
          ++expected;
    }
    CHECK(expected > 0);
    CHECK(import_trace("ascend", {file}, {}).graph.ops().size() == expected);
  }
}

TEST_CASE("LLMServingSim's rows become a chain of layers with weights, KV and communication") {
  const std::string trace =
      "COLOCATED\t\tmodel_parallel_NPU_group: 1\n"
      "4\n"
      "Layername   comp_time  input_loc input_size weight_loc weight_size output_loc output_size comm_type "
      "comm_size misc\n"
      "kv_load_0   0     LOCAL    0    REMOTE:0  700  LOCAL 0   NONE      0   NONE\n"
      "embedding_1 1500  REMOTE:0 16   LOCAL     100  LOCAL 64  NONE      0   NONE\n"
      "q_proj_2    20    LOCAL    64   REMOTE:0  200  LOCAL 32  ALLREDUCE 32  NONE\n"
      "lm_head_3   7     LOCAL    60   LOCAL     300  REMOTE:0 8 NONE     0   NONE\n";
  const auto result = import_text("llmservingsim", trace);
  const Graph& g = result.graph;
  CHECK(op_names(g) ==
        std::vector<std::string>{"kv_load_0", "embedding_1", "q_proj_2", "q_proj_2.ALLREDUCE", "lm_head_3"});
  CHECK(g.ops()[1].duration->value == 1.5e-6);
  REQUIRE(g.ops()[3].collective);
  CHECK(g.ops()[3].collective->kind == "all-reduce");
  const TraceInfo info = trace_info(g);
  CHECK(info.bytes_by_kind[static_cast<std::size_t>(TensorKind::kWeight)] == Bytes(600));
  CHECK(info.bytes_by_kind[static_cast<std::size_t>(TensorKind::kKv)] == Bytes(700));
  CHECK(info.bytes_by_kind[static_cast<std::size_t>(TensorKind::kInput)] == Bytes(16));
  CHECK(g.tensors()[0].initial == Tier::kPool);
  CHECK(has_remark(result, "2 weight or KV tensors outside of LOCAL"));
  CHECK(has_remark(result, "1 row gives it a size of its own"));
  std::string wrong = trace;
  wrong.replace(wrong.find("\n4\n"), 3, "\n5\n");
  CHECK(contains(input_error([&] { import_text("llmservingsim", wrong); }),
                 "found 4 rows, expected 5, as its second line says"));
  std::string unknown = trace;
  unknown.replace(unknown.find("ALLREDUCE"), 9, "FOO");
  CHECK(contains(input_error([&] { import_text("llmservingsim", unknown); }),
                 "trace.txt:6: found the comm_type \"FOO\", expected NONE, ALLREDUCE"));
  CHECK(contains(input_error([&] { import_text("llmservingsim", trace.substr(0, trace.size() - 12)); }),
                 "found 9 columns, expected 11 columns"));
}

TEST_CASE("LLMServingSim's measured layer times and cluster files are no traces") {
  const auto path = real_file("llmservingsim");
  if (!path) return;
  std::size_t refused = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*path)) {
    if (!entry.is_regular_file()) continue;
    INFO(entry.path().string());
    const std::string message =
        input_error([&] { import_trace("llmservingsim", {entry.path().string()}, {}); });
    CHECK(contains(message, entry.path().filename().string()));
    CHECK(contains(message, ", expected "));
    ++refused;
  }
  CHECK(refused > 0);
}

}  // namespace hyperoffload
