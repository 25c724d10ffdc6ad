#include "sim/report/trace_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "test/support/catch.h"
#include "test/support/random_trace.h"

namespace hyperoffload {
namespace {

Graph graph_of(const std::string& tensors, const std::string& ops, const std::string& meta = "{}") {
  return parse_graph(R"({"format": "hyperoffload-trace", "version": 1, "name": "t", "meta": )" + meta +
                         R"(, "tensors": [)" + tensors + R"(], "ops": [)" + ops + "]}",
                     "t.json");
}

TEST_CASE("Trace info counts ops, tensors, accesses, engines, time, work and bytes by kind") {
  const Graph graph = graph_of(
      R"({"name": "w", "bytes": 100, "kind": "weight"}, {"name": "v", "bytes": 11, "kind": "weight"}, {"name": "x", "bytes": 7, "kind": "activation"})",
      R"({"name": "a", "duration_us": 10, "flops": 3, "reads": ["w", "v"], "writes": ["x"]},
         {"name": "b", "duration_us": 20.5, "hbm_bytes": 50, "reads": ["x"], "writes": ["x"], "engine": "comm"},
         {"name": "c", "flops": 4, "reads": ["x", "w"]})");
  const TraceInfo info = trace_info(graph);
  CHECK(info.ops == 3);
  CHECK(info.tensors == 3);
  CHECK(info.accesses == 3 + 1 + 2);
  CHECK(info.flops.value == 3 + 4);
  CHECK(info.hbm_bytes.value == 50);
  CHECK(info.duration_us == 10 + 20.5);
  CHECK(info.timed_ops == 2);
  CHECK(info.bytes_by_kind[static_cast<std::size_t>(TensorKind::kWeight)].value == 100 + 11);
  CHECK(info.bytes_by_kind[static_cast<std::size_t>(TensorKind::kActivation)].value == 7);
  CHECK(info.bytes_by_kind[static_cast<std::size_t>(TensorKind::kKv)].value == 0);
  CHECK(info.engines == std::vector<std::pair<std::string, std::size_t>>{{"compute", 2}, {"comm", 1}});
}

TEST_CASE("The live-bytes peak counts persistent tensors, lifetimes and workspace, and names its step") {
  // step 0: w 100 + in 8 + x 20; step 1: w + in + x + y 30 + workspace 5; step 2: w + y
  const Graph graph = graph_of(
      R"({"name": "w", "bytes": 100, "kind": "weight"}, {"name": "in", "bytes": 8, "kind": "input"},
         {"name": "x", "bytes": 20, "kind": "activation"}, {"name": "y", "bytes": 30, "kind": "activation"},
         {"name": "unused", "bytes": 1000, "kind": "activation"})",
      R"({"name": "a", "duration_us": 1, "writes": ["x"]},
         {"name": "b", "duration_us": 1, "reads": ["x", "in"], "writes": ["y"], "workspace_bytes": 5},
         {"name": "c", "duration_us": 1, "reads": ["y"], "workspace_bytes": 28})");
  const TraceInfo info = trace_info(graph);
  CHECK(info.peak_live.value == 100 + 8 + 20 + 30 + 5);
  CHECK(info.peak_op == "b");
  CHECK(info.peak_step == OpId(1));
}

TEST_CASE("Of equal peaks the first is named, and sizes beyond 2^63-1 saturate") {
  const Graph flat = graph_of(R"({"name": "w", "bytes": 1, "kind": "weight"})",
                              R"({"name": "a", "duration_us": 1}, {"name": "b", "duration_us": 1})");
  CHECK(trace_info(flat).peak_op == "a");
  const Graph huge = graph_of(
      R"({"name": "x", "bytes": 9223372036854775807, "kind": "activation"}, {"name": "y", "bytes": 9223372036854775807, "kind": "activation"},
         {"name": "z", "bytes": 5, "kind": "activation"})",
      R"({"name": "a", "duration_us": 1, "writes": ["z"]}, {"name": "b", "duration_us": 1, "writes": ["x", "y"]})");
  CHECK(trace_info(huge).peak_live == Bytes::max());
  CHECK(trace_info(huge).peak_op == "b");
}

TEST_CASE("The peak equals the largest sum of live bytes, step by step, on random traces") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    GraphSpec spec = random_spec(random);
    for (Tensor& tensor : spec.tensors) tensor.bytes = Bytes(tensor.bytes.value % 1000);
    for (Op& op : spec.ops) op.workspace = Bytes(op.workspace.value % 1000);
    const Graph graph = build_graph(spec);
    std::int64_t peak = 0;
    for (std::size_t i = 0; i < graph.ops().size(); ++i) {
      std::int64_t live = graph.ops()[i].workspace.value;
      for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
        const auto accesses = graph.accesses(TensorId(t));
        const bool before =
            std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) { return a.op.index() <= i; });
        const bool later =
            std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) { return a.op.index() >= i; });
        const Tensor& tensor = graph.tensors()[t];
        if (tensor.persistent || (later && (before || tensor.kind == TensorKind::kInput)))
          live += tensor.bytes.value;
      }
      peak = std::max(peak, live);
    }
    REQUIRE(trace_info(graph).peak_live.value == peak);
  }
}

TEST_CASE("The JSON form has its documented fields, and the model's figures where the trace has them") {
  const std::string tensors = R"({"name": "w\"", "bytes": 100, "kind": "weight"})";
  const std::string ops =
      R"({"name": "a", "duration_us": 0.1}, {"name": "b", "duration_us": 0.2, "reads": ["w\""]})";
  const auto plain = nlohmann::json::parse(trace_info_json(trace_info(graph_of(tensors, ops))));
  CHECK(plain["ops"] == 2);
  CHECK(plain["tensors"] == 1);
  CHECK(plain["flops"] == 0);
  CHECK(plain["duration_us"].get<double>() == Approx(0.1 + 0.2));
  CHECK(plain["bytes_by_kind"].size() == std::size(kAllTensorKinds));
  CHECK(plain["bytes_by_kind"]["weight"] == 100);
  CHECK(plain["peak_live_bytes"] == 100);
  CHECK(plain["peak_live_op"] == "a");
  CHECK_FALSE(plain.contains("model"));
  const std::string meta =
      R"({"model": {"parameters": 8030261248, "kv_bytes_per_token": 131072, "layers": 32}})";
  const TraceInfo info = trace_info(graph_of(tensors, ops, meta));
  const auto model = nlohmann::json::parse(trace_info_json(info))["model"];
  CHECK(model == nlohmann::json::parse(R"({"parameters": 8030261248, "kv_bytes_per_token": 131072})"));
  CHECK(trace_info_table(info).find("8030261248") != std::string::npos);
  CHECK_FALSE(
      nlohmann::json::parse(trace_info_json(trace_info(graph_of(tensors, ops, R"({"model": "llama"})"))))
          .contains("model"));
}

}  // namespace
}  // namespace hyperoffload
