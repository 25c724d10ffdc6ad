// The forward fill and the event replay of placements, on rows of weights small enough to follow by hand.
#include "planner/passes/replay_placement.h"

#include "planner/passes/fill_forward.h"
#include "planner/passes/choose_evictions.h"
#include "planner/passes/write_plan.h"
#include "test/planner/families.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

struct Row {
  Graph graph;
  FlatGraph flat;
  Walk ideal;
  Liveness liveness;
  StepClock clock;
  std::vector<std::int32_t> rank;

  Row(Graph g, const Hardware& h, bool repeats, std::int64_t piece_bytes = 0)
      : graph(std::move(g)),
        flat(graph, h),
        ideal(walk_plan(flat, Plan{}, {1, WalkRecord::kLastIteration, true})),
        liveness(flat, {repeats, piece_bytes}),
        clock(flat, ideal, 1000),
        rank(rank_by_name(graph)) {}
};

// x_i of 10 B, born by forward op i of 10 s, read again by backward op i, last in first out.
Graph u_shape(int depth) {
  Toy t;
  std::vector<TensorId> x;
  for (int i = 0; i < depth; ++i) {
    x.push_back(t.activation("x" + std::to_string(i), 10));
    t.op(10, {}, {x.back()});
  }
  for (int i = depth; i-- > 0;) t.op(10, {x[i]});
  return t.build();
}

Graph weights(int count) {
  Toy t;
  for (int i = 0; i < count; ++i) t.op(10, {t.weight("w" + std::to_string(i), 10)});
  return t.build();
}

}  // namespace

TEST_CASE("replay placement: what it says a placement takes is what the plan's walk takes") {
  for (double rate : {0.4, 0.7, 1.0, 2.5})
    for (int hbm : {30, 40, 60}) {
      Row row(u_shape(10), machine(hbm, rate, rate), false);
      EvictionLedger ledger(row.flat, row.liveness, row.clock);
      choose_evictions(row.flat, row.liveness, row.clock, row.rank, {}, ledger);
      const auto replayed = place_by_replay(row.flat, row.liveness, row.clock, row.clock, row.rank, ledger);
      REQUIRE(replayed);
      const Plan plan = write_plan(row.flat, row.liveness, replayed->clock, row.rank, replayed->placements);
      const Walk walk = walk_plan(row.flat, plan, {1, WalkRecord::kNothing, false});
      REQUIRE_FALSE(walk.stuck);
      INFO(rate << " B/s, " << hbm << " B");
      CHECK(walk.hbm_peak <= hbm);
      CHECK(replayed->clock.seconds(replayed->clock.period()) == Approx(walk.last_iteration).epsilon(1e-6));
    }
}

TEST_CASE("replay placement: a firm one is less often wrong where loads take the room that an op waits for") {
  int wrong[] = {0, 0};
  for (Family family : kAllFamilies)
    for (std::uint64_t seed : {1, 2, 4}) {
      FamilyCase c = family_case(family, seed, 60, 2);
      if (c.repeats) continue;
      c.hardware.hbm_capacity = Bytes(c.peak / 2);
      INFO(to_string(family) << " " << seed);
      Row row(std::move(c.graph), c.hardware, false, 200);
      const StepClock slow = row.clock.stretched(1.35);
      EvictionLedger ledger(row.flat, row.liveness, slow);
      choose_evictions(row.flat, row.liveness, slow, row.rank, {}, ledger);
      for (const bool firm : {false, true}) {
        const auto replayed = place_by_replay(row.flat, row.liveness, slow, row.clock, row.rank, ledger, firm);
        REQUIRE(replayed);
        const Plan plan = write_plan(row.flat, row.liveness, replayed->clock, row.rank, replayed->placements);
        const Walk walk = walk_plan(row.flat, plan, {1, WalkRecord::kNothing, false});
        REQUIRE_FALSE(walk.stuck);
        const double said = replayed->clock.seconds(replayed->clock.period());
        wrong[firm] += walk.last_iteration > said * (1 + 1e-6);
      }
    }
  CHECK(wrong[1] < wrong[0]);
}

TEST_CASE("replay placement: a store that never begins, because nobody waits for it, is no placement") {
  // op0 writes a, op1 writes b (100 B each, 1 B/s, ops of 1 s): b's store would begin behind a's, long after the end.
  Toy t;
  const TensorId a = t.weight("a", 100), b = t.weight("b", 100);
  t.op(1, {}, {a});
  t.op(1, {}, {b});
  t.op(1, {});
  Row row(t.build(), machine(1000), false);
  for (const bool both : {false, true}) {
    EvictionLedger ledger(row.flat, row.liveness, row.clock);
    int evicted = 0;
    for (const Gap& gap : row.liveness.gaps)
      if (gap.open == 1 + static_cast<int>(gap.tensor) && (both || gap.tensor == a.value)) {
        ledger.evict_on_demand(gap.first_unit);
        ++evicted;
      }
    REQUIRE(evicted == (both ? 2 : 1));
    CHECK(place_by_replay(row.flat, row.liveness, row.clock, row.clock, row.rank, ledger).has_value() == !both);
  }
}

TEST_CASE("replay placement: what an op reads may come before there is room for what it writes") {
  // Behind op0 20 B are free: w (20 B) comes till 30 s, beside the store of s (30 B) that makes room for y at 40 s. s comes
  // back behind op1, from 50 to 80 s, and op2 ends at 90.
  Toy t;
  const TensorId w = t.weight("w", 20), s = t.activation("s", 30), y = t.activation("y", 30);
  t.op(10, {}, {s});
  t.last().workspace = Bytes(20);
  t.op(10, {w}, {y});
  t.op(10, {s});
  Row row(t.build(), machine(50, 1, 1), false);
  EvictionLedger ledger(row.flat, row.liveness, row.clock);
  choose_evictions(row.flat, row.liveness, row.clock, row.rank, Score::kFarthestUse, ledger);
  const auto replayed = place_by_replay(row.flat, row.liveness, row.clock, row.clock, row.rank, ledger);
  REQUIRE(replayed);
  CHECK(replayed->clock.seconds(replayed->clock.period()) == Approx(90).epsilon(1e-6));
  const Plan plan = write_plan(row.flat, row.liveness, replayed->clock, row.rank, replayed->placements);
  CHECK(walk_plan(row.flat, plan, {1, WalkRecord::kNothing, false}).last_iteration == Approx(90));
}

TEST_CASE("replay placement: a load takes the room a store gives back while an op runs") {
  // op0 (10 s) writes a (10 B); op1 (10 s) does nothing with it; op2 reads w, which starts in the pool; op3 reads
  // a. HBM 10 B; 1 B/s both ways. a is stored from 10 to 20, w loaded from 20 to 30 (op2 waits till then), runs till
  // 40; a is back at 50 (w starts in the pool and may be dropped when op2 is done): 60 in all.
  Toy t;
  const TensorId a = t.activation("a", 10), w = t.weight("w", 10);
  t.op(10, {}, {a});
  t.op(10, {});
  t.op(10, {w});
  t.op(10, {a});
  Row row(t.build(), machine(10), false);
  EvictionLedger ledger(row.flat, row.liveness, row.clock);
  choose_evictions(row.flat, row.liveness, row.clock, row.rank, {}, ledger);
  const auto replayed = place_by_replay(row.flat, row.liveness, row.clock, row.clock, row.rank, ledger);
  REQUIRE(replayed);
  CHECK(replayed->clock.seconds(replayed->clock.period()) == Approx(60).epsilon(1e-6));
}

TEST_CASE("fill forward: the link loads what is missed first in place of what is used last") {
  // 4 weights of 10 B in a row, once; HBM for 2; 1 B/s, as long as an op. w0 and w1 start in HBM and, having no
  // copy there, w0 is stored while op0 runs. w2 takes its place when op0 is done, w3 that of w1 when op1 is done and
  // w1 is stored (10 to 20): all hide but for one transfer's time.
  Row row(weights(4), machine(20), false);
  const auto filled = fill_forward(row.flat, row.liveness, row.clock, row.rank);
  REQUIRE(filled);
  for (const Eviction& e : filled->evictions) {
    const Gap& gap = row.liveness.gap(e.unit);
    CHECK(e.position > gap.open);
    CHECK(e.position <= gap.close);
  }
  CHECK(filled->clock.seconds(filled->clock.period()) <= 50 * (1 + 1e-6));
}

TEST_CASE("fill forward: of a repeated body it gives one iteration's evictions, each once") {
  Row row(weights(8), machine(30, 0.5, 0.5), true);
  const auto filled = fill_forward(row.flat, row.liveness, row.clock, row.rank);
  REQUIRE(filled);
  std::vector<int> seen(row.liveness.units());
  for (const Eviction& e : filled->evictions) CHECK(++seen[e.unit] == 1);
  CHECK(filled->evictions.size() >= 5);  // HBM holds 3 of 8
}
