#include "planner/cost/walk.h"

#include "test/planner/toy.h"
#include "test/support/catch.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {
constexpr ActionKind kPrefetch = ActionKind::kPrefetch;
constexpr ActionKind kStore = ActionKind::kStore;
constexpr ActionKind kDetach = ActionKind::kDetach;
}  // namespace

TEST_CASE("walk: a prefetch hides behind compute, and only the rest of it is exposed") {
  for (double compute : {12.0, 10.0, 6.0, 0.0}) {
    Toy t;
    const TensorId w = t.weight("w", 10);
    t.op(compute, {});
    t.op(5, {w});
    const Graph g = t.build();
    Plan plan;
    plan.initial_pool = {w};
    plan.actions = {action(kPrefetch, g, w, -1)};
    const double latency = 1;
    const Walk r = walk(g, machine(10, 2, 2, latency), plan);
    const double transfer = latency + 10 / 2.0;
    CHECK(r.total == Approx(std::max(compute, transfer) + 5).epsilon(1e-12));
    CHECK(r.ops[1].waited_action == (compute < transfer ? 0 : -1));
  }
}

TEST_CASE("walk: HBM is free again once the store has ended and the last use is over") {
  // x (4 B) is born at op0, stored, read at op1; y (4 B) is born at op2 and needs x's room.
  for (double use : {1.0, 9.0}) {
    Toy t;
    const TensorId x = t.activation("x", 4), y = t.activation("y", 4);
    t.op(1, {}, {x});
    t.op(use, {x});
    t.op(1, {}, {y});
    t.op(1, {x, y});
    const Graph g = t.build();
    Plan plan;
    plan.actions = {action(kStore, g, x, 0), action(kDetach, g, x, 1), action(kPrefetch, g, x, 2)};
    const Walk r = walk(g, machine(8), plan);
    const double store_end = 1 + 4 / 1.0;
    const double room = std::max(store_end, 1 + use);
    CHECK_FALSE(r.stuck);
    CHECK(r.hbm_peak == 8);
    // With 8 B y needs no room; with 7 B it waits for x to leave.
    const Walk tight = walk(g, machine(7), plan);
    REQUIRE(tight.stuck);  // op3 reads both: 8 B
    CHECK(tight.stuck->op == 3);
    CHECK(r.ops[2].start == Approx(1 + use));
    Toy t2;
    const TensorId x2 = t2.activation("x", 4), y2 = t2.activation("y", 4);
    t2.op(1, {}, {x2});
    t2.op(use, {x2});
    t2.op(1, {}, {y2});
    t2.op(1, {x2});
    const Graph g2 = t2.build();
    Plan plan2;
    plan2.actions = {action(kStore, g2, x2, 0), action(kDetach, g2, x2, 1), action(kPrefetch, g2, x2, 2)};
    const Walk r2 = walk(g2, machine(7), plan2);
    CHECK(r2.ops[2].start == Approx(room));
    CHECK(r2.total == Approx(room + 1 + 4 + 1));  // y's run, then x comes back, exposed
  }
}

TEST_CASE("walk: copies and memory-bound ops share HBM bandwidth max-min") {
  // Link 4 B/s of HBM 10 B/s. The op moves 60 B: alone 6 s. The copy (20 B) takes 4 B/s for 5 s, in
  // which the op gets 6 B/s = 30 B; the other 30 B at 10 B/s: 5 + 3.
  Toy t;
  const TensorId w = t.weight("w", 20);
  t.op(0, {});
  t.last().duration.reset();
  t.last().hbm_bytes = Bytes(60);
  t.op(1, {w});
  const Graph g = t.build();
  Hardware h = machine(100, 4);
  h.hbm_bandwidth = BytesPerSecond(10);
  Plan plan;
  plan.initial_pool = {w};
  plan.actions = {action(kPrefetch, g, w, -1)};
  const Walk r = walk(g, h, plan);
  CHECK(r.ops[0].end == Approx(5 + 3));
  CHECK(r.transfers[0].end == Approx(5));
  CHECK(ideal(g, h) == Approx(60 / 10.0 + 1));

  // A link faster than its equal share: both get 5 B/s until the copy is through.
  h.link_read.bandwidth = BytesPerSecond(50);
  const Walk fast = walk(g, h, plan);
  CHECK(fast.transfers[0].end == Approx(20 / 5.0));
  CHECK(fast.ops[0].end == Approx(4 + (60 - 20) / 10.0));
}

TEST_CASE("walk: a demand of 3 B/s beside a duration is only slowed when HBM runs short") {
  for (double hbm : {100.0, 7.0, 5.0}) {
    Toy t;
    const TensorId w = t.weight("w", 40);
    t.op(10, {});
    t.last().hbm_bytes = Bytes(30);
    t.op(0, {w});
    const Graph g = t.build();
    Hardware h = machine(100, 4);
    h.hbm_bandwidth = BytesPerSecond(hbm);
    Plan plan;
    plan.initial_pool = {w};
    plan.actions = {action(kPrefetch, g, w, -1)};
    const Walk r = walk(g, h, plan);
    // 5 B/s: 2.5 B/s each; the op ends after 12 s, the copy has moved 30 B and moves the rest alone.
    CHECK(r.ops[0].end == Approx(hbm >= 7 ? 10 : 30 / 2.5));
    CHECK(r.total == Approx(hbm >= 7 ? 10 : 12 + (40 - 30) / 4.0));
  }
}

TEST_CASE("walk: one queue per direction, opposite directions don't slow each other") {
  Toy t;
  const TensorId a = t.weight("a", 6), b = t.weight("b", 6), x = t.activation("x", 6),
                 y = t.activation("y", 1);
  t.op(0, {}, {x});
  t.op(20, {});
  t.op(1, {a, b});
  t.op(1, {x}, {y});
  const Graph g = t.build();
  Plan plan;
  plan.initial_pool = {a, b};
  plan.actions = {action(kPrefetch, g, a, -1), action(kPrefetch, g, b, -1), action(kStore, g, x, 0),
                  action(kDetach, g, x, 0), action(kPrefetch, g, x, 1)};
  const Walk r = walk(g, machine(100), plan);
  REQUIRE(r.transfers.size() == 4);
  std::vector<double> end(5);
  for (const TransferWalk& transfer : r.transfers) end[transfer.action] = transfer.end;
  CHECK(end[0] == Approx(6));
  CHECK(end[2] == Approx(6));
  CHECK(end[1] == Approx(12));
  CHECK(end[4] == Approx(20 + 6));
}

TEST_CASE("walk: one body repeated brings the next iteration's weight in this one") {
  // w is used by op0 only; between, it is away for 3 s of 4 and comes back in time.
  Toy t;
  const TensorId w = t.weight("w", 2), x = t.activation("x", 9);
  t.op(1, {w});
  t.op(1, {}, {x});
  t.op(2, {});
  const Graph g = t.build();
  Plan plan;
  plan.actions = {action(kStore, g, w, -1, IterationScope::kFirst), action(kDetach, g, w, 0),
                  action(kPrefetch, g, w, 1)};
  const Walk r = walk(g, machine(10), plan, 4);
  CHECK_FALSE(r.stuck);
  // First: the store takes 2 s, so x (9 B beside w's 2) waits until 2; the load starts when x is gone
  // (2 + 1) and ends at 5, as the iteration does. Then each iteration takes 4 s.
  CHECK(r.first_iteration == Approx(5));
  CHECK(r.last_iteration == Approx(4));
  CHECK(r.total == Approx(5 + 3 * 4));
}

TEST_CASE("walk: a long run jumps to its last iteration and lands where the full walk does") {
  Toy t;
  std::vector<TensorId> w;
  for (int i = 0; i < 5; ++i) w.push_back(t.weight("w" + std::to_string(i), 3 + i));
  for (int i = 0; i < 5; ++i) t.op(1.3, {w[i]});
  const Graph g = t.build();
  Plan plan;
  for (int i = 0; i < 5; ++i) {
    plan.initial_pool.push_back(w[i]);
    plan.actions.push_back(action(kPrefetch, g, w[i], i - 1));
    plan.actions.push_back(action(kDetach, g, w[i], i));
  }
  const FlatGraph flat(g, machine(12));
  const Walk slow = walk_plan(flat, plan, {1000, WalkRecord::kEverything, false});
  const Walk fast = walk_plan(flat, plan, {1000, WalkRecord::kLastIteration, false});
  CHECK(fast.total == Approx(slow.total).epsilon(1e-10));
  CHECK(fast.last_iteration == Approx(slow.last_iteration).epsilon(1e-10));
  CHECK(fast.hbm_peak == slow.hbm_peak);
  REQUIRE(fast.ops.size() == 5);
  CHECK(fast.ops.back().end == Approx(slow.ops.back().end).epsilon(1e-10));
}

TEST_CASE("walk: inputs are taken together, workspace while its op runs") {
  Toy t;
  const TensorId in = t.tensor("in", 3, TensorKind::kInput), x = t.activation("x", 4);
  t.op(1, {in}, {x});
  t.op(1, {x});
  t.last().workspace = Bytes(2);
  const Graph g = t.build();
  CHECK(walk(g, machine(100), Plan{}).hbm_peak == 3 + 4);
  CHECK(walk(g, machine(7), Plan{}, 3).total == Approx(6));
  const Walk r = walk(g, machine(6), Plan{});
  REQUIRE(r.stuck);
  CHECK(r.stuck->op == 0);
  CHECK(r.stuck->short_bytes == 1);
}

TEST_CASE("walk: pieces move one after another and reuse their own pool bytes") {
  Toy t;
  const TensorId w = t.tensor("w", 10, TensorKind::kKv);
  t.op(1, {w}, {w});
  t.op(20, {});
  const Graph g = t.build();
  Plan plan;
  const Action store = action(kStore, g, w, 0), detach = action(kDetach, g, w, 0),
               load = action(kPrefetch, g, w, 1);
  plan.actions = {piece(store, 0, 4), piece(detach, 0, 4), piece(store, 4, 7), piece(load, 0, 4)};
  const Walk r = walk(g, machine(10), plan, 3);
  CHECK_FALSE(r.stuck);
  CHECK(r.pool_peak == 7);                    // the second iteration's stores fill the bytes of the first's
  CHECK(r.last_iteration == Approx(21 + 4));  // the load starts at the iteration's end, the next op0 waits
}

TEST_CASE("walk: engines overlap, bound by data, an action waits for the write before its place") {
  Toy t;
  const TensorId x = t.activation("x", 4), y = t.activation("y", 4);
  t.op(3, {}, {x}, "compute");
  t.op(1, {}, {y}, "comm");
  t.op(1, {x, y}, {}, "comm");
  const Graph g = t.build();
  Plan plan;  // the store of x stands behind op1 (ends at 1), but x is written until 3
  plan.actions = {action(kStore, g, x, 1), action(kDetach, g, x, 1), action(kPrefetch, g, x, 1)};
  const Walk r = walk(g, machine(8), plan);
  CHECK(r.transfers[0].start == Approx(3));
  CHECK(r.ops.back().start == Approx(3 + 4 + 4));
}

TEST_CASE("walk: an op in the pool waits for the store of what it reads") {
  Toy t;
  const TensorId x = t.activation("x", 4), y = t.activation("y", 2);
  t.op(1, {}, {x});
  t.op(1, {x}, {y}, "host");
  t.last().memory = Tier::kPool;
  t.op(1, {y});
  const Graph g = t.build();
  Plan plan;
  plan.actions = {action(kStore, g, x, 0), action(kPrefetch, g, y, 1)};
  const Walk r = walk(g, machine(8), plan);
  CHECK(r.total == Approx(1 + 4 + 1 + 2 + 1));
  CHECK(r.pool_peak == 6);
}
