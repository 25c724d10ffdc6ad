// The linear program's schedule to the letter: what it takes is what is proven and a few bytes.
#include "planner/passes/schedule_guide.h"

#include "planner/bound/lp_bound.h"
#include "planner/bound/engine_view.h"
#include "planner/bound/offload_program.h"
#include "planner/passes/choose_evictions.h"
#include "planner/pipeline.h"
#include "planner/planner.h"
#include "test/planner/families.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

TEST_CASE("schedule guide: a stream that follows it takes what is proven and a few bytes") {
  // 8 weights of 1000 B, an op of 10 s each, 50 B/s: 5000 B are the least (lp_bound_test.cc). Pieces of 8 B; one each way.
  Toy t;
  for (int i = 0; i < 8; ++i) t.op(10, {t.weight("w" + std::to_string(i), 1000)});
  const Graph g = t.build();
  PlannerOptions options;
  options.iterations = 3;
  const FlatGraph flat(g, machine(4000, 50, 50));  // less than enough
  ScheduleProgram least(flat, Liveness(flat, {true, 0}), rank_by_name(g), 80);
  CHECK(std::abs(least.decide(0, 10) - 5000) <= 1);
  const ScheduleGuide schedule = least.at(5000 + 2 * 8, 0.001);
  options.guided = &schedule;
  const PlanOutcome outcome = make_plan(g, machine(5000 + 2 * 8, 50, 50), options);
  CHECK(outcome.plan.prediction->iteration.value == Approx(80).epsilon(1e-6));
  CHECK(outcome.plan.prediction->hbm_peak <= Bytes(5000 + 2 * 8));
}

TEST_CASE("schedule guide: where latency makes pieces dear, only those that the program asks for are cut, however small") {
  // 8 weights of 1 MB, ops of 20 us, 100 GB/s and 1 us. With room for all but a byte of two weights a load needs 11 us; one
  // in two pieces has a byte wait for the op that the other goes beside: no more than a latency and what the byte takes.
  Toy t;
  const std::int64_t weight = 1'000'000;
  for (int i = 0; i < 8; ++i) t.op(20e-6, {t.weight("w" + std::to_string(i), weight)});
  const Graph g = t.build();
  PlannerOptions options;
  options.iterations = 3;
  Hardware hardware = machine(2 * weight - 1, 100e9, 100e9, 1e-6);
  hardware.hbm_bandwidth = BytesPerSecond(1e15);
  const PlanOutcome outcome = make_plan(g, hardware, options);
  const double all_wait = 8 * (20e-6 + 1e-6 + 0.001 * static_cast<double>(weight) / 100e9);  // a thousandth of room to spare
  CHECK(outcome.plan.prediction->iteration.value <= all_wait * (1 + 1e-3));
}

TEST_CASE("schedule guide: a repeated body that stalls comes nearer to the proven limit for it, and doesn't beat it") {
  FamilyCase c = family_case(Family::kSkips, 24, 123, 2);
  REQUIRE(c.repeats);
  c.hardware.hbm_capacity = Bytes(c.peak / 2);
  const FlatGraph flat(c.graph, c.hardware);
  LpBoundOptions lp;
  lp.hbm = false;
  lp.steady = true;
  const auto stall = [&](std::uint32_t skip) {
    PlannerOptions options;
    options.iterations = 40;
    options.skip = skip;
    const Prediction p = *make_plan(c.graph, c.hardware, options).plan.prediction;
    return std::pair(p.iteration.value - p.ideal.value, p.ideal.value);
  };
  const auto [with, ideal] = stall(0);
  const double proven = lp_bound(flat, ideal, 40, lp).stall.value;
  const double without = stall(1U << static_cast<int>(SearchStep::kTranscribe)).first;
  CHECK(proven > 0.1 * ideal);
  CHECK(with >= proven * (1 - 1e-9));
  CHECK(with - proven < without - proven);
}

TEST_CASE("schedule guide: tensors are cut where shares end, and each piece knows when it leaves and comes back") {
  // a and b (10 B) are read in turns by 6 ops; HBM 15 B: 5 B of each leave in each gap, behind its op and back for the next.
  const Graph g = two_in_turns(6).build();
  const FlatGraph flat(g, machine(15, 4, 4));
  const Walk ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kLastIteration, true});
  const Liveness whole(flat, {true, 0});
  const ScheduleGuide guide = ScheduleProgram(flat, whole, rank_by_name(g), ideal.last_iteration).at(15, 0);
  const auto cut_at = cuts(guide, flat, 1);
  const Liveness cut(flat, {true, 3, cut_at});
  for (int t = 0; t < 2; ++t) {
    CHECK(cut_at[t] == std::vector<std::int64_t>{5});
    CHECK(cut.pieces[t] == 4);  // 5 B in pieces of at most 3 B are two, on either side
    CHECK(cut.piece_from(t, 2) == 5);
    CHECK(cut.piece_from(t, 4) == 10);
    for (int k = 0; k < 4; ++k) CHECK(cut.piece_bytes(t, k) <= 3);
  }
  const Filled filled = evictions_of(guide, cut, StepClock(flat, ideal, 1000));
  CHECK(filled.evictions.size() == 6 * 2);  // two pieces a gap
  for (const Eviction& eviction : filled.evictions) {
    const Gap& gap = cut.gap(eviction.unit);
    CHECK(eviction.back == gap.close);  // only once the op between has ended is there room
    if (gap.close > cut.positions) continue;  // the iteration's start is a position, too
    CHECK(gap.close == gap.open + 2);
    CHECK(eviction.position == gap.open + 1);
  }
}

TEST_CASE("schedule guide: asked for capacity or for seconds, the program says the same") {
  // At the least capacity for so many seconds it takes those, a little below it more: two programs, each with its own prices.
  for (Family family : kAllFamilies) {
    const FamilyCase c = family_case(family, 4, 30, 2);
    INFO(to_string(family));
    const FlatGraph flat(c.graph, c.hardware);
    const double ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kNothing, true}).last_iteration, allowed = 0.01 * ideal;
    const EngineView view(flat, 0, 1);
    const std::int64_t working = *std::max_element(view.working_set.begin(), view.working_set.end());
    const auto made = [&] {
      OffloadLp lp = OffloadProgram(flat, view, view.excess(working), {ideal}).lp;
      lp.capacity = true;
      return lp;
    };
    OffloadSolver bytes(made()), seconds(made());
    bytes.ask({true, allowed});
    const LpOutcome least = bytes.solve({200, 1e-6, 0});
    REQUIRE(least.lower <= least.upper * (1 + 1e-9) + 1e-6);
    const auto at = [&](double more) {
      seconds.ask({false, 0, more});
      return seconds.solve({200, 1e-6, 1e-6 * ideal});
    };
    CHECK(at(least.upper + 1e-3 * working).upper <= allowed * (1 + 1e-6));
    if (least.lower > 0) CHECK(at(std::max(0.0, least.lower - 1e-2 * working)).lower >= allowed);
  }
}
