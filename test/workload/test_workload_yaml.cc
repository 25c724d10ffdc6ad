// The workload file: read, resolved, refused.
#include "sim/model/yaml_reader.h"
#include "test/workload/support.h"

namespace hyperoffload {
namespace {

const std::string kSmallest = "model: m.json\nphase: decode\nbatch: 8\nsequence: 32768\ndtype: bf16\n";

WorkloadSpec parse(const std::string& text) { return read_workload(parse_yaml(text, "w.yaml")); }

}  // namespace

TEST_CASE("the shipped workloads generate a trace") {
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(SOURCE_DIR) + "/configs/workloads")) {
    const WorkloadSpec spec = load_workload(file.path().string());
    const Graph g = generate_trace(spec);
    CHECK(g.ops().size() > 100);
  }
}

TEST_CASE("a workload file says model, phase, sizes and types") {
  const WorkloadSpec spec = parse(kSmallest + "kv_dtype: fp8\nparallel: {tp: 2, rank: 1}\n");
  CHECK(spec.phase == Phase::kDecode);
  CHECK(spec.batch == 8);
  CHECK(spec.sequence == 32768);
  CHECK(spec.weights() == DataType::kBf16);
  CHECK(spec.kv() == DataType::kFp8);
  CHECK(spec.parallel.tp == 2);
  CHECK(spec.parallel.rank == 1);
}

TEST_CASE("unknown keys, phases and types are refused with their line") {
  CHECK(contains(input_error([] { parse(kSmallest + "batches: 1\n"); }), "w.yaml:6"));
  CHECK(contains(
      input_error([] { parse("model: m.json\nphase: decoding\nbatch: 1\nsequence: 1\ndtype: bf16\n"); }),
      "w.yaml:2: phase"));
  CHECK(contains(input_error([] { parse(kSmallest + "kv_dtype: fp7\n"); }), "kv_dtype"));
  CHECK(contains(input_error([] { parse("model: m.json\n"); }), "phase"));
}

}  // namespace hyperoffload
