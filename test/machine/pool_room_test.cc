// Room in the pool: planner, checker and replay count the same bytes, on machines with rounding, sockets and
// several NPUs, so that what the checker accepts never gets stuck.
#include <algorithm>

#include "planner/planner.h"
#include "sim/machine/placement.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "test/machine/copies.h"
#include "test/support/random_plan.h"
#include "test/support/rng.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

constexpr Spread kSpreads[] = {Spread::kLocal, Spread::kStripe, Spread::kHash, Spread::kLoad};

// Two nodes of two NPUs and two sockets each.
Hardware two_nodes(Spread spread, std::int64_t socket, bool supernode = false, std::int64_t block = 100) {
  Hardware h = machine();
  h.npu_count = 4;
  h.nodes = Nodes{};
  h.nodes->count = h.nodes->npus = h.nodes->sockets = 2;
  h.socket_capacity = Bytes(socket);
  h.placement = {spread, supernode, Bytes(block)};
  h.pool_capacity = Bytes(4 * socket);
  return h;
}

PoolPiece piece(int npu, std::int64_t bytes, int tensor = 0) {
  return {npu, TensorId(tensor), Bytes(0), Bytes(bytes)};
}

bool fits(const Pool& pool, const PoolPiece& p) { return pool.fits({&p, 1}); }

Allocation random_allocation(Rng& rng) {
  return {Bytes(rng.one_of(std::vector<std::int64_t>{1, 64, 1000, 4096})), rng.chance(0.4)};
}

// A random machine with an NPU's share of the pool somewhere between too little and plenty for a plan that
// would take `peak` bytes of it if it could.
void random_pool(Hardware& h, std::int64_t peak, Rng& rng) {
  h.npu_count = rng.pick(1, 4);
  const auto share = std::max<std::int64_t>(1, rng.between(peak * 3 / 4, peak * 5 / 4 + 1));
  if (rng.chance(0.3)) {
    h.pool_capacity = Bytes(share * h.npu_count + rng.between(0, h.npu_count - 1));
    return;
  }
  h.nodes = Nodes{};
  h.nodes->count = h.nodes->npus = h.nodes->sockets = 2;
  h.placement = {kSpreads[rng.pick(0, 3)], rng.chance(0.5), Bytes(rng.one_of(std::vector<std::int64_t>{500, 3000}))};
  if (h.placement.spread == Spread::kLoad && rng.chance(0.5)) h.placement.block = Bytes(0);
  // In the first node as many NPUs as there are share its sockets.
  h.socket_capacity = Bytes(share * (h.placement.spread == Spread::kLocal ? 1 : std::min(h.npu_count, 2)) / 2 +
                            rng.between(0, 3));
  if (h.placement.spread == Spread::kLocal) h.socket_capacity = Bytes(share);
  h.pool_capacity = sockets_hold(h, sockets_in_reach(h));
  if (rng.chance(0.3)) h.pool_capacity = Bytes(h.pool_capacity.value * 9 / 10);
}

bool overlapping_pool_ops(const Graph& graph) {
  const auto& ops = graph.ops();
  return graph.engines().size() > 1 &&
         std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.memory == Tier::kPool; });
}

}  // namespace

TEST_CASE("what a socket has no room for goes on to the next ones in reach, never further") {
  for (const Spread spread : {Spread::kHash, Spread::kLoad})
    for (const std::int64_t block : {100, 0}) {
      if (spread == Spread::kHash && block == 0) continue;
      INFO(to_string(spread) << ", blocks of " << block);
      Pool pool(two_nodes(spread, 1000, false, block), true, false);
      CHECK_FALSE(fits(pool, piece(0, 2001)));
      const Extents first = pool.take(piece(0, 1500));
      CHECK(pool.used_in(0) + pool.used_in(1) == Bytes(1500));
      CHECK(fits(pool, piece(1, 500, 1)));
      const Extents second = pool.take(piece(1, 500, 1));
      CHECK(pool.used_in(0) == Bytes(1000));
      CHECK(pool.used_in(1) == Bytes(1000));
      CHECK(pool.used_in(2) + pool.used_in(3) == Bytes(0));
      CHECK_FALSE(fits(pool, piece(0, 1, 2)));
      CHECK(pool.shortage(piece(0, 1, 2)) == "the pool's sockets of node 0 are short of 1 B");
      Bytes lying;
      for (const Extent& e : first) lying += e.bytes;
      CHECK(lying == Bytes(1500));
      pool.give(piece(0, 1500), first);
      pool.give(piece(1, 500, 1), second);
      for (std::size_t b = 0; b < 4; ++b) CHECK(pool.used_in(b) == Bytes(0));
    }
}

TEST_CASE("what rounding adds takes room in sockets and moves nothing") {
  Hardware h = two_nodes(Spread::kHash, 1024);
  h.allocation = {Bytes(1), true};
  Pool pool(h, true, false);
  const Extents extents = pool.take(piece(0, 1025));  // 2048 of the node's 2048
  Bytes moved;
  for (const Extent& e : extents) moved += e.bytes;
  CHECK(moved == Bytes(1025));
  CHECK(pool.used_in(0) == Bytes(1024));
  CHECK(pool.used_in(1) == Bytes(1024));
  CHECK_FALSE(fits(pool, piece(1, 1, 1)));
}

TEST_CASE("an NPU whose plan counts on its share gets no more, and leaves the others theirs") {
  for (const Spread spread : kSpreads) {
    INFO(to_string(spread));
    const Hardware h = two_nodes(spread, 1000);
    CHECK(fair_pool(h) == Bytes(1000));  // a socket each, or half of two
    Pool pool(h, true, false);
    for (int n = 0; n < 4; ++n) pool.hold_to_share(n);
    for (int n : {3, 0, 2, 1}) {
      CHECK(fits(pool, piece(n, 1000, n)));
      pool.take(piece(n, 1000, n));
      CHECK_FALSE(fits(pool, piece(n, 1, 9)));
    }
  }
  Pool pool(two_nodes(Spread::kStripe, 1000), true, false);
  pool.hold_to_share(0);
  pool.take(piece(0, 1000));
  CHECK(pool.shortage(piece(0, 1, 1)) == "NPU 0's share of the pool is short of 1 B");
  CHECK(pool.most_for(0) == Bytes(1000));
  CHECK(pool.most_for(1) == Bytes(2000));
  CHECK(pool.left_for(1) == Bytes(1000));
}

TEST_CASE("two ranks' plans that wait for their share don't take each other's") {
  // The pool holds 2 x 1000 B. Rank 0 stores x (600 B), then y (600 B), which must wait until x has died at
  // "f". Held to no share it would take y's bytes at once, and rank 1 could store its z (1000 B) only later.
  GraphMaker a;
  a.activation("x", 600).activation("y", 600);
  a.op("a", 1_us, {}, {"x"}).op("b", 1_us, {}, {"y"}).op("c", 10_us, {}, {}).op("d", 1_us, {"x"}, {});
  a.op("e", 10_us, {}, {}).op("f", 1_us, {"y"}, {});
  Trace first{a.build(), {}};
  first.plan = PlanMaker(first.graph)
                   .store("x", "a")
                   .store("y", "b")
                   .detach("x", "a")
                   .prefetch("x", "c")
                   .detach("y", "d")
                   .prefetch("y", "d")
                   .build();
  GraphMaker b;
  b.activation("z", 1000).op("a", 5_us, {}, {"z"}).op("b", 10_us, {}, {}).op("c", 1_us, {"z"}, {});
  Trace second{b.build(), {}};
  second.plan = PlanMaker(second.graph).store("z", "a").detach("z", "a").prefetch("z", "a").build();
  Hardware h = machine();
  h.npu_count = 2;
  h.pool_capacity = Bytes(2000);
  for (const Trace* t : {&first, &second}) {
    const auto broken = check_plan(t->graph, t->plan, limits_of(h));
    INFO((broken.empty() ? "" : broken[0].message));
    CHECK(broken.empty());
  }
  const RunRecord record = run_ranks({first, second}, h);
  CHECK(record.npus[1].transfers[0].start.value == exactly(5e-6));  // at once
  // y's store waits for d's end, when x dies: x is back 0.6 us after c's end at 12 us, d takes 1 us.
  CHECK(record.npus[0].transfers[2].direction == Direction::kHbmToPool);
  CHECK(record.npus[0].transfers[2].start.value == exactly(13.6e-6));
  CHECK(record.pool_peak == Bytes(1600));
}

TEST_CASE("with rounding SimGrid holds what the checker counts, to the last byte") {
  // x takes 1024 of the pool, w 2048. A byte less and the checker says no.
  GraphMaker m;
  m.weight("w", 1025).activation("x", 1000);
  m.op("a", 1_us, {}, {"x"}).op("b", 10_us, {}, {}).op("c", 1_us, {"x", "w"}, {});
  Trace t{m.build(), {}};
  t.plan = PlanMaker(t.graph)
               .initial_pool({"w"})
               .store("x", "a")
               .detach("x", "a")
               .prefetch("w", "a")
               .prefetch("x", "b")
               .build();
  Hardware h = machine();
  h.allocation.power_of_two = true;
  h.pool_capacity = Bytes(3072);
  CHECK(check_plan(t.graph, t.plan, limits_of(h)).empty());
  CHECK(run(t, h).pool_peak == Bytes(3072));
  h.pool_capacity = Bytes(3071);
  const auto broken = check_plan(t.graph, t.plan, limits_of(h));
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].rule == "stuck");
  h.pool_capacity = Bytes(2047);
  const auto start = check_plan(t.graph, t.plan, limits_of(h));
  REQUIRE_FALSE(start.empty());
  CHECK(start[0].rule == "start-pool");
  CHECK(start[0].message.find("what starts in the pool takes 2048 B, 1 B more than its 2047 B") == 0);
}

TEST_CASE("no plan that the checker accepts gets stuck, whatever the pool's rounding, sockets and sharers") {
  int accepted = 0, refused = 0, waited = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    RandomCase c = random_case(seed);
    if (overlapping_pool_ops(c.graph)) continue;  // see check_stuck.h: charges leave out stores
    Rng rng(seed + 1'000'000);
    c.hardware.hbm_capacity = Bytes(1'000'000'000);
    c.hardware.pool_capacity = Bytes(1'000'000'000);
    c.hardware.allocation = random_allocation(rng);
    std::int64_t peak = 0;
    try {
      peak = simulate_plan(c.graph, c.plan, c.hardware, c.iterations).pool_peak.value;
    } catch (const InfeasibleError&) {
      continue;  // by the order of its queues
    }
    random_pool(c.hardware, peak, rng);
    INFO(describe(c) << "share " << fair_pool(c.hardware).value << ", " << c.hardware.npu_count << " NPUs, "
                     << to_string(c.hardware.placement.spread) << ", granularity "
                     << c.hardware.allocation.granularity.value
                     << (c.hardware.allocation.power_of_two ? ", powers of two" : ""));
    if (!check_plan(c.graph, c.plan, limits_of(c.hardware), c.iterations).empty()) {
      ++refused;
      continue;
    }
    ++accepted;
    try {
      const RunRecord record = simulate_plan(c.graph, c.plan, c.hardware, c.iterations);
      REQUIRE(record.pool_peak <= c.hardware.pool_capacity);
      REQUIRE(record.pool_requested_peak <= record.pool_peak);
      REQUIRE(record.pool_peak.value <= fair_pool(c.hardware).value * c.hardware.npu_count);
      waited += fair_pool(c.hardware).value < peak;
    } catch (const InfeasibleError& e) {
      FAIL("accepted, but: " << e.what());
    }
  }
  CHECK(accepted > 80);
  CHECK(refused > 60);
  CHECK(waited > 2);
}

TEST_CASE("plans for machines with rounding and sockets pass the checker and hold what they predict") {
  int planned = 0, moved = 0, impossible = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    RandomCase c = random_on_demand_case(seed);
    Rng rng(seed + 2'000'000);
    c.hardware.allocation = random_allocation(rng);
    random_pool(c.hardware, 3 * c.hardware.pool_capacity.value, rng);
    INFO(describe(c));
    PlanOutcome outcome;
    try {
      outcome = make_plan(c.graph, c.hardware, {c.iterations, 1, false});
    } catch (const InfeasibleError&) {
      ++impossible;
      continue;
    }
    ++planned;
    for (const Violation& v : check_plan(c.graph, outcome.plan, limits_of(c.hardware), c.iterations))
      FAIL(v.message);
    const RunRecord record = simulate_plan(c.graph, outcome.plan, c.hardware, c.iterations);
    moved += record.pool_peak > Bytes(0);
    // Until the last op's end; the planner's walk and the replay may start one more transfer in that instant.
    CHECK(record.pool_peak.value == outcome.plan.prediction->pool_peak.value * c.hardware.npu_count);
  }
  CHECK(planned > 60);
  CHECK(moved > 40);
  CHECK(impossible > 5);
}

TEST_CASE("resident says by how much the sockets are too small, with rounding") {
  // An op in the pool makes m (3000 B, 4096 allocated) on the NPU's own socket.
  GraphMaker m;
  m.tensor("m", 3000, TensorKind::kActivation).op("host", 1_us, {}, {"m"}, "host");
  m.last().memory = Tier::kPool;
  const Graph graph = m.build();
  Hardware h = two_nodes(Spread::kLocal, 4000);
  h.allocation.power_of_two = true;
  const RunRecord record = simulate_ideal(graph, h);
  CHECK(record.pool_peak == Bytes(4 * 4096));
  CHECK(record.pool_exceeded == Bytes(4 * 4096 - 16'000));  // in all it lacks more than one socket does
  h.socket_capacity = Bytes(4096);
  h.pool_capacity = Bytes(4 * 4096);
  CHECK(simulate_ideal(graph, h).pool_exceeded == Bytes(0));
}
