#include "sim/report/throughput.h"

#include "test/report/toy_run.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;

Throughput of_meta(const std::string& meta, Seconds iteration = Seconds(0.5)) {
  return throughput_of(toy_graph({0}, {"compute"}, meta), toy_hardware(), iteration);
}

}  // namespace

TEST_CASE("Prefill is measured in time to first token and tokens per second") {
  const Throughput t = of_meta(R"({"phase": "prefill", "batch": 2, "sequence": 100})");
  CHECK(t.time_to_first_token == Seconds(0.5));
  CHECK(*t.tokens_per_s == 2 * 100 / 0.5);
  CHECK(*t.samples_per_s == 2 / 0.5);
  CHECK_FALSE(t.time_per_output_token.has_value());
}

TEST_CASE("Decode makes one token a sequence of the batch in an iteration") {
  const Throughput t = of_meta(R"({"phase": "decode", "batch": 8, "sequence": 32768})");
  CHECK(t.time_per_output_token == Seconds(0.5));
  CHECK(*t.tokens_per_s == 8 / 0.5);
  CHECK_FALSE(t.samples_per_s.has_value());
  CHECK_FALSE(t.time_to_first_token.has_value());
}

TEST_CASE("Several decode steps in one iteration share its time, prompts beside them or not") {
  for (const std::string phase : {"decode", "mixed"}) {
    const Throughput t = of_meta(R"({"phase": ")" + phase + R"(", "batch": 8, "steps": 5, "samples": 10})");
    CHECK(t.time_per_output_token == Seconds(0.5 / 5));
    CHECK_FALSE(t.samples_per_s.has_value());
    CHECK_FALSE(t.time_to_first_token.has_value());
  }
  CHECK(*of_meta(R"({"phase": "decode", "batch": 8, "steps": 5})").tokens_per_s == 8 * 5 / 0.5);
}

TEST_CASE("What the trace says outright goes before what could be worked out") {
  const Throughput t =
      of_meta(R"({"phase": "train", "batch": 2, "sequence": 100, "tokens": 50, "samples": 4})");
  CHECK(*t.tokens_per_s == 50 / 0.5);
  CHECK(*t.samples_per_s == 4 / 0.5);
}

TEST_CASE("Metadata of odd types is left out, never an error") {
  for (const char* meta : {"{}", "[]", "3", "null", R"({"phase": 7, "batch": "two", "tokens": {}})",
                           R"({"phase": "prefill", "batch": -1, "sequence": null})",
                           R"({"phase": ["decode"], "batch": true})"}) {
    const Throughput t = of_meta(meta);
    CHECK_FALSE(t.tokens_per_s.has_value());
    CHECK_FALSE(t.samples_per_s.has_value());
  }
  CHECK_FALSE(of_meta(R"({"phase": "decode", "batch": 8})", Seconds(0)).tokens_per_s.has_value());
}

TEST_CASE("Model FLOPs utilisation is the NPU's FLOPs over time and declared compute") {
  GraphSpec spec;
  for (int i = 0; i < 3; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.flops = Flops(1e11);
    op.engine = EngineId(0);
    spec.ops.push_back(op);
  }
  spec.ops[2].memory = Tier::kPool;  // runs on the host
  const Graph graph = build_graph(std::move(spec));
  const Hardware hw = toy_hardware();  // 1e12 FLOP/s
  CHECK(*throughput_of(graph, hw, Seconds(0.5)).model_flops_utilisation == Approx(2 * 1e11 / (0.5 * 1e12)));
  CHECK_FALSE(of_meta("{}").model_flops_utilisation.has_value());
}

}  // namespace hyperoffload
