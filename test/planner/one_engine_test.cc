// A trace whose engines never overlap: planned and bounded as if it had one.
#include "planner/analysis/one_engine.h"

#include "planner/planner.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "test/planner/families.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"
#include "test/support/random_graph.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

// Ops on engines at random, each behind the one before it, whatever its data say.
Graph chained(Graph graph, Rng& rng) {
  GraphSpec spec{graph.name(), graph.meta_json(), graph.tensors(), graph.ops(), {"compute", "comm", "host"}, ""};
  for (std::size_t i = 0; i < spec.ops.size(); ++i) {
    spec.ops[i].engine = EngineId(rng.pick(0, 2));
    if (i > 0) spec.ops[i].after.push_back(OpId(i - 1));
  }
  return build_graph(std::move(spec));
}

}  // namespace

TEST_CASE("one engine: only where every op waits for the one before it") {
  Toy t;
  const TensorId x = t.activation("x", 1), y = t.activation("y", 1);
  t.op(1, {}, {x});
  t.op(1, {x}, {y}, "comm");
  t.op(1, {y});
  CHECK(on_one_engine(t.build())->engines().size() == 1);
  t.op(1, {x}, {}, "comm");  // may run beside op2
  CHECK_FALSE(on_one_engine(t.build()));
  t.last().after = {OpId(2)};
  CHECK(on_one_engine(t.build()));
  CHECK_FALSE(on_one_engine(two_in_turns(4).build()));  // has one already
}

TEST_CASE("one engine: plans of a chain over several engines are valid there, as fast as predicted, and bounded alike") {
  int planned = 0, stalled = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.shape = kAllShapes[seed % 5];
    options.size = 14;
    const Graph graph = chained(random_graph(options, rng), rng);
    Hardware h = random_hardware(graph, false, rng);
    const auto chain = on_one_engine(graph);
    if (!chain) continue;  // all drew the same engine
    const FlatGraph flat(graph, h);
    std::int64_t working = 0;
    for (int op = 0; op < flat.ops; ++op) working = std::max(working, flat.working_set(op));
    const std::int64_t all = walk_plan(flat, Plan{}, {1, WalkRecord::kNothing, true}).hbm_peak;
    h.hbm_capacity = Bytes(working + (all - working) * rng.pick(3, 7) / 10);
    PlannerOptions each;
    each.iterations = rng.chance(0.5) ? 1 : 4;
    Plan plan;
    try {
      plan = make_plan(graph, h, each).plan;
    } catch (const InfeasibleError&) {
      continue;
    }
    ++planned;
    REQUIRE(check_plan(graph, plan, {h.hbm_usable(), h.pool_capacity}, each.iterations).empty());
    const Walk walk = walk_plan(FlatGraph(graph, h), plan, {each.iterations, WalkRecord::kNothing, false});
    REQUIRE_FALSE(walk.stuck);
    REQUIRE(walk.last_iteration == Approx(plan.prediction->iteration.value).epsilon(1e-9).margin(2e-12));
    for (BoundMethod method : {BoundMethod::kWindow, BoundMethod::kLp}) {
      const Bound bound = prove_bound(graph, h, each.iterations, method);
      REQUIRE(bound.stall.value <= walk.last_iteration - plan.prediction->ideal.value + 1e-9 * walk.last_iteration);
      REQUIRE(bound.stall.value == prove_bound(*chain, h, each.iterations, method).stall.value);
    }
    stalled += plan.prediction->iteration.value > plan.prediction->ideal.value * (1 + 1e-6);
  }
  CHECK(planned > 100);
  CHECK(stalled > 20);
}
