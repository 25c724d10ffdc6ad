#include "planner/planner.h"

#include <algorithm>

#include "planner/analysis/liveness.h"
#include "planner/bound/lp_bound.h"
#include "planner/pipeline.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

PlanOutcome planned(const Graph& g, const Hardware& h, int iterations = 1) {
  PlanOutcome outcome = make_plan(g, h, {iterations, 1, false});
  const auto broken = check_plan(g, outcome.plan, {h.hbm_usable(), h.pool_capacity}, iterations);
  INFO((broken.empty() ? "" : broken.front().message));
  CHECK(broken.empty());
  CHECK(outcome.plan.prediction->hbm_peak <= h.hbm_usable());
  return outcome;
}

double stall(const PlanOutcome& outcome) {
  return outcome.plan.prediction->iteration.value - outcome.plan.prediction->ideal.value;
}

std::string infeasible(const Graph& g, const Hardware& h, int iterations = 1) {
  try {
    make_plan(g, h, {iterations, 1, false});
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

// A row of weights of 10 B, each read by one op of 10 s.
Graph weights(int count, double seconds = 10) {
  Toy t;
  for (int i = 0; i < count; ++i) t.op(seconds, {t.weight("w" + std::to_string(i), 10)});
  return t.build();
}

// x_i of 10 B, born by forward op i, read again by backward op i, last in first out.
Graph u_shape(int depth, double seconds) {
  Toy t;
  std::vector<TensorId> x;
  for (int i = 0; i < depth; ++i) {
    x.push_back(t.activation("x" + std::to_string(i), 10));
    t.op(seconds, {}, {x.back()});
  }
  for (int i = depth; i-- > 0;) t.op(seconds, {x[i]});
  return t.build();
}

}  // namespace

TEST_CASE("planner: where everything fits nothing moves") {
  const Graph g = weights(4);
  for (int iterations : {1, 5}) {
    const PlanOutcome outcome = planned(g, machine(40), iterations);
    CHECK(outcome.plan.actions.empty());
    CHECK(outcome.plan.initial_pool.empty());
    CHECK(stall(outcome) == 0);
  }
}

TEST_CASE("planner: one weight too many is loaded late, and leaves HBM to whom it belongs") {
  // Two weights of 10 B, HBM for one. w0 starts in HBM, has no pool copy, and must be stored before it
  // goes; w1 starts in the pool. Better the other way round? No: op0 would wait for w0. The store of w0
  // (2 s at 5 B/s) hides behind op0; w1 is loaded when w0 is gone: 10/5 = 2 s exposed, whatever is done.
  const Graph g = weights(2);
  const PlanOutcome outcome = planned(g, machine(10, 5, 5));
  CHECK(stall(outcome) == Approx(2));
  REQUIRE(outcome.plan.initial_pool.size() == 1);
  CHECK(outcome.plan.initial_pool[0] == TensorId(1));
  REQUIRE(outcome.plan.actions.size() == 3);
  CHECK(outcome.plan.actions[0].kind == ActionKind::kStore);
  CHECK(outcome.plan.actions[1].kind == ActionKind::kDetach);
  CHECK(outcome.plan.actions[2].kind == ActionKind::kPrefetch);
  CHECK(outcome.plan.actions[2].after_op == OpId(0));
  CHECK(outcome.plan.actions[2].before_op == OpId(1));
}

TEST_CASE("planner: a prefetch goes as late as still hides, with a margin") {
  // HBM for 3 of 4 weights: w3 comes while op1 or op2 runs; 10 B at 2 B/s take 5 of 10 s. The latest op
  // behind which that still hides is op1 (ends at 20; op3 starts at 30).
  const Graph g = weights(4);
  const PlanOutcome outcome = planned(g, machine(30, 2, 2));
  CHECK(stall(outcome) == 0);
  int prefetches = 0;
  for (const Action& action : outcome.plan.actions)
    if (action.kind == ActionKind::kPrefetch) {
      CHECK(action.tensor == TensorId(3));
      CHECK(action.after_op == OpId(1));
      ++prefetches;
    }
  CHECK(prefetches == 1);
}

TEST_CASE("planner: streamed weights stall nothing while the link keeps up, else exactly what it lacks") {
  // 8 weights of 10 B, HBM for 3, many iterations: at least 5 x 10 B pass per iteration of 8 x 10 s.
  const Graph g = weights(8);
  CHECK(stall(planned(g, machine(30, 1.0, 1.0), 4)) == Approx(0).margin(1e-9));
  // At 0.5 B/s those 50 B must arrive between the starts of op0 and op7, and op7 takes 10 s more.
  const PlanOutcome slow = planned(g, machine(30, 0.5, 0.5), 4);
  const double least = 50 / 0.5 + 10 - 80;
  CHECK(slow.plan.bound->stall.value == Approx(least));
  CHECK(stall(slow) >= least * (1 - 1e-9));
  // What is used and what comes need room together: two weights more than the link must carry at least.
  CHECK(stall(slow) <= least + 2 * 10 / 0.5);
}

TEST_CASE("planner: a U-shape stalls nothing if and only if both links keep up") {
  // 10 tensors of 10 B, HBM for 5; the 5 oldest must be out before the turn and back after it.
  const Graph g = u_shape(10, 10);
  CHECK(stall(planned(g, machine(60, 1.1, 1.1))) == Approx(0).margin(1e-9));
  const PlanOutcome slow = planned(g, machine(50, 0.2, 0.2));
  CHECK(slow.plan.bound->stall.value > 0);
  CHECK(stall(slow) >= slow.plan.bound->stall.value * (1 - 1e-9));
}

TEST_CASE("planner: the next iteration's first weights are on their way in this one") {
  const Graph g = weights(6);
  const PlanOutcome outcome = planned(g, machine(30, 1.2, 1.2), 10);
  CHECK(stall(outcome) == Approx(0).margin(1e-9));
  CHECK(outcome.plan.prediction->total.value == Approx(10 * 60).epsilon(0.05));
}

TEST_CASE("planner: weights that stream stay in HBM in part where they are too much for the link as wholes") {
  // 8 weights of 100 kB, ops of 40 us, 1 GB/s and 300 ns, HBM for 600 kB: whole weights would have to follow
  // each other in runs, 100 us each. With r of every weight resident, and beside the running op's weight the
  // next one's rest on its way, 8 r + 2 (100 - r) = 600: r = 66.7 kB, and 33.3 kB pass in 33.6 of 40 us.
  Toy t;
  for (int i = 0; i < 8; ++i) t.op(40e-6, {t.weight("w" + std::to_string(i), 100'000)});
  const PlanOutcome outcome = planned(t.build(), machine(600'000, 1e9, 1e9, 300e-9), 3);
  CHECK(stall(outcome) == Approx(0).margin(1e-12));
  // At 500 kB r = 50 kB, and 50.3 us pass an op: 10.3 us of stall each.
  CHECK(stall(planned(t.build(), machine(500'000, 1e9, 1e9, 300e-9), 3)) <= 8 * 10.3e-6 * 1.01);
}

TEST_CASE("planner: no expert is loaded before its router has run") {
  // Six layers of a router (1 s), a shared part (10 s) and an expert of 10 B (5 s), HBM for three; a load takes
  // 10 / 1.2 = 8.3 s. Known after the router it hides behind the shared part; known only after that, all of it
  // shows, for each of the three (once) or more (again and again) that are not there.
  for (const bool early : {true, false})
    for (const int iterations : {1, 5}) {
      Toy t;
      std::vector<OpId> known;
      std::vector<TensorId> experts;
      for (int layer = 0; layer < 6; ++layer) {
        experts.push_back(t.weight("e" + std::to_string(layer), 10));
        const OpId router = t.op(1, {}), shared = t.op(10, {});
        known.push_back(early ? router : shared);
        t.op(5, {experts.back()});
        t.last().known_after = known.back();
      }
      const PlanOutcome outcome = planned(t.build(), machine(30, 1.2, 1.2), iterations);
      for (const Action& action : outcome.plan.actions) {
        if (action.kind != ActionKind::kPrefetch) continue;
        const auto layer = std::find(experts.begin(), experts.end(), action.tensor) - experts.begin();
        INFO("expert " << layer << " after op " << action.after_op.value);
        CHECK(action.after_op.value >= known[static_cast<std::size_t>(layer)].value);
      }
      if (early)
        CHECK(stall(outcome) == Approx(0).margin(1e-9));
      else
        CHECK(stall(outcome) >= 3 * 10 / 1.2 * (1 - 1e-9));
    }
}

TEST_CASE("planner: a step of the search left out changes how good a plan is, not whether it is valid") {
  const Graph g = u_shape(10, 10);
  for (int step = 0; step < kSearchSteps; ++step) {
    INFO(to_string(static_cast<SearchStep>(step)));
    PlannerOptions options;
    options.skip = 1U << step;
    const PlanOutcome outcome = make_plan(g, machine(50, 0.2, 0.2), options);
    const CheckLimits limits{Bytes(50), machine(50).pool_capacity};
    CHECK(check_plan(g, outcome.plan, limits, 1).empty());
    CHECK(stall(outcome) >= stall(planned(g, machine(50, 0.2, 0.2))) * (1 - 1e-9));
  }
}

TEST_CASE("planner: a tensor updated in every iteration is stored in every iteration") {
  Toy t;
  const TensorId kv = t.tensor("kv", 10, TensorKind::kKv), x = t.activation("x", 10);
  t.op(10, {kv}, {kv});
  t.op(10, {});
  t.op(10, {}, {x});
  t.op(10, {x});
  t.op(30, {});
  const Graph g = t.build();
  const PlanOutcome outcome = planned(g, machine(10), 3);
  CHECK(stall(outcome) == Approx(0).margin(1e-9));
  int stores = 0;
  for (const Action& action : outcome.plan.actions)
    stores += action.kind == ActionKind::kStore && action.scope == IterationScope::kEvery;
  CHECK(stores == 1);
}

TEST_CASE("planner: an op in the pool gets its tensors there, and HBM gets them back") {
  Toy t;
  const TensorId w = t.weight("w", 8), dw = t.tensor("dw", 8, TensorKind::kGradient),
                 m = t.tensor("m", 16, TensorKind::kOptimizer);
  t.op(10, {w});
  t.op(10, {w}, {dw});
  t.op(10, {w, dw, m}, {w, m}, "host");
  t.last().memory = Tier::kPool;
  const Graph g = t.build();
  for (int iterations : {1, 3}) planned(g, machine(64), iterations);
}

TEST_CASE("planner: what can't be done names step, tier, bytes short and the largest") {
  Toy t;
  const TensorId big = t.weight("big", 70), small = t.weight("small", 20);
  t.op(1, {big});
  t.op(1, {big, small});
  t.last().workspace = Bytes(30);
  const Graph g = t.build();
  const std::string message = infeasible(g, machine(100));
  CHECK(message.find("op1") != std::string::npos);
  CHECK(message.find("HBM") != std::string::npos);
  CHECK(message.find("20 B more") != std::string::npos);  // 70 + 20 + 30 - 100
  CHECK(message.find("\"big\" 70 B, workspace 30 B, \"small\" 20 B") != std::string::npos);

  Hardware h = machine(15);
  h.pool_capacity = Bytes(5);
  const std::string pool = infeasible(weights(3), h);
  CHECK(pool.find("pool") != std::string::npos);
}

TEST_CASE("planner: every action is explained") {
  const Graph g = weights(4);
  PlanOutcome outcome = make_plan(g, machine(30, 2, 2), {1, 1, true});
  const std::string text = to_text(outcome.log);
  CHECK(text.find("everything resident needs 40 B") != std::string::npos);
  CHECK(text.find("prefetch w3 (10 B) behind op1 for op3: takes 5 s, hidden") != std::string::npos);
  CHECK(outcome.log.lines.size() >= outcome.plan.actions.size());
}

TEST_CASE("planner: NPUs behind one port plan with their share, and say that it is an estimate") {
  Hardware h = machine(30, 4, 4);
  h.npu_count = 2;
  h.pool_read_port = BytesPerSecond(4);
  const PlanOutcome outcome = make_plan(weights(4), h, {1, 1, false});
  CHECK(outcome.estimate);
  CHECK_FALSE(make_plan(weights(4), machine(30, 4, 4), {1, 1, false}).estimate);
}

TEST_CASE("planner: beyond 2^62 bytes, or 2^60 as the pool rounds them, it says so instead of overflowing") {
  const std::int64_t half = std::int64_t{1} << 61;
  const auto graph = [](std::int64_t a, std::int64_t b, std::int64_t workspace) {
    Toy t;
    t.op(1, {t.weight("a", a), t.weight("b", b)});
    t.last().workspace = Bytes(workspace);
    return t.build();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const Hardware h = machine(100);
  has(infeasible(graph(half - 1, half + 1, 0), h), "take more than 2^62 B");
  has(infeasible(graph(half - 1, half + 1, 0), h), "the largest is \"b\" (2305843009213693953 B)");
  has(infeasible(graph(half - 1, half, 1), h), "take more than 2^62 B");
  has(infeasible(graph(half - 1, half, 0), h), "needs 4611686018427387903 B of HBM at once");  // counted
  CHECK(cheap_bound(graph(half, half, 0), h, 1).method == "none");
  CHECK(cheap_bound(graph(half, half - 1, 0), h, 1).method == "window");
  Hardware rounding = h;
  rounding.allocation = {Bytes(std::int64_t{1} << 59), false};
  has(infeasible(graph(1, 1, 0), rounding), "or 2^60 B as the pool rounds them");
  rounding.allocation.granularity = Bytes(std::int64_t{1} << 58);
  CHECK(infeasible(graph(1, 1, 0), rounding) == "");
}

TEST_CASE("planner: slack starts a prefetch as early as a slower link would need") {
  // As above; with 150 % of slack the 5 s count as 12.5: behind op0, which ends at 10. The prediction is without.
  const Graph g = weights(4);
  PlannerOptions options;
  options.read_slack = options.write_slack = 1.5;
  const PlanOutcome outcome = make_plan(g, machine(30, 2, 2), options);
  CHECK(stall(outcome) == 0);
  int prefetches = 0;
  for (const Action& action : outcome.plan.actions)
    if (action.kind == ActionKind::kPrefetch) {
      ++prefetches;
      CHECK(action.after_op == OpId(0));
    }
  CHECK(prefetches == 1);
}

TEST_CASE("planner: a stream of weights counts with ops as long as copies beside them make them") {
  // Every op takes all of HBM's 1000 B/s, the link a tenth of that: where a tenth of the weights is away, copies go on
  // all the time, and make each op a ninth longer (900 B/s are left).
  Toy t;
  std::int64_t sum = 0;
  for (int k = 0; k < 40; ++k) {
    const std::int64_t bytes = k % 4 == 0 ? 1000 : k % 2 == 1 ? 300 : 100;
    sum += bytes;
    t.op(1e-3 * static_cast<double>(bytes), {t.weight("w" + std::to_string(100 + k), bytes)});
    t.last().hbm_bytes = Bytes(bytes);
  }
  const Graph g = t.build();
  Hardware h = machine(sum * 9 / 10, 100, 100);
  h.hbm_bandwidth = BytesPerSecond(1000);
  PlannerOptions options;
  options.iterations = 40;
  LpBoundOptions steady;
  steady.steady = true;
  const double ideal = 1e-3 * static_cast<double>(sum), least = lp_bound(FlatGraph(g, h), ideal, 40, steady).stall.value;
  const double found = stall(make_plan(g, h, options));
  CHECK(least >= ideal / 10);  // a tenth of the weights comes in, and takes as much of HBM's time
  CHECK(found >= least);
  CHECK(found <= least + 0.005 * ideal);
  // The program's own schedule knows of it, too.
  options.skip = 1U << static_cast<int>(SearchStep::kTranscribe);
  const double with = stall(make_plan(g, h, options));
  CHECK(with >= least);
  options.skip |= 1U << static_cast<int>(SearchStep::kContention);
  CHECK(stall(make_plan(g, h, options)) > with);
}
