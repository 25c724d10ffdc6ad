// Plans with addresses: they hold in program order and in time, and HBM holds for the arena's height.
#include "planner/addresses.h"

#include <algorithm>

#include "planner/analysis/liveness.h"
#include "planner/cost/walk.h"
#include "planner/pack/floor_search.h"
#include "planner/passes/late_loads.h"
#include "planner/pipeline.h"
#include "planner/planner.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "test/planner/packing.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"
#include "test/support/random_graph.h"
#include "test/support/random_plan.h"
#include "test/support/rng.h"
#include "test/support/simulate.h"

using namespace hyperoffload;
using toy::Toy;

namespace {

PlannerOptions with_addresses(int iterations) {
  PlannerOptions options;
  options.iterations = iterations;
  options.addresses = true;
  return options;
}

// A random graph, and a machine with HBM for a share of what everything needs.
void random_case(std::uint64_t seed, Graph& graph, Hardware& hardware, int& iterations) {
  Rng rng(seed);
  RandomGraphOptions options;
  options.shape = kAllShapes[rng.pick(0, 4)];
  options.size = rng.pick(5, 25);
  options.engines = rng.chance(0.3);
  graph = random_graph(options, rng);
  iterations = rng.pick(1, 4);
  hardware = random_hardware(graph, false, rng);
  hardware.hbm_reserved = Bytes(0);
  const Liveness liveness(FlatGraph(graph, hardware), {iterations > 1, 0});
  const std::int64_t most = *std::max_element(liveness.resident.begin(), liveness.resident.end());
  hardware.hbm_capacity = Bytes(static_cast<std::int64_t>(static_cast<double>(most) * rng.real(0.5, 1.1)));
}

// A plan with addresses for one, or nothing.
std::optional<PlanOutcome> random_outcome(std::uint64_t seed, Graph& graph, Hardware& hardware,
                                          int& iterations) {
  random_case(seed, graph, hardware, iterations);
  try {
    return make_plan(graph, hardware, with_addresses(iterations));
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("addresses: on random graphs they hold in program order and in simulated time") {
  int made = 0, moved = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    Graph graph;
    Hardware hardware;
    int iterations = 1;
    const auto outcome = random_outcome(seed, graph, hardware, iterations);
    if (!outcome) continue;
    ++made;
    moved += !outcome->plan.actions.empty();
    const auto broken = check_plan(graph, outcome->plan, limits_of(hardware), iterations);
    INFO((broken.empty() ? "" : broken.front().message));
    REQUIRE(broken.empty());
    CHECK(outcome->arena->height == outcome->plan.arena->value);
    CHECK(outcome->arena->height <= hardware.hbm_usable().value);
    CHECK(outcome->arena->height >= outcome->plan.prediction->hbm_peak.value);
    simulate_plan(graph, outcome->plan, hardware, iterations);  // throws if an address doesn't hold
  }
  CHECK(made > 25);
  CHECK(moved > 10);
}

TEST_CASE("addresses: a plan without them is the same plan") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Graph graph;
    Hardware hardware;
    int iterations = 1;
    const auto outcome = random_outcome(seed, graph, hardware, iterations);
    if (!outcome || outcome->arena->late) continue;
    Plan bare = outcome->plan;
    bare.arena.reset();
    bare.addresses.clear();
    for (Action& action : bare.actions) action.offset.reset();
    PlannerOptions options;
    options.iterations = iterations;
    CHECK(plan_to_json(make_plan(graph, hardware, options).plan, graph) == plan_to_json(bare, graph));
    compared += !bare.actions.empty();
  }
  CHECK(compared > 0);
}

TEST_CASE("addresses: where whole tensors plan again to fit, plans with pieces do not stall more") {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 80 && compared < 2; ++seed) {
    INFO("seed " << seed);
    Graph graph;
    Hardware hardware;
    PlannerOptions options;
    random_case(seed, graph, hardware, options.iterations);
    options.addresses = true;
    options.skip = 1U << static_cast<int>(SearchStep::kPieces);
    std::optional<PlanOutcome> whole;
    try {
      whole = make_plan(graph, hardware, options);
    } catch (const InfeasibleError&) {
    }
    if (!whole || !whole->arena->late) continue;
    options.skip = 0;
    const PlanOutcome any = make_plan(graph, hardware, options);  // fits, too: else it throws
    // Both searches end where the next plan differs by a thousandth of an iteration.
    CHECK(any.plan.prediction->iteration.value <= whole->plan.prediction->iteration.value * 1.002);
    ++compared;
  }
  CHECK(compared > 0);
}

TEST_CASE("addresses: a plan that leaves room free keeps to it, in order and in time") {
  // Both weights wait in the pool; with all of HBM they arrive together, with room for one v waits for u to go.
  Toy t;
  const TensorId u = t.weight("u", 60), v = t.weight("v", 60);
  t.op(1, {u});
  t.op(1, {v});
  const Graph graph = t.build();
  Plan plan;
  plan.initial_pool = {u, v};
  plan.actions = {toy::action(ActionKind::kPrefetch, graph, u, -1), toy::action(ActionKind::kDetach, graph, u, 0),
                  toy::action(ActionKind::kPrefetch, graph, v, -1)};
  const Hardware hardware = toy::machine(200);
  const auto peak = [&] {
    REQUIRE(check_plan(graph, plan, limits_of(hardware)).empty());
    const Walk walk = walk_plan(FlatGraph(graph, hardware), plan, {});
    const RunRecord run = simulate_plan(graph, plan, hardware);
    CHECK(walk.hbm_peak == run.npus.front().hbm_peak.value);
    return walk.hbm_peak;
  };
  CHECK(peak() == 120);
  plan.room = Bytes(119);
  CHECK(peak() == 60);
  CHECK(parse_plan(plan_to_json(plan, graph), "again", graph).room == Bytes(119));
  plan.room = Bytes(300);  // more than there is
  CHECK(peak() == 120);
  plan.room = Bytes(59);
  CHECK_FALSE(check_plan(graph, plan, limits_of(hardware)).empty());
  Plan resident;  // both start in HBM, which has the bytes but must not use them
  CHECK(check_plan(graph, resident, limits_of(hardware)).empty());
  resident.room = Bytes(119);
  const auto broken = check_plan(graph, resident, limits_of(hardware));
  REQUIRE_FALSE(broken.empty());
  CHECK(broken.front().rule == "start-hbm");
}

TEST_CASE("addresses: late loads hold nobody up, keep their order and every rule") {
  int later = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Graph graph;
    Hardware hardware;
    PlannerOptions plan_options;
    random_case(seed, graph, hardware, plan_options.iterations);
    Plan plan;
    try {
      plan = make_plan(graph, hardware, plan_options).plan;
    } catch (const InfeasibleError&) {
      continue;
    }
    const FlatGraph flat(graph, hardware);
    const Plan late = late_loads(flat, plan_options.iterations, plan);
    REQUIRE(late.actions.size() == plan.actions.size());
    for (std::size_t a = 0; a < late.actions.size(); ++a) {
      CHECK(late.actions[a].kind == plan.actions[a].kind);
      CHECK(late.actions[a].tensor == plan.actions[a].tensor);
      CHECK(late.actions[a].after_op.value >= plan.actions[a].after_op.value);
      later += late.actions[a].after_op.value > plan.actions[a].after_op.value;
    }
    const auto broken = check_plan(graph, late, limits_of(hardware), plan_options.iterations);
    INFO((broken.empty() ? "" : broken.front().message));
    CHECK(broken.empty());
    const WalkOptions walk{plan_options.iterations, WalkRecord::kNothing};
    CHECK(walk_plan(flat, late, walk).last_iteration <=
          walk_plan(flat, plan, walk).last_iteration * (1 + kLonger) + 1e-12);
  }
  CHECK(later > 25);
}

TEST_CASE("addresses: live bytes alone don't prove a fit, and the message says what is short") {
  int harder = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    // Activations that live for some ops each, and no pool to move them to.
    Rng rng(seed);
    const std::vector<PackItem> items = random_full(rng, 7, 8, 6);
    Toy t;
    std::vector<std::vector<TensorId>> reads(8), writes(8);
    for (const PackItem& item : items) {
      const PackRect& r = item.rects[0];
      const TensorId x = t.activation("x" + std::to_string(t.spec.tensors.size()), r.size);
      writes[static_cast<std::size_t>(r.lower)].push_back(x);
      if (r.upper > r.lower + 1) reads[static_cast<std::size_t>(r.upper) - 1].push_back(x);
    }
    for (std::size_t k = 0; k < 8; ++k) t.op(1, reads[k], writes[k]);
    const std::int64_t peak = live_peak(items);
    if (search_floors(items, peak, 100'000).verdict != FloorSearchResult::Verdict::kImpossible) continue;
    ++harder;
    const Graph graph = t.build();
    Hardware hardware = toy::machine(peak);
    hardware.pool_capacity = Bytes(0);
    CHECK(make_plan(graph, hardware, {}).plan.actions.empty());
    try {
      make_plan(graph, hardware, with_addresses(1));
      FAIL("no packing is as low as the peak");
    } catch (const InfeasibleError& error) {
      const std::string text = error.what();
      CHECK(text.find("no addresses fit into HBM") == 0);
      CHECK(text.find(std::to_string(peak) + " B are there") != std::string::npos);
    }
    hardware.hbm_capacity = Bytes(2 * peak);
    const std::int64_t height = make_plan(graph, hardware, with_addresses(1)).arena->height;
    CHECK(height > peak);
    hardware.hbm_capacity = Bytes(height);
    CHECK(make_plan(graph, hardware, with_addresses(1)).arena->height == height);
  }
  CHECK(harder > 0);
}

TEST_CASE("addresses: a tensor in HBM from an iteration to the next keeps its address") {
  Toy t;
  const TensorId w = t.weight("w", 6), v = t.weight("v", 6), x = t.activation("x", 3);
  t.op(10, {w}, {x});
  t.op(10, {v, x});
  const Graph graph = t.build();
  const PlanOutcome outcome = make_plan(graph, toy::machine(100), with_addresses(3));
  CHECK(outcome.plan.actions.empty());
  CHECK(outcome.arena->height == 15);  // all of it: 6 + 6 + 3
  CHECK(outcome.plan.addresses.size() == 3);
}

TEST_CASE("addresses: a replay whose transfers come at other times than planned says who overlaps") {
  // x dies with op1; v is planned to arrive after that, and shares its bytes. With v's prefetch moved to the
  // start the same addresses don't hold.
  Toy t;
  const TensorId v = t.weight("v", 4), x = t.activation("x", 4);
  t.op(1, {}, {x});
  t.op(1, {x});
  t.op(1, {v});
  const Graph graph = t.build();
  Plan plan;
  plan.initial_pool = {v};
  plan.actions = {toy::action(ActionKind::kPrefetch, graph, v, 1)};
  plan.actions[0].offset = Bytes(0);
  plan.addresses = {{x, OpId(0), Bytes(0)}};
  plan.arena = Bytes(4);
  const Hardware hardware = toy::machine(100);
  CHECK(check_plan(graph, plan, limits_of(hardware)).empty());
  simulate_plan(graph, plan, hardware);
  plan.actions[0].after_op = OpId::none();
  CHECK(check_plan(graph, plan, limits_of(hardware)).front().rule == "address");
  try {
    simulate_plan(graph, plan, hardware);
    FAIL("the overlap went unnoticed");
  } catch (const InfeasibleError& error) {
    CHECK(std::string(error.what()) ==
          "the plan's addresses do not hold at 0 s on NPU 0, iteration 1: \"v\", prefetched by action 0, is "
          "put at "
          "[0, 4), where \"x\", written by op \"op0\", still lies at [0, 4)");
  }
}

namespace {

// Layers of three weights of `bytes` each: two for one op, then one for another. With room for two and three quarters
// none can stay, so that each whole one passes the link (1 B/s each way) once an iteration.
Graph layers_of_three(int layers, std::int64_t bytes, double seconds) {
  Toy t;
  for (int k = 0; k < layers; ++k) {
    const std::string layer = std::to_string(k);
    const TensorId gate = t.weight("gate" + layer, bytes), up = t.weight("up" + layer, bytes);
    t.op(seconds, {gate, up});
    t.op(seconds, {t.weight("down" + layer, bytes)});
  }
  return t.build();
}

}  // namespace

TEST_CASE("addresses: whole tensors that move in pieces keep the link busy where whole ones wait for room") {
  constexpr int kLayers = 4;
  constexpr std::int64_t kBytes = 64;
  constexpr double kSeconds = 10;
  const Graph graph = layers_of_three(kLayers, kBytes, kSeconds);
  const Hardware hardware = toy::machine(2 * kBytes + 3 * kBytes / 4);
  const FlatGraph flat(graph, hardware);
  const Walk ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kLastIteration, true});
  SearchOptions options;
  options.iterations = 3;
  options.skip = 1U << static_cast<int>(SearchStep::kPieces) | 1U << static_cast<int>(SearchStep::kTranscribe);
  const double stream = 3 * kLayers * static_cast<double>(kBytes);
  // Whole ones: nothing more fits beside the two while they are read.
  CHECK(search_plan(flat, ideal, options).walk.last_iteration >= stream + kLayers * kSeconds - 1e-6);
  options.leave_whole = true;
  const Found found = search_plan(flat, ideal, options);
  CHECK(found.walk.last_iteration <= stream * 1.001);
  REQUIRE(check_plan(graph, found.plan, limits_of(hardware), 3).empty());
  // All of each comes back.
  std::vector<std::int64_t> loaded(graph.tensors().size());
  for (const Action& action : found.plan.actions)
    if (action.kind == ActionKind::kPrefetch && action.scope == IterationScope::kEvery)
      loaded[action.tensor.index()] += action.bytes().value;
  CHECK(loaded == std::vector<std::int64_t>(graph.tensors().size(), kBytes));
}

TEST_CASE("addresses: a plan whose parts of tensors don't fit streams whole ones in pieces, at the link's speed") {
  const Graph graph = layers_of_three(4, 64, 10);
  const Hardware hardware = toy::machine(2 * 64 + 48);
  PlannerOptions options = with_addresses(3);
  const PlanOutcome moving = make_plan(graph, hardware, options);
  CHECK(moving.plan.prediction->iteration.value <= 12 * 64 * 1.001);
  REQUIRE(check_plan(graph, moving.plan, limits_of(hardware), 3).empty());
  CHECK(simulate_plan(graph, moving.plan, hardware, 3).npus.front().hbm_peak.value <= moving.arena->height);
  options.skip = 1U << static_cast<int>(SearchStep::kPieces);
  CHECK(make_plan(graph, hardware, options).plan.prediction->iteration.value >= 12 * 64 + 4 * 10 - 1e-6);
}
