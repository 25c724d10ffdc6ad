// `layer_ahead` against the closed forms of weight streaming (vllm-project/vllm-ascend pull 11945).
#include "sim/policy/layer_ahead.h"

#include "app/evaluate.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "test/policy/plan_text.h"
#include "test/support/catch.h"
#include "test/support/simulate.h"
#include "test/support/toy.h"

using namespace hyperoffload;

namespace {

// `layers` layers of 10 us each; a copy of their weights takes `copy` us (1 B/us).
struct Stream : Toy {
  static constexpr double kCompute = 10;
  explicit Stream(double copy, int layers = 8) {
    for (int i = 0; i < layers; ++i) weight(static_cast<std::int64_t>(copy));
    for (int i = 0; i < layers; ++i) at(op(kCompute, {TensorId(static_cast<std::size_t>(i))}, {})).layer = i;
  }
};

// Time of a pass in steady state, in us, and the stall of each layer in it.
struct Pass {
  double us;
  std::vector<double> stall;
};

Pass steady_pass(double copy, const LayerAheadOptions& options) {
  Stream toy(copy);
  const Graph graph = toy.graph();
  const int passes = 6;
  const StaticPlan made = layer_ahead(graph, toy.hardware, passes, options);
  REQUIRE(check_plan(graph, made.plan, {toy.hardware.hbm_capacity, toy.hardware.pool_capacity}, passes).empty());
  const RunRecord record = simulate_plan(graph, made.plan, toy.hardware, passes);
  const NpuRecord& npu = record.npus[0];
  Pass pass{(npu.iteration_end.back() - npu.iteration_start.back()).value / Toy::kMicro, {}};
  for (const OpRecord& op : npu.ops)
    if (op.iteration == passes - 1) pass.stall.push_back((op.start - op.ready).value / Toy::kMicro);
  return pass;
}

}  // namespace

TEST_CASE("layer_ahead: 8 layers, groups of 4, 2 offloaded: layers 2, 3, 6 and 7") {
  CHECK(offloaded_layers(8, 4, 2) == std::vector<int>{2, 3, 6, 7});
  Stream toy(20);
  const Graph graph = toy.graph();
  CHECK(plan_text(graph, layer_ahead(graph, toy.hardware, 1, {4, 2, 1}).plan) ==
        "pool: t2 t3 t6 t7; prefetch t2 at the start for op2; "
        "detach t2 after op2; prefetch t3 after op2 for op3; detach t3 after op3; prefetch t6 after op3 for op6; "
        "detach t6 after op6; prefetch t7 after op6 for op7; detach t7 after op7; prefetch t2 after op7 for op2");
}

TEST_CASE("layer_ahead: one step ahead, layers 3 and 7 always stall") {
  // Layer 3's copy starts when layer 2 has run, just before layer 3: T in full. Layer 6's has layers 4 and 5 to hide
  // behind, 2C; so has layer 2's. A pass stalls 2T + 2max(0, T - 2C).
  const double c = Stream::kCompute;
  for (double t : {5.0, 20.0, 30.0}) {
    INFO("T = " << t);
    const Pass pass = steady_pass(t, {4, 2, 1});
    const double early = std::max(0.0, t - 2 * c);
    CHECK(pass.us == Approx(8 * c + 2 * t + 2 * early).epsilon(1e-9));
    const double expected[] = {0, 0, early, t, 0, 0, early, t};
    for (std::size_t i = 0; i < 8; ++i) CHECK(pass.stall[i] == Approx(expected[i]).margin(1e-6));
  }
}

TEST_CASE("layer_ahead: with as many steps as are offloaded, a pass takes max(8C, 4T), and more buy nothing") {
  const double c = Stream::kCompute;
  for (double t : {5.0, 20.0, 30.0}) {
    INFO("T = " << t);
    const Pass two = steady_pass(t, {4, 2, 2});
    CHECK(two.us == Approx(std::max(8 * c, 4 * t)).epsilon(1e-9));
    CHECK(steady_pass(t, {4, 2, 4}).us == Approx(two.us).epsilon(1e-9));
    CHECK(steady_pass(t, {4, 2, 0}).us == Approx(two.us).epsilon(1e-9));  // auto
  }
  // The figures of the case: T = 2C: 12C against 8C; T = 3C: 16C against 12C.
  CHECK(steady_pass(20, {4, 2, 1}).us == Approx(120));
  CHECK(steady_pass(20, {4, 2, 2}).us == Approx(80));
  CHECK(steady_pass(30, {4, 2, 1}).us == Approx(160));
  CHECK(steady_pass(30, {4, 2, 2}).us == Approx(120));
}

TEST_CASE("layer_ahead: HBM holds the layers that stay and those in flight") {
  // 4 of 8 layers stay; copies of 5 us, half an op's time, are soon there: `step` of them at a time.
  for (int step : {1, 2, 4}) {
    Stream toy(5);
    const Graph graph = toy.graph();
    const RunRecord record =
        simulate_plan(graph, layer_ahead(graph, toy.hardware, 4, {4, 2, step}).plan, toy.hardware, 4);
    INFO("step " << step);
    CHECK(record.npus[0].hbm_peak.value == 5 * (4 + step));
  }
}

TEST_CASE("layer_ahead: `auto` offloads the fewest that fit, none when all fits") {
  Stream toy(20);
  const Graph graph = toy.graph();
  const auto moved = [&](std::int64_t hbm) {
    toy.hardware.hbm_capacity = Bytes(hbm);
    return layer_ahead(graph, toy.hardware, 3, {4, 0, 1}).plan.initial_pool.size();
  };
  CHECK(moved(160) == 0);
  CHECK(moved(159) == 2);  // 6 stay, 1 slot: 140 B
  CHECK(moved(140) == 2);
  CHECK(moved(139) == 4);  // 4 stay, 1 slot: 100 B
  CHECK(moved(20) == 8);   // all stream through one slot
  CHECK_THROWS_AS(moved(19), InfeasibleError);
}

TEST_CASE("layer_ahead: too little HBM for what it is told to do is said, not a hang") {
  Stream toy(20);
  toy.hardware.hbm_capacity = Bytes(99);  // 4 stay, one slot: 100 B
  const Graph graph = toy.graph();
  const Evaluation told = evaluate({graph, toy.hardware, 3}, parse_policy("layer_ahead:group=4,offload=2,step=1", ""));
  CHECK_FALSE(told.result.fits);
  CHECK(told.result.reason.find("1 B short") != std::string::npos);
  Toy plain;
  plain.op(1, {plain.weight(1)}, {});
  const Graph no_layers = plain.graph();
  CHECK_THROWS_WITH(layer_ahead(no_layers, plain.hardware, 1, {}),
                    "layer_ahead finds no layer's weights: no op that reads a weight says its `layer`");
}

TEST_CASE("layer_ahead: a group can't offload more layers than it has") {
  Stream toy(20);
  const Graph graph = toy.graph();
  CHECK_THROWS_AS(layer_ahead(graph, toy.hardware, 1, {4, 5, 1}), InputError);
  CHECK_NOTHROW(layer_ahead(graph, toy.hardware, 1, {4, 4, 1}));
}

TEST_CASE("layer_ahead: forward and backward are two runs of a layer, and its optimizer brings the new weights back") {
  // Runs of the offloaded layers 1 and 3: op1 op3 op4 (backward of 3: the same run as op3, its neighbour) op6,
  // then the optimizer writes t1 and t3 without reading them: no load, a store.
  Toy toy;
  std::vector<TensorId> w;
  for (int i = 0; i < 4; ++i) w.push_back(toy.weight(10));
  for (int i = 0; i < 4; ++i) toy.at(toy.op(1, {w[static_cast<std::size_t>(i)]}, {})).layer = i;
  for (int i = 3; i >= 0; --i) toy.at(toy.op(1, {w[static_cast<std::size_t>(i)]}, {})).layer = i;
  for (int i = 0; i < 4; ++i) toy.op(1, {}, {w[static_cast<std::size_t>(i)]});
  const Graph graph = toy.graph();
  CHECK(plan_text(graph, layer_ahead(graph, toy.hardware, 1, {2, 1, 1}).plan) ==
        "pool: t1 t3; prefetch t1 at the start for op1; "
        "detach t1 after op1; prefetch t3 after op1 for op3; detach t3 after op4; prefetch t1 after op4 for op6; "
        "store t1 after op9; detach t1 after op9; store t3 after op11; detach t3 after op11; prefetch t1 after op11 for op1");
}
