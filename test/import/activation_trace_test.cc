// hyper-parallel's ActivationTrace (mindspore-ai/hyper-parallel issue #693; case 52 of the published ones).
#include "test/import/data.h"
#include "test/support/tiny.h"

namespace hyperoffload {
namespace {

const std::string kTrace = R"({
  "ops": [
    {"name": "matmul", "duration_ms": 1.25, "accesses": [
      {"op_id": 0, "storage_id": 7, "kind": "READ"}, {"op_id": 0, "storage_id": 8, "kind": "WRITE"}]},
    {"name": "matmul", "duration_ms": 0.000000001, "accesses": [[1, 8, "AccessKind.READ"], [1, 9, 2]]},
    {"name": "loss", "duration_ms": 2, "accesses": [{"op_id": 2, "storage_id": 9, "kind": "READ"}]}],
  "storage_sizes": {"7": 100, "8": 200, "9": 300},
  "retained_sids": [9],
  "memory_limit_bytes": 450,
  "d2h_bandwidth_gbps": 16.0,
  "h2d_bandwidth_gbps": 16.0})";

ImportResult import_text(const std::string& text) {
  const TemporaryFiles files;
  return import_trace("activation-trace", {files.add("trace.json", text)}, {});
}

}  // namespace

TEST_CASE("an ActivationTrace keeps its ops, storages and accesses") {
  const auto result = import_text(kTrace);
  const Graph& g = result.graph;
  REQUIRE(g.ops().size() == 3);
  CHECK(g.ops()[1].name == "matmul#2");
  CHECK(g.ops()[0].duration->value == 1.25e-3);
  CHECK(g.ops()[1].duration->value == 1e-12);  // 1e-9 ms
  REQUIRE(g.tensors().size() == 3);
  CHECK(g.tensors()[0].name == "storage7");
  CHECK(g.tensors()[0].kind == TensorKind::kInput);  // read before any write
  CHECK(g.tensors()[1].bytes == Bytes(200));
  CHECK(g.tensors()[1].kind == TensorKind::kActivation);
  CHECK_FALSE(g.tensors()[1].persistent);
  CHECK(g.tensors()[2].persistent);  // retained: it outlives the trace
  CHECK(g.ops()[1].reads == std::vector<TensorId>{TensorId(1)});
  CHECK(g.ops()[1].writes == std::vector<TensorId>{TensorId(2)});
}

TEST_CASE("limit and bandwidths of an ActivationTrace are said, and kept in meta with the right unit") {
  const auto result = import_text(kTrace);
  CHECK(has_remark(result, "memory_limit_bytes 450"));
  CHECK(has_remark(result, "d2h_bandwidth_gbps 16.0 (GiB/s despite the name)"));
  CHECK(contains(result.graph.meta_json(), "\"memory_limit_bytes\": 450"));
}

TEST_CASE("an ActivationTrace without sizes or times says so") {
  const auto result = import_text(
      R"({"ops": [{"name": "a", "accesses": [[0, 1, "WRITE"]]}, {"name": "b", "duration_ms": 1}]})");
  CHECK(has_remark(result, "1 storage without an entry in storage_sizes"));
  CHECK(has_remark(result, "1 op with zero time"));
}

TEST_CASE("a wrong ActivationTrace is refused with the path inside the file") {
  CHECK(contains(input_error([] { import_text("{\"ops\": []}"); }),
                 "trace.json: found no ops, expected at least one"));
  CHECK(
      contains(input_error([] { import_text(R"({"ops": [{"name": "a", "accesses": [[0, 1, "TOUCH"]]}]})"); }),
               "ops[0].accesses[0][2]: found \"TOUCH\", expected \"READ\" or \"WRITE\""));
  CHECK(
      contains(input_error([] { import_text(R"({"ops": [{"name": "a", "accesses": [[4, 1, "READ"]]}]})"); }),
               "ops[0].accesses[0][0]: found 4, expected 0"));
  CHECK(contains(input_error([] { import_text(R"({"ops": [{"name": "a", "duration_ms": -1}]})"); }),
                 "ops[0].duration_ms"));
  CHECK(contains(input_error([] { import_text("{\"ops\": [{\"name\": \"a\", \"duration_ms\": 0}]}"); }),
                 "found 1 op without any time or bytes"));
}

}  // namespace hyperoffload
