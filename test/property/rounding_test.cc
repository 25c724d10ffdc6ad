// The pool's rounding in three implementations: the SimGrid replay and the planner's walk hold what the
// reference replay does, on random plans with pieces, with the pool tightened until they just get through.
#include "planner/analysis/flat_graph.h"
#include "planner/cost/walk.h"
#include "test/support/catch.h"
#include "test/support/replay_property.h"
#include "test/support/rng.h"
#include "test/support/simulate.h"

using namespace hyperoffload;

TEST_CASE("with allocations rounded up, SimGrid, the walk and the reference agree") {
  int compared = 0, stuck = 0, rounded = 0;
  for (std::uint64_t seed = 20'001; seed <= 20'400; ++seed) {
    RandomCase c = random_case(seed);
    Rng rng(seed);
    c.hardware.allocation = {Bytes(rng.one_of(std::vector<std::int64_t>{1, 7, 500, 4096})), rng.chance(0.5)};
    c.hardware.pool_capacity = Bytes(1'000'000'000);
    tighten(c.graph, c.plan, c.tied, c.hardware, c.iterations, rng);
    const ReferenceResult reference = reference_replay(c.graph, c.plan, c.hardware, c.iterations);
    INFO(describe(c) << "granularity " << c.hardware.allocation.granularity.value
                     << (c.hardware.allocation.power_of_two ? ", powers of two" : ""));
    CHECK(compare_plan(c, reference, simulate_plan) == "");
    const FlatGraph flat(c.graph, c.hardware);
    const Walk walk = walk_plan(flat, c.plan, {c.iterations, WalkRecord::kNothing, false});
    REQUIRE(walk.stuck.has_value() == reference.stuck);
    ++compared;
    stuck += reference.stuck;
    if (reference.stuck) continue;
    CHECK(walk.pool_peak == reference.pool_peak.value);
    CHECK(walk.total == Approx(static_cast<double>(reference.iteration_end.back())).epsilon(1e-9));
    Hardware plain = c.hardware;
    plain.allocation = {};
    rounded += reference_replay(c.graph, c.plan, plain, c.iterations).pool_peak < reference.pool_peak;
  }
  CHECK(compared == 400);
  CHECK(stuck < 60);
  CHECK(rounded > 150);
}
