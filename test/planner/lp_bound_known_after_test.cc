// The tight bound where it is told late what an op reads (`known_after`).
#include "planner/bound/lp_bound.h"

#include "planner/cost/walk.h"
#include "planner/planner.h"
#include "test/planner/lp_limit.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"
#include "test/support/random_plan.h"
#include "test/support/rng.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

// The graph, whose ops are told late what they read, as late as the plan's loads allow: for each load of bytes that an op reads
// next, the telling op is over when the load may start, as it stands on the load's anchor's engine and no later.
Graph told_late(const Graph& graph, const Plan& plan, Rng& rng) {
  const int ops = static_cast<int>(graph.ops().size());
  std::vector<std::vector<int>> anchors(ops);  // by op: of the loads for what it reads; -1: too early for any
  std::vector<int> latest(graph.tensors().size(), -1);
  for (const Action& action : plan.actions) {
    int& anchor = latest[action.tensor.index()];
    if (!action.after_op.is_none()) anchor = std::max(anchor, action.after_op.value);
    if (action.kind != ActionKind::kPrefetch) continue;
    const auto accesses = graph.accesses(action.tensor);
    const auto next = std::find_if(accesses.begin(), accesses.end(), [&](const Access& a) { return a.op.value > anchor; });
    if (next == accesses.end())
      for (const Access& access : accesses) anchors[access.op.index()].push_back(-1);
    else
      anchors[next->op.index()].push_back(anchor);
    for (const Access& access : accesses)  // what is loaded for whom is less plain then
      if (graph.op(access.op).memory == Tier::kPool)
        for (const Access& other : accesses) anchors[other.op.index()].push_back(-1);
  }
  GraphSpec spec{graph.name(), graph.meta_json(), graph.tensors(), graph.ops(), graph.engines(), ""};
  for (int op = 1; op < ops; ++op) {
    spec.ops[op].known_after.reset();
    std::vector<int> tellers;
    for (int by = 0; by < op; ++by)
      if (std::all_of(anchors[op].begin(), anchors[op].end(), [&](int anchor) {
            return anchor >= by && graph.op(OpId(anchor)).engine == graph.op(OpId(by)).engine;
          }))
        tellers.push_back(by);
    if (!tellers.empty() && rng.chance(0.8)) spec.ops[op].known_after = OpId(rng.chance(0.7) ? tellers.back() : rng.one_of(tellers));
  }
  return build_graph(std::move(spec));
}

}  // namespace

TEST_CASE("lp bound: what only the router tells comes behind it") {
  // While op0 runs its 10 B fill HBM, so the expert's 10 B (4 B/s: 2.5 s) come behind it. op1 (the router, 2 s) and op2
  // (1.5 s) hide them if they may come at once; if the router tells, op2 alone. HBM for both: the expert stays.
  for (const bool late : {false, true})
    for (const int iterations : {1, 2}) {
      INFO(late << " " << iterations);
      Toy t;
      const TensorId first = t.weight("first", 10), expert = t.weight("expert", 10);
      t.op(1, {first});
      const OpId router = t.op(2, {});
      t.op(1.5, {});
      t.op(1, {expert});
      if (late) t.last().known_after = router;
      const Graph g = t.build();
      LpBoundOptions options;
      options.known_after = true;
      const Hardware h = machine(10, 4, 4);
      CHECK(lp(g, h, iterations, options).stall.value == Approx(late ? 10 / 4.0 - 1.5 : 0).margin(1e-9));
      CHECK(stall(g, h, iterations) == Approx(0).margin(1e-9));  // a policy may load what is not sure to be read
      CHECK(lp(g, machine(20, 4, 4), iterations, options).stall.value == Approx(0).margin(1e-9));
      CHECK(lp(g, h, iterations, options).hbm_peak == Bytes(late ? 14 : 10));  // 4 B of the expert stay if 6 B come in 1.5 s
      const Prediction p = *make_plan(g, h, {}).plan.prediction;
      CHECK(p.iteration.value - p.ideal.value == Approx(late ? 10 / 4.0 - 1.5 : 0).margin(1e-9));
      if (iterations == 1) continue;
      options.steady = true;  // round the circle `first` comes in 2.5 s, too, while the expert runs for 1 s, and HBM is full then
      CHECK(lp(g, h, iterations, options).stall.value == Approx(10 / 4.0 + (late ? 10 / 4.0 - 1.5 : 0)));
    }
}

TEST_CASE("lp bound: bytes that a later op is known to read may come before the router tells of an earlier one") {
  Toy t;
  const TensorId first = t.weight("first", 10), expert = t.weight("expert", 10);
  t.op(1, {first});
  const OpId router = t.op(3, {});
  t.op(1, {expert});
  t.last().known_after = router;
  LpBoundOptions options;
  options.known_after = true;
  CHECK(lp(t.build(), machine(10, 4, 4), 1, options).stall.value == Approx(10 / 4.0));
  t.op(1, {expert});
  CHECK(lp(t.build(), machine(10, 4, 4), 1, options).stall.value == Approx(0).margin(1e-9));
  t.last().writes = {expert};
  t.last().reads = {};
  CHECK(lp(t.build(), machine(10, 4, 4), 1, options).stall.value == Approx(10 / 4.0));
}

TEST_CASE("lp bound: random plans don't beat the limit for what is known late if they keep to that") {
  int higher = 0, higher_circle = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    RandomCase c = random_case(seed);
    INFO("seed " << seed);
    if (walk_plan(FlatGraph(c.graph, c.hardware), c.plan, {c.iterations, WalkRecord::kNothing, false}).stuck) continue;
    Rng rng(seed);
    c.graph = told_late(c.graph, c.plan, rng);
    const FlatGraph flat(c.graph, c.hardware);
    const Walk walk = walk_plan(flat, c.plan, {c.iterations, WalkRecord::kNothing, false});
    const double in_place = walk_plan(flat, Plan{}, {1, WalkRecord::kNothing, true}).last_iteration;
    const double least = walk.last_iteration - in_place;
    const double plain = lp_bound(flat, in_place, c.iterations).stall.value;
    for (int boundaries : {400, 7}) {
      LpBoundOptions options;
      options.known_after = true;
      options.boundaries = boundaries;
      const Bound bound = lp_bound(flat, in_place, c.iterations, options);
      REQUIRE(bound.stall.value <= least + 1e-9 * in_place);
      if (least <= 0 && c.graph.engines().size() == 1) REQUIRE(bound.hbm_peak <= c.hardware.hbm_usable());
      if (boundaries < 400) continue;
      REQUIRE(bound.stall.value >= plain - 2e-4 * (in_place + std::abs(plain)));
      higher += bound.stall.value > plain + 1e-3 * in_place;
    }
    if (c.iterations == 1 || c.graph.engines().size() > 1) continue;
    const int n = 200;  // as above: the mean of many closes into a circle but for what all transfers take
    const Walk some = walk_plan(flat, c.plan, {n, WalkRecord::kNothing, false});
    const Walk all = walk_plan(flat, c.plan, {2 * n, WalkRecord::kNothing, false});
    if (some.stuck || all.stuck) continue;
    double transfers = 0;
    for (int t = 0; t < flat.tensors; ++t)
      transfers += flat.machine.load_seconds(flat.bytes[t]) + flat.machine.store_seconds(flat.bytes[t]);
    LpBoundOptions options;
    options.known_after = options.steady = true;
    options.hbm = false;
    const double circle = lp_bound(flat, in_place, 2, options).stall.value;
    REQUIRE((all.total - some.total) / n >= (in_place + circle) * (1 - 1e-9) - transfers / n);
    options.known_after = false;
    higher_circle += circle > lp_bound(flat, in_place, 2, options).stall.value + 1e-3 * in_place;
  }
  CHECK(higher > 10);
  CHECK(higher_circle >= 5);
}
