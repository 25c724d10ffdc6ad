#include <algorithm>

#include "sim/model/plan.h"
#include "test/model/message.h"
#include "test/support/catch.h"
#include "test/support/random_trace.h"

namespace hyperoffload {
namespace {

// op0 reads w0, writes x; op1 reads x; op2 writes x (pure); op3 alone on another engine after op1.
Graph tiny() {
  return parse_graph(
      R"({"format": "hyperoffload-trace", "version": 1, "name": "tiny",
 "tensors": [{"name": "w0", "bytes": 1000, "kind": "weight"}, {"name": "x", "bytes": 5, "kind": "activation"},
             {"name": "zero", "bytes": 0, "kind": "weight"}],
 "ops": [{"name": "op0", "duration_us": 1, "reads": ["w0"], "writes": ["x"]}, {"name": "op1", "duration_us": 1, "reads": ["x"]},
         {"name": "op2", "duration_us": 1, "writes": ["x"]},
         {"name": "op3", "duration_us": 1, "after": ["op1"], "known_after": "op0", "engine": "comm"}]})",
      "trace.json");
}

const std::string kPlan =
    R"({"format": "hyperoffload-plan", "version": 1,
 "actions": [{"kind": "detach", "tensor": "w0", "after_op": "op0"},
             {"kind": "prefetch", "tensor": "w0", "after_op": null, "before_op": "op0", "range_bytes": [10, 20], "iteration": "later"}],
 "initial_pool": ["zero", "w0"],
 "order": ["op0", "op1", "op2", "op3"],
 "prediction": {"iteration_s": 1e-3, "first_iteration_s": 0.002, "total_s": 0.25, "ideal_s": 0, "hbm_peak_bytes": 9223372036854775807, "pool_peak_bytes": 1000},
 "bound": {"hbm_peak_bytes": 1005, "stall_s": 0.5, "method": "lp"}})";

Plan parse(const std::string& text) {
  const Graph graph = tiny();
  return parse_plan(text, "plan.json", graph);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("A plan is read as written, with the format's defaults") {
  const Plan plan = parse(kPlan);
  REQUIRE(plan.actions.size() == 2);
  const Action& detach = plan.actions[0];
  CHECK(detach.kind == ActionKind::kDetach);
  CHECK(detach.after_op == OpId(0));
  CHECK(detach.before_op.is_none());
  CHECK(detach.from.value == 0);
  CHECK(detach.to.value == 1000);
  CHECK(detach.scope == IterationScope::kEvery);
  const Action& prefetch = plan.actions[1];
  CHECK(prefetch.after_op.is_none());
  CHECK(prefetch.before_op == OpId(0));
  CHECK(prefetch.bytes().value == 20 - 10);
  CHECK(prefetch.scope == IterationScope::kLater);
  CHECK(plan.initial_pool == std::vector<TensorId>{TensorId(0), TensorId(2)});
  CHECK(plan.order.size() == 4);
  CHECK(plan.prediction->iteration.value == 1e-3);
  CHECK(plan.prediction->hbm_peak == Bytes::max());
  CHECK(plan.bound->stall.value == 0.5);
  CHECK(plan.bound->order == "program");
  const Plan least = parse(
      R"({"format": "hyperoffload-plan", "version": 1, "actions": [{"kind": "store", "tensor": "x"}]})");
  CHECK(least.actions[0].after_op.is_none());
  CHECK(least.order.empty());
  CHECK_FALSE(least.prediction);
}

TEST_CASE("A wrong plan is refused with the path inside the file") {
  struct Row {
    const char* from;
    const char* to;
    const char* message;
  };
  const Row rows[] = {
      {"hyperoffload-plan", "hyperoffload-trace",
       "plan.json: format: found \"hyperoffload-trace\", expected \"hyperoffload-plan\""},
      {"\"version\": 1", "\"version\": 1.5", "plan.json: version: found 1.5"},
      {"\"initial_pool\"", "\"initial_pol\"",
       "plan.json: found the unknown key \"initial_pol\", expected \"initial_pool\""},
      {"\"detach\"", "\"evict\"",
       "plan.json: actions[0].kind: found \"evict\", expected one of prefetch, store, detach"},
      {"\"kind\": \"detach\", ", "", "plan.json: actions[0]: found no key \"kind\""},
      {"\"tensor\": \"w0\", \"after_op\": \"op0\"", "\"after_op\": \"op0\"",
       "plan.json: actions[0]: found no key \"tensor\""},
      {"\"tensor\": \"w0\"", "\"tensor\": \"w1\"",
       "actions[0].tensor: found \"w1\", which is no tensor of the trace, expected \"w0\" or another tensor"},
      {"\"after_op\": \"op0\"", "\"after_op\": \"op9\"",
       "actions[0].after_op: found \"op9\", which is no op of the trace, expected \"op0\""},
      {"\"after_op\": \"op0\"", "\"after_op\": 0", "actions[0].after_op: found 0, expected a string"},
      {"\"after_op\": \"op0\"", "\"after\": \"op0\"", "actions[0]: found the unknown key \"after\""},
      {"[10, 20]", "[10]", "actions[1].range_bytes: found 1 numbers, expected [from, to)"},
      {"[10, 20]", "[20, 20]",
       "actions[1].range_bytes: found [20, 20), expected 0 <= from < to <= 1000, the size of \"w0\""},
      {"[10, 20]", "[0, 1001]", "actions[1].range_bytes: found [0, 1001)"},
      {"[10, 20]", "[-1, 20]", "actions[1].range_bytes[0]: found -1"},
      {"[10, 20]", "[0.5, 20]", "actions[1].range_bytes[0]: found 0.5"},
      {"\"later\"", "\"every\"", "actions[1].iteration: found \"every\", expected one of first, later"},
      {"\"zero\", \"w0\"", "\"x\"", "plan.json: initial_pool[0]: found \"x\", which is not persistent"},
      {"\"zero\", \"w0\"", "\"w\"",
       "plan.json: initial_pool[0]: found \"w\", which is no tensor of the trace, expected \"w0\""},
      {"[\"zero\", \"w0\"]", "{}", "plan.json: initial_pool: found an object, expected an array"},
      {"\"op2\", \"op3\"]", "\"op2\"]", "plan.json: found that order names op \"op3\" 0 times, not once, expected each op once"},
      {"\"op2\", \"op3\"]", "\"op2\", \"op2\"]",
       "plan.json: found that order names op \"op2\" 2 times"},
      {"[\"op0\", \"op1\", \"op2\", \"op3\"]", "[]", "plan.json: order: found no ops, expected each op once"},
      {"\"op0\", \"op1\", \"op2\"", "\"op1\", \"op0\", \"op2\"",
       "order puts op \"op1\" before op \"op0\", but it reads \"x\", which that op writes"},
      {"\"op1\", \"op2\", \"op3\"", "\"op2\", \"op1\", \"op3\"",
       "order puts op \"op2\" before op \"op1\", but it writes \"x\", which that op reads"},
      {"\"op1\", \"op2\", \"op3\"", "\"op3\", \"op1\", \"op2\"",
       "order puts op \"op3\" before op \"op1\", but it runs after that op"},
      {"\"ideal_s\": 0, ", "", "plan.json: prediction: found no key \"ideal_s\""},
      {"\"ideal_s\": 0", "\"ideal_s\": -1", "plan.json: prediction.ideal_s: found -1"},
      {"\"ideal_s\": 0", "\"ideal\": 0", "plan.json: prediction: found the unknown key \"ideal\""},
      {"9223372036854775807", "9223372036854775808",
       "plan.json: prediction.hbm_peak_bytes: found 9223372036854775808"},
      {"1005", "1.5", "plan.json: bound.hbm_peak_bytes: found 1.5"},
      {", \"method\": \"lp\"", "", "plan.json: bound: found no key \"method\""},
      {"\"method\": \"lp\"", "\"method\": 3", "plan.json: bound.method: found 3"},
  };
  for (const Row& row : rows) {
    INFO(row.to);
    const std::string text = replaced(kPlan, row.from, row.to);
    const std::string message = input_error([&] { parse(text); });
    INFO(message);
    CHECK(contains(message, row.message));
  }
  CHECK(contains(input_error([] { parse(R"({"format": "hyperoffload-plan", "version": 1})"); }),
                 "plan.json: found no \"actions\""));
  const std::string zero =
      R"({"format": "hyperoffload-plan", "version": 1, "actions": [{"kind": "store", "tensor": "zero", "range_bytes": [0, 0]}]})";
  CHECK(contains(input_error([&] { parse(zero); }), "range_bytes: found [0, 0)"));
}

TEST_CASE("An order that keeps every dependency is accepted") {
  const Plan plan = parse(replaced(kPlan, "\"op2\", \"op3\"]", "\"op3\", \"op2\"]"));
  CHECK(plan.order == std::vector<OpId>{OpId(0), OpId(1), OpId(3), OpId(2)});
}

TEST_CASE("Writing and reading a plan gives the same plan, and the same bytes again") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    const Graph graph = build_graph(random_spec(random));
    const Plan plan = random_plan(random, graph);
    const std::string text = plan_to_json(plan, graph);
    const Plan again = parse_plan(text, "plan.json", graph);
    REQUIRE(again.actions.size() == plan.actions.size());
    for (std::size_t i = 0; i < plan.actions.size(); ++i) {
      const Action &a = plan.actions[i], &b = again.actions[i];
      CHECK((a.kind == b.kind && a.tensor == b.tensor && a.after_op == b.after_op &&
             a.before_op == b.before_op));
      CHECK((a.from == b.from && a.to == b.to && a.scope == b.scope));
    }
    CHECK(again.initial_pool == plan.initial_pool);
    CHECK(again.order == plan.order);
    REQUIRE(again.prediction.has_value() == plan.prediction.has_value());
    if (plan.prediction) {
      CHECK(again.prediction->iteration == plan.prediction->iteration);
      CHECK(again.prediction->first_iteration == plan.prediction->first_iteration);
      CHECK(again.prediction->total == plan.prediction->total);
      CHECK(again.prediction->ideal == plan.prediction->ideal);
      CHECK(again.prediction->hbm_peak == plan.prediction->hbm_peak);
      CHECK(again.prediction->pool_peak == plan.prediction->pool_peak);
    }
    REQUIRE(again.bound.has_value() == plan.bound.has_value());
    if (plan.bound) {
      CHECK(again.bound->hbm_peak == plan.bound->hbm_peak);
      CHECK(again.bound->stall == plan.bound->stall);
      CHECK(again.bound->method == plan.bound->method);
      CHECK(again.bound->order == plan.bound->order);
      CHECK(again.bound->steady_stall == plan.bound->steady_stall);
    }
    REQUIRE(plan_to_json(again, graph) == text);
  }
}

}  // namespace
}  // namespace hyperoffload
