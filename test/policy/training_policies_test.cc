// `activation_offload`, `zero_offload` and `recompute` on a training step of three layers, by hand.
#include "app/evaluate.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "sim/policy/activation_offload.h"
#include "sim/policy/recompute.h"
#include "sim/policy/zero_offload.h"
#include "test/policy/plan_text.h"
#include "test/support/catch.h"
#include "test/support/toy.h"

using namespace hyperoffload;

namespace {

// Three layers of 10 us an op: forward (ops 0, 1, 2), backward (ops 3, 4, 5: layers 2, 1, 0), optimizer (ops 6, 7, 8).
// Layer i: weight of 100 B, states of 200 B; it reads the output of the one before (50 B), keeps 2000 B for its backward
// op, which makes a gradient of 100 B. 1 B/us in, 0.5 B/us out.
struct Training : Toy {
  std::vector<TensorId> w, m, y, kept, dw;
  static constexpr int kLayers = 3;
  Training() {
    for (int i = 0; i < kLayers; ++i) {
      w.push_back(named("w", i, TensorKind::kWeight, 100));
      m.push_back(named("m", i, TensorKind::kOptimizer, 200));
      y.push_back(named("y", i, TensorKind::kActivation, 50));
      kept.push_back(named("kept", i, TensorKind::kActivation, 2000));
      dw.push_back(named("dw", i, TensorKind::kGradient, 100));
    }
    const auto at_layer = [&](int i, const char* phase, std::vector<TensorId> reads, std::vector<TensorId> writes) {
      Op& o = at(op(10, std::move(reads), std::move(writes)));
      o.layer = i;
      o.phase = phase;
    };
    for (std::size_t i = 0; i < kLayers; ++i) {
      std::vector<TensorId> reads{w[i]};
      if (i > 0) reads.push_back(y[i - 1]);
      at_layer(static_cast<int>(i), "forward", reads, {y[i], kept[i]});
    }
    for (std::size_t i = kLayers; i-- > 0;)
      at_layer(static_cast<int>(i), "backward", i == 2 ? std::vector{w[i], kept[i], y[2]} : std::vector{w[i], kept[i]},
               {dw[i]});
    for (std::size_t i = 0; i < kLayers; ++i) {
      Op& o = at(op(10, {dw[i], m[i]}, {w[i], m[i]}));
      o.phase = "optimizer";
      o.hbm_bytes = Bytes(400);
    }
    hardware.pool_capacity = Bytes(1'000'000);
  }

 private:
  TensorId named(const std::string& name, int i, TensorKind kind, std::int64_t bytes) {
    const TensorId t = tensor(kind, bytes);
    spec.tensors.back().name = name + std::to_string(i);
    return t;
  }
};

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  return names;
}

bool keeps_the_rules(const Graph& graph, const Plan& plan, const Hardware& hardware, int iterations) {
  return check_plan(graph, plan, {hardware.hbm_usable(), hardware.pool_capacity}, iterations).empty();
}

}  // namespace

TEST_CASE("activation_offload: the previous layer's activations return while this layer runs backward") {
  // Layer 0's is wanted by op 5; the backward run before is op 4's, layer 1's: it starts behind op 3. Layer 1's is wanted
  // by op 4 and comes back as op 3 starts: behind op 2. Layer 2's backward op is the first: its activation stays.
  Training toy;
  const Graph graph = toy.graph();
  const Plan all = activation_offload(graph, toy.hardware, 2, {3}).plan;
  CHECK(plan_text(graph, all) ==
        "store kept0 after op0; detach kept0 after op0; store kept1 after op1; detach kept1 after op1; "
        "prefetch kept1 after op2 for op4; prefetch kept0 after op3 for op5");
  CHECK(keeps_the_rules(graph, all, toy.hardware, 2));
  CHECK(plan_text(graph, activation_offload(graph, toy.hardware, 2, {1}).plan) ==
        "store kept0 after op0; detach kept0 after op0; prefetch kept0 after op3 for op5");
  CHECK_THROWS_WITH(activation_offload(graph, toy.hardware, 2, {3, Bytes(2001)}),
                    "activation_offload finds nothing of 2001 B or more that a layer's forward pass leaves to its "
                    "backward pass: ops need `layer` and `phase`");
}

TEST_CASE("activation_offload: `auto` takes the fewest layers that fit") {
  // Weights and states: 900 B. Highest at op 3: kept 0, 1, 2, y2 and dw2: 7,050. Without kept0 5,050; but then op 4 finds
  // it on its way back, beside kept1, dw1 and dw2: 5,100. So it does without kept1 until op 3.
  Training toy;
  const Graph graph = toy.graph();
  const auto moves = [&](std::int64_t hbm) {
    toy.hardware.hbm_capacity = Bytes(hbm);
    return activation_offload(graph, toy.hardware, 2, {}).plan.actions.size();
  };
  CHECK(moves(7050) == 0);
  CHECK(moves(7049) == 3);
  CHECK(moves(5100) == 3);
  CHECK_THROWS_AS(moves(5099), InfeasibleError);
}

TEST_CASE("activation_offload and recompute say what a trace lacks") {
  Toy toy;
  toy.op(1, {toy.weight(1)}, {});
  const Graph graph = toy.graph();
  CHECK_THROWS_AS(activation_offload(graph, toy.hardware, 1, {}), InfeasibleError);
  CHECK_THROWS_AS(recompute(graph, toy.hardware, 1, {}), InfeasibleError);
  CHECK_THROWS_AS(zero_offload(graph, toy.hardware, 1), InfeasibleError);
}

TEST_CASE("zero_offload: states stay on the host, gradients go out as they come, weights return updated") {
  Training toy;
  toy.hardware.host = HostCompute{FlopsPerSecond(1e12), BytesPerSecond(4e6)};  // 400 B take 100 us
  const Graph graph = toy.graph();
  const StaticPlan made = zero_offload(graph, toy.hardware, 2);
  REQUIRE(made.graph);
  for (std::size_t i = 6; i < 9; ++i) {
    CHECK(made.graph->ops()[i].memory == Tier::kPool);
    CHECK(made.graph->engines()[made.graph->ops()[i].engine.index()] == "host");
  }
  CHECK(plan_text(*made.graph, made.plan) ==
        "pool: w0 m0 w1 m1 w2 m2; "
        "prefetch w0 at the start for op0 (first); prefetch w1 at the start for op1 (first); "
        "prefetch w2 at the start for op2 (first); "
        "store dw2 after op3; detach w2 after op3; detach dw2 after op3; "
        "store dw1 after op4; detach w1 after op4; detach dw1 after op4; "
        "store dw0 after op5; detach w0 after op5; detach dw0 after op5; "
        "prefetch w0 after op6 for op0; prefetch w1 after op7 for op1; prefetch w2 after op8 for op2");
  CHECK(keeps_the_rules(*made.graph, made.plan, toy.hardware, 2));
}

TEST_CASE("zero_offload: the step waits for the host, and the stall says so") {
  // Steady state, in us. Forward starts at 0, when the last optimizer op of the step before is done; then w2's copy in
  // starts (100 us), w0's and w1's were in before. Op 2 needs w2: 100..110. Backward: 110..140. Gradients out, 200 us
  // each, one after another: dw2 120..320, dw1 320..520, dw0 520..720. The optimizer goes by layer: op 6 waits for dw0:
  // 720..820, op 7 820..920, op 8 920..1020. Ideal: 90.
  Training toy;
  toy.hardware.host = HostCompute{FlopsPerSecond(1e12), BytesPerSecond(4e6)};
  const Graph graph = toy.graph();
  const Result result = evaluate({graph, toy.hardware, 3}, parse_policy("zero_offload", "")).result;
  REQUIRE(result.fits);
  CHECK(result.figures().iteration.value == Approx(1020e-6).epsilon(1e-9));
  CHECK(result.figures().ideal.value == Approx(90e-6).epsilon(1e-9));
  // 70 us of op 2 waiting for w2, 580 of op 6 for dw0; three ops of 100 us instead of 10.
  CHECK(result.figures().stalls.other.value == Approx(270e-6).epsilon(1e-9));
  CHECK(result.figures().stalls.sum().value == Approx(930e-6).epsilon(1e-9));
}

TEST_CASE("zero_offload says what it needs of the machine and of the ops") {
  Training toy;
  CHECK_THROWS_WITH(zero_offload(toy.graph(), toy.hardware, 1),
                    "zero_offload needs `host: {compute, bandwidth}` in machine \"toy\"");
  toy.hardware.host = HostCompute{FlopsPerSecond(1e12), BytesPerSecond(4e6)};
  toy.at(OpId(7)).hbm_bytes.reset();
  CHECK_THROWS_WITH(zero_offload(toy.graph(), toy.hardware, 1),
                    "zero_offload can't tell how long \"op7\" takes on the host: it has a duration, but neither flops "
                    "nor hbm_bytes");
}

TEST_CASE("recompute: a layer's forward op runs again right before its backward op") {
  // y0 and y1 are inputs of other layers: kept. y2 only goes to its backward op: dropped with kept2.
  Training toy;
  const Graph graph = toy.graph();
  const StaticPlan made = recompute(graph, toy.hardware, 1, {3});
  REQUIRE(made.graph);
  CHECK(made.plan.actions.empty());
  CHECK(op_names(*made.graph) == std::vector<std::string>{"op0", "op1", "op2", "op2#again", "op3", "op1#again", "op4",
                                                          "op0#again", "op5", "op6", "op7", "op8"});
  const auto names = [&](const std::vector<TensorId>& list) {
    std::string text;
    for (TensorId t : list) text += made.graph->tensor(t).name + " ";
    return text;
  };
  CHECK(names(made.graph->ops()[5].reads) == "y0 w1 ");
  CHECK(names(made.graph->ops()[5].writes) == "y1#again kept1#again ");
  CHECK(names(made.graph->ops()[6].reads) == "w1 kept1#again ");
  CHECK(names(made.graph->ops()[4].reads) == "w2 y2#again kept2#again ");
}

TEST_CASE("recompute: its time is the stall, against the trace as given") {
  Training toy;
  const Graph graph = toy.graph();
  const auto run = [&](const std::string& policy) {
    const Result result = evaluate({graph, toy.hardware, 1}, parse_policy(policy, "")).result;
    REQUIRE(result.fits);
    return result;
  };
  const Result two = run("recompute:layers=2");  // layers 0 and 1, 10 us each
  CHECK(two.figures().ideal.value == Approx(90e-6).epsilon(1e-9));
  CHECK(two.figures().stall.value == Approx(20e-6).epsilon(1e-9));
  CHECK(two.figures().stalls.other.value == Approx(20e-6).epsilon(1e-9));
  // 900 B of weights and states; highest at op 5: kept0#again and three gradients (op 3: kept2, y2, dw2 and y0, which
  // op 1 reads again: 3,100; op 4: kept1#again and two gradients: 3,100).
  CHECK(two.hbm_peak.value == 3200);
  // auto: all of it takes 7,050 B (see above); with layer 0 again 5,050 B at op 3: kept1, kept2, y2, dw2.
  toy.hardware.hbm_capacity = Bytes(7050);
  CHECK(run("recompute").figures().stall.value == 0);
  toy.hardware.hbm_capacity = Bytes(7049);
  CHECK(run("recompute").figures().stall.value == Approx(10e-6).epsilon(1e-9));
  CHECK(run("recompute").hbm_peak == Bytes(5050));
}

TEST_CASE("recompute leaves alone what can't be repeated") {
  // Layer 0's op also appends to a cache, layer 1's reads a state that op 2 changes.
  Training toy;
  const TensorId cache = toy.tensor(TensorKind::kKv, 10), state = toy.tensor(TensorKind::kOther, 10);
  toy.spec.tensors[state.index()].persistent = true;
  toy.at(OpId(0)).reads.push_back(cache);
  toy.at(OpId(0)).writes.push_back(cache);
  toy.at(OpId(1)).reads.push_back(state);
  toy.at(OpId(2)).reads.push_back(state);
  toy.at(OpId(2)).writes.push_back(state);
  // ... and op 2 itself writes the state: nothing is left to repeat.
  CHECK_THROWS_AS(recompute(toy.graph(), toy.hardware, 1, {3}), InfeasibleError);
  Training other;
  const TensorId kv = other.tensor(TensorKind::kKv, 10);
  other.at(OpId(0)).reads.push_back(kv);
  other.at(OpId(0)).writes.push_back(kv);
  const StaticPlan made = recompute(other.graph(), other.hardware, 1, {3});  // the first 3 that can: layers 1 and 2
  CHECK(op_names(*made.graph) == std::vector<std::string>{"op0", "op1", "op2", "op2#again", "op3", "op1#again", "op4",
                                                          "op5", "op6", "op7", "op8"});
}
