// Over seeded random graphs: plans are valid and keep HBM, predictions equal the reference replay, no
// plan beats the bound or loses to a plain on-demand plan, and the order of tensors doesn't matter.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "planner/analysis/liveness.h"
#include "planner/bound/lp_bound.h"
#include "planner/bound/window_bound.h"
#include "planner/passes/choose_evictions.h"
#include "planner/passes/place_transfers.h"
#include "planner/passes/write_plan.h"
#include "planner/planner.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "test/planner/families.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"
#include "test/support/random_graph.h"
#include "test/support/random_plan.h"
#include "test/support/reference_replay.h"

using namespace hyperoffload;

namespace {

struct Case {
  Graph graph;
  Hardware hardware;
  int iterations = 1;
};

// A random graph with HBM between its largest working set and what everything needs.
Case tight_case(std::uint64_t seed, bool engines, bool pool_ops) {
  Rng rng(seed);
  RandomGraphOptions options;
  options.shape = kAllShapes[rng.pick(0, 4)];
  options.tied = rng.chance(0.5);
  options.engines = engines;
  options.pool_ops = pool_ops;
  options.size = rng.pick(5, 25);
  Case c{random_graph(options, rng), {}, rng.pick(1, 4)};
  c.hardware = random_hardware(c.graph, options.tied, rng);
  c.hardware.hbm_reserved = Bytes(0);
  const Liveness liveness(FlatGraph(c.graph, c.hardware), {c.iterations > 1, 0});
  const std::int64_t most = *std::max_element(liveness.resident.begin(), liveness.resident.end());
  const std::int64_t least = *std::max_element(liveness.working_set.begin(), liveness.working_set.end());
  c.hardware.hbm_capacity =
      Bytes(least + static_cast<std::int64_t>(static_cast<double>(most - least) * rng.real(0, 1.1)));
  return c;
}

double stall(const Plan& plan) { return plan.prediction->iteration.value - plan.prediction->ideal.value; }

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-11; }

// What a plain static plan reaches: evict what is used again last, load when the reader is next.
double on_demand_time(const Case& c) {
  const FlatGraph flat(c.graph, c.hardware);
  const Walk ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kLastIteration, true});
  const Liveness liveness(flat, {c.iterations > 1, 0});
  const StepClock clock(flat, ideal, 1);
  const auto rank = rank_by_name(c.graph);
  EvictionLedger ledger(flat, liveness, clock);
  choose_on_demand(flat, liveness, clock, rank, ledger);
  const auto placed = place_transfers(flat, liveness, clock, rank, ledger, Lead::kOnDemand);
  const Plan plan = write_plan(flat, liveness, clock, rank, placed);
  const Walk walk = walk_plan(flat, plan, {c.iterations, WalkRecord::kNothing, false});
  REQUIRE_FALSE(walk.stuck);
  return walk.last_iteration;
}

void check_outcome(const Case& c, const Plan& plan) {
  const auto broken =
      check_plan(c.graph, plan, {c.hardware.hbm_usable(), c.hardware.pool_capacity}, c.iterations);
  INFO((broken.empty() ? "" : broken.front().message));
  REQUIRE(broken.empty());
  CHECK(plan.prediction->hbm_peak <= c.hardware.hbm_usable());
  const ReferenceResult reference = reference_replay(c.graph, plan, c.hardware, c.iterations);
  REQUIRE_FALSE(reference.stuck);
  CHECK(near(plan.prediction->total.value, static_cast<double>(reference.iteration_end.back())));
  CHECK(plan.prediction->hbm_peak == reference.hbm_peak);
  CHECK(plan.prediction->pool_peak == reference.pool_peak);
  CHECK(plan.bound->stall.value <= stall(plan) + 1e-9 * plan.prediction->ideal.value);
  if (stall(plan) <= 0 && c.graph.engines().size() == 1)
    CHECK(plan.bound->hbm_peak <= c.hardware.hbm_usable());
}

}  // namespace

TEST_CASE("walk: equals the reference replay on random cases, jumping or not") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const RandomCase c = random_case(seed);
    const ReferenceResult reference = reference_replay(c.graph, c.plan, c.hardware, c.iterations);
    const FlatGraph flat(c.graph, c.hardware);
    for (WalkRecord record : {WalkRecord::kEverything, WalkRecord::kLastIteration}) {
      INFO("seed " << seed);
      const Walk walk = walk_plan(flat, c.plan, {c.iterations, record, false});
      REQUIRE(walk.stuck.has_value() == reference.stuck);
      if (walk.stuck) continue;
      CHECK(near(walk.total, static_cast<double>(reference.iteration_end.back())));
      CHECK(walk.hbm_peak == reference.hbm_peak.value);
      CHECK(walk.pool_peak == reference.pool_peak.value);
    }
  }
}

TEST_CASE("planner: on one engine every feasible case gets a valid plan that lives up to its prediction") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const Case c = tight_case(seed, false, false);
    const PlanOutcome outcome = make_plan(c.graph, c.hardware, {c.iterations, 1, false});
    check_outcome(c, outcome.plan);
  }
}

TEST_CASE("planner: with several engines and ops in the pool, too, or it says that there is none") {
  int done = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    const Case c = tight_case(seed, true, seed % 2 == 1);
    try {
      const PlanOutcome outcome = make_plan(c.graph, c.hardware, {c.iterations, 1, false});
      check_outcome(c, outcome.plan);
      ++done;
    } catch (const InfeasibleError&) {
    }
  }
  CHECK(done > 120);
}

TEST_CASE("planner: no plan is slower than loading on demand") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    const Case c = tight_case(seed, false, false);
    const PlanOutcome outcome = make_plan(c.graph, c.hardware, {c.iterations, 1, false});
    if (outcome.plan.actions.empty()) continue;
    CHECK(outcome.plan.prediction->iteration.value <= on_demand_time(c) * (1 + 1e-9));
    ++compared;
  }
  CHECK(compared > 0);
}

TEST_CASE("planner: no load that an op waits for does better one op earlier") {
  int tried = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const Case c = tight_case(seed, seed % 2 == 1, seed % 4 >= 2);
    INFO("seed " << seed);
    Plan plan;
    try {
      plan = make_plan(c.graph, c.hardware, {std::min(c.iterations, 3), 1, false}).plan;
    } catch (const InfeasibleError&) {
      continue;
    }
    const FlatGraph flat(c.graph, c.hardware);
    const WalkOptions options{std::min(c.iterations, 3), WalkRecord::kLastIteration, false};
    const Walk walk = walk_plan(flat, plan, options);
    for (const OpWalk& op : walk.ops) {
      if (op.waited_action < 0 || op.resident <= op.ready) continue;
      Plan moved = plan;
      Action& load = moved.actions[op.waited_action];
      if (load.kind != ActionKind::kPrefetch || load.after_op.is_none()) continue;
      if (c.graph.op(load.before_op).known_after) continue;
      load.after_op = load.after_op.value == 0 ? OpId::none() : OpId(load.after_op.value - 1);
      if (!check_plan(c.graph, moved, {c.hardware.hbm_usable(), c.hardware.pool_capacity}, options.iterations).empty())
        continue;
      const Walk other = walk_plan(flat, moved, options);
      if (other.stuck || other.last_iteration >= walk.last_iteration * (1 - 1e-8)) {
        ++tried;
        continue;
      }
      // A stall within 1e-4 of the ideal time of the least proven ends the search.
      const double ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kNothing, true}).last_iteration;
      const Bound least = prove_bound(c.graph, c.hardware, options.iterations, BoundMethod::kLp);
      const double proven = std::max(least.stall, least.steady_stall.value_or(least.stall)).value;
      CHECK(walk.last_iteration <= ideal + proven + 1.01e-4 * ideal);
      ++tried;
    }
  }
  CHECK(tried > 50);
}

TEST_CASE("planner: nothing is loaded for an op before the one that tells what it reads") {
  // As each body stands: the load is for the next access of its tensor behind its anchor.
  int late = 0, waited = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed);
    Case c = tight_case(seed, false, false);
    GraphSpec spec{c.graph.name(), c.graph.meta_json(), c.graph.tensors(), c.graph.ops(), c.graph.engines(), ""};
    for (std::size_t op = 1; op < spec.ops.size(); ++op)
      if (rng.chance(0.4)) spec.ops[op].known_after = OpId(rng.pick(0, static_cast<int>(op) - 1));
    c.graph = build_graph(std::move(spec));
    const int ops = static_cast<int>(c.graph.ops().size());
    Plan plan;
    try {
      plan = make_plan(c.graph, c.hardware, {c.iterations, 1, false}).plan;
    } catch (const InfeasibleError&) {
      continue;
    }
    LpBoundOptions lp;  // these plans are tight enough to beat a limit that holds loads back for longer
    lp.known_after = true;
    lp.hbm = false;
    const double ideal = plan.prediction->ideal.value, stall = plan.prediction->iteration.value - ideal;
    REQUIRE(lp_bound(FlatGraph(c.graph, c.hardware), ideal, c.iterations, lp).stall.value <= stall + 1e-9 * ideal + 2e-12);  // instants
    for (const Action& load : plan.actions) {
      if (load.kind != ActionKind::kPrefetch) continue;
      const int anchor = load.after_op.is_none() ? -1 : load.after_op.value;
      int use = 2 * ops;
      bool reads = false;
      for (const Access& access : c.graph.accesses(load.tensor)) {
        const int op = access.op.value > anchor ? access.op.value : access.op.value + ops;
        if (op >= use) continue;
        use = op;
        reads = access.reads;
      }
      REQUIRE(use < 2 * ops);
      const auto known = c.graph.op(OpId(use % ops)).known_after;
      if (!reads || !known) continue;
      ++late;
      waited += known->value == anchor;
      REQUIRE(anchor >= known->value + (use >= ops ? ops : 0));
    }
  }
  CHECK(late > 200);
  CHECK(waited > 20);
}

TEST_CASE("bound: random valid plans of others don't beat it either") {
  int reached = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const RandomCase c = random_case(seed);
    INFO("seed " << seed);
    const FlatGraph flat(c.graph, c.hardware);
    const Walk walk = walk_plan(flat, c.plan, {c.iterations, WalkRecord::kNothing, false});
    if (walk.stuck) continue;
    const Walk ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kNothing, true});
    const Bound bound = window_bound(flat, ideal.last_iteration, c.iterations);
    const double least = walk.last_iteration - ideal.last_iteration;
    CHECK(bound.stall.value <= least + 1e-9 * ideal.last_iteration);
    if (least <= 0 && c.graph.engines().size() == 1) CHECK(bound.hbm_peak <= c.hardware.hbm_usable());
    reached += bound.stall.value > 0;
  }
  CHECK(reached > 20);  // it says something at all
}

TEST_CASE("planner: the order of tensors in the file doesn't change the plan's times") {
  for (Family family : kAllFamilies) {
    FamilyCase c = family_case(family, 4, 60, 1.2);
    c.hardware.hbm_capacity = Bytes(c.peak * 6 / 10);
    GraphSpec spec;
    spec.tensors = c.graph.tensors();
    spec.ops = c.graph.ops();
    spec.engines = c.graph.engines();
    std::vector<std::int32_t> to(spec.tensors.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::int32_t>(i);
    std::shuffle(to.begin(), to.end(), std::mt19937(5));
    for (std::size_t i = 0; i < to.size(); ++i) spec.tensors[to[i]] = c.graph.tensors()[i];
    for (Op& op : spec.ops)
      for (auto* list : {&op.reads, &op.writes})
        for (TensorId& t : *list) t = TensorId(to[t.index()]);
    const Graph permuted = build_graph(spec);
    const PlannerOptions options{c.repeats ? 3 : 1, 1, false};
    const Plan a = make_plan(c.graph, c.hardware, options).plan,
               b = make_plan(permuted, c.hardware, options).plan;
    CHECK(a.prediction->iteration == b.prediction->iteration);
    CHECK(a.prediction->total == b.prediction->total);
    CHECK(a.actions.size() == b.actions.size());
    const Plan again = make_plan(c.graph, c.hardware, options).plan;
    REQUIRE(again.actions.size() == a.actions.size());
    for (std::size_t i = 0; i < a.actions.size(); ++i) {
      CHECK(a.actions[i].tensor == again.actions[i].tensor);
      CHECK(a.actions[i].after_op == again.actions[i].after_op);
    }
  }
}

TEST_CASE("planner: 20,000 ops take about ten times as long as 2,000", "[scale]") {
  for (Family family : {Family::kEvenChain, Family::kWeightStream}) {
    double seconds[2];
    for (int k : {0, 1}) {
      FamilyCase c = family_case(family, 1, k ? 20000 : 2000, 1.0);
      c.hardware.hbm_capacity = Bytes(c.peak * 7 / 10);
      const auto begin = std::chrono::steady_clock::now();
      const Plan plan = make_plan(c.graph, c.hardware, {c.repeats ? 3 : 1, 0, false}).plan;
      seconds[k] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      CHECK(stall(plan) == Approx(0).margin(1e-9 * plan.prediction->ideal.value));
    }
    INFO(to_string(family) << ": 2,000 ops " << seconds[0] << " s, 20,000 ops " << seconds[1] << " s");
    CHECK(seconds[1] < 60 * seconds[0] + 1);  // near-linear, on a busy machine
  }
}
