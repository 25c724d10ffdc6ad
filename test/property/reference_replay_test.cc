// The reference replay against closed forms: transfers, engines, iterations, ops in the pool. Every
// expected time is a sum the test spells out. The toy's links move 1 B/us in and 0.5 B/us out.
#include <algorithm>

#include "sim/model/check.h"
#include "test/property/by_hand.h"

using namespace hyperoffload;

// --- transfers and what they hide ---

TEST_CASE("a reader starts when latency + bytes / bandwidth have passed") {
  Toy toy;
  toy.hardware.link_read.latency = Seconds(3e-6);
  const TensorId w = toy.weight(20, Tier::kPool);
  toy.prefetch(w);
  const OpId op = toy.op(5, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, op) == us(3 + 20 / 1.0));
  CHECK(end_of(r, op) == us(3 + 20 / 1.0 + 5));
  CHECK(static_cast<double>(r.transfers[0].flow_start) == us(3));
  CHECK(r.hbm_peak == Bytes(20));
  CHECK(r.pool_peak == Bytes(20));
  CHECK(r.pool_to_hbm == Bytes(20));
}

TEST_CASE("a prefetch as long as the op beside it stalls nothing, a longer one exactly the rest") {
  const double op_us = 10;
  for (const std::int64_t bytes : {5, 10, 15}) {
    Toy toy;
    const TensorId w = toy.weight(bytes, Tier::kPool);
    toy.prefetch(w);
    toy.op(op_us, {}, {});
    const OpId reader = toy.op(1, {w}, {});
    const double exposed = std::max(0.0, static_cast<double>(bytes) / 1.0 - op_us);
    CHECK(start_of(replay(toy), reader) == us(op_us + exposed));
  }
}

TEST_CASE("a transfer of no bytes takes its latency, an op of no time none") {
  Toy toy;
  toy.hardware.link_read.latency = Seconds(4e-6);
  const TensorId w = toy.weight(0, Tier::kPool);
  toy.prefetch(w);
  const OpId op = toy.op(0, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, op) == us(4));
  CHECK(end_of(r, op) == us(4));
}

TEST_CASE("a queue keeps file order: its head waits for its anchor and holds up what could go") {
  Toy toy;
  const TensorId a = toy.weight(2, Tier::kPool), b = toy.weight(3, Tier::kPool);
  const OpId first = toy.op(10, {}, {});
  toy.prefetch(a, first);
  toy.prefetch(b);
  const OpId last = toy.op(1, {a, b}, {});
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r.transfers[0]) == us(10));
  CHECK(start_of(r.transfers[1]) == us(10 + 2));
  CHECK(start_of(r, last) == us(10 + 2 + 3));
  CHECK(r.seen.at("the queue's head holds up another") == 1);
}

TEST_CASE("the two directions run at once") {
  Toy toy;
  const TensorId in = toy.weight(10, Tier::kPool), out = toy.weight(10);
  toy.prefetch(in);
  toy.store(out);
  toy.op(30, {}, {});
  const ReferenceResult r = replay(toy);
  CHECK(end_of(r.transfers[0]) == us(10 / 1.0));
  CHECK(end_of(r.transfers[1]) == us(10 / 0.5));
}

TEST_CASE("a pool port narrower than the link limits a copy") {
  Toy toy;
  toy.hardware.pool_read_port = BytesPerSecond(0.25e6);
  const TensorId w = toy.weight(10, Tier::kPool);
  toy.prefetch(w);
  const OpId op = toy.op(1, {w}, {});
  CHECK(start_of(replay(toy), op) == us(10 / 0.25));
}

// --- engines, iterations, the pool ---

TEST_CASE("engines overlap, bound by data, after and the order on each engine") {
  Toy toy;
  const TensorId x = toy.activation(1), y = toy.activation(1);
  const OpId a = toy.op(10, {}, {x}, "compute");
  const OpId b = toy.op(4, {}, {y}, "comm");     // beside a
  const OpId c = toy.op(3, {x}, {}, "comm");     // reads what a writes
  const OpId d = toy.op(2, {}, {y}, "compute");  // writes what b wrote: b ended long ago
  const OpId e = toy.op(1, {}, {}, "host");
  toy.at(e).after = {c};
  const ReferenceResult r = replay(toy, 2);
  CHECK(start_of(r, b) == us(0));
  CHECK(start_of(r, c) == us(10));
  CHECK(start_of(r, d) == us(10));
  CHECK(start_of(r, e) == us(10 + 3));
  CHECK(start_of(r, a, 1) == us(10 + 3 + 1));  // every op of the first iteration has ended
}

TEST_CASE("an action waits for its tensor's earlier accesses on other engines, not only for its anchor") {
  Toy toy;
  const TensorId x = toy.activation(10), w = toy.weight(10);
  const OpId write = toy.op(30, {}, {x}, "comm");
  const OpId read = toy.op(50, {w}, {}, "host");
  const OpId anchor = toy.op(1, {}, {});
  toy.store(w, anchor);   // beside the read: 1 to 21
  toy.detach(w, anchor);  // not before the read has ended at 50
  toy.prefetch(w, anchor);
  toy.store(x, anchor);  // not before the write has ended at 30
  const OpId last = toy.op(1, {x, w}, {}, "comm");
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r.transfers[0]) == us(1));
  CHECK(start_of(r.transfers[1]) == us(30));
  CHECK(start_of(r.transfers[2]) == us(50));
  CHECK(start_of(r, last) == us(50 + 10));
  CHECK(r.seen.at("detach waits for an access") == 1);
  (void)write, (void)read;
}

TEST_CASE("an action stands behind its tensor's previous one, however early its own anchor") {
  Toy toy;
  const TensorId w = toy.weight(10);
  const OpId first = toy.op(2, {w}, {});  // before both actions: waits for neither
  toy.store(w, first);
  toy.detach(w);  // no anchor, but behind the store
  toy.prefetch(w);
  const OpId second = toy.op(1, {w}, {});
  const ReferenceResult r = replay(toy);
  REQUIRE_FALSE(r.stuck);
  CHECK(start_of(r, first) == us(0));
  CHECK(start_of(r, second) == us(2 + 20 + 10));
}

TEST_CASE("a transfer for the next iteration counts pro rata in the last one") {
  // One weight, prefetched behind its use for the next iteration's; 30 B at 1 B/us, iterations of
  // 10 + 10 us: steady state 10 + 30 + ... the reader waits.
  Toy toy;
  const TensorId w = toy.tensor(TensorKind::kWeight, 30, Tier::kPool);
  toy.prefetch(w).scope = IterationScope::kFirst;
  const OpId use = toy.op(10, {w}, {});
  toy.detach(w, use);
  toy.prefetch(w, use);
  toy.op(10, {}, {});
  const ReferenceResult r = replay(toy, 3);
  // The copy starts at the use's end, 10 us before the iteration's: 20 B are left to wait for.
  CHECK(static_cast<double>(r.iteration_end[0]) == us(30 + 10 + 10));
  CHECK(static_cast<double>(r.iteration_end[1]) == us(50 + 20 + 20));
  CHECK(last_iteration_time(r) == us(20 + 20));
  CHECK(r.pool_to_hbm == Bytes(20 + 10));
  CHECK(end_of(r.transfers.back()) == us(130 - 10 + 30));  // runs on beyond the end
}

TEST_CASE("actions of the first and of later iterations stand where they say") {
  Toy toy;
  const TensorId w = toy.weight(5, Tier::kPool);
  toy.prefetch(w).scope = IterationScope::kFirst;
  const OpId use = toy.op(1, {w}, {});
  toy.detach(w, use).scope = IterationScope::kFirst;
  toy.prefetch(w, use).scope = IterationScope::kFirst;
  const ReferenceResult r = replay(toy, 3);
  CHECK(r.transfers.size() == 2);
  CHECK(start_of(r, use, 1) == us(5 + 1 + 5));
  CHECK(start_of(r, use, 2) == us(5 + 1 + 5 + 1));
}

TEST_CASE("an op in the pool reads and writes pool copies and takes pool bytes") {
  Toy toy;
  toy.hardware.pool_capacity = Bytes(30);
  const TensorId g = toy.tensor(TensorKind::kGradient, 10), w = toy.weight(10), x = toy.activation(4);
  const OpId backward = toy.op(3, {w}, {g});
  toy.store(g, backward);  // 20 us
  toy.store(w, backward);  // then 20 us more: what it writes must not be in HBM
  toy.detach(w, backward);
  const OpId step = toy.op(7, {g, w}, {w, x}, "host");
  toy.at(step).memory = Tier::kPool;
  toy.at(step).workspace = Bytes(6);
  toy.prefetch(w, step);
  const OpId next = toy.op(1, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, step) == us(3 + 20 + 20));
  CHECK(start_of(r, next) == us(3 + 40 + 7 + 10));
  CHECK(r.pool_peak == Bytes(10 + 10 + 4 + 6));
  CHECK(r.hbm_peak == Bytes(20));
}

TEST_CASE("the ideal run has all tensors everywhere, but engines and HBM as they are") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(1);
  toy.hardware.hbm_bandwidth = BytesPerSecond(10e6);
  const TensorId w = toy.weight(500, Tier::kPool), x = toy.activation(500);
  const OpId a = toy.op(0, {w}, {x}, "compute");
  const OpId b = toy.op(0, {w}, {}, "comm");
  const OpId c = toy.op(3, {x}, {}, "comm");
  for (const OpId o : {a, b}) {
    toy.at(o).duration.reset();
    toy.at(o).hbm_bytes = Bytes(50);
  }
  const Graph graph = toy.graph();
  const ReferenceResult r = reference_ideal(graph, toy.hardware, 2);
  CHECK(start_of(r, c) == us(2 * 50 / 10.0));
  CHECK(last_iteration_time(r) == us(10 + 3));
  CHECK(static_cast<double>(r.iteration_end[1]) == us(2 * 13.0));
}

TEST_CASE("two events less than a picosecond apart are one instant") {
  // The op's end frees, 0.5e-12 s after the copy's end: the head of the queue sees both at once.
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId w = toy.weight(4, Tier::kPool), v = toy.weight(6, Tier::kPool);
  const OpId op = toy.op(4 + 0.5e-6, {}, {});
  toy.at(op).workspace = Bytes(6);
  toy.prefetch(w);
  toy.prefetch(v);
  toy.op(1, {w, v}, {});
  const ReferenceResult r = replay(toy);
  CHECK(r.transfers[1].start == r.transfers[0].end);
  CHECK(r.ops[0].end == r.transfers[0].end);
}

// --- what can't go on, and what is wrong ---

TEST_CASE("a plan that can't go on says who waits for what") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(9);
  const TensorId w = toy.weight(10, Tier::kPool);
  toy.prefetch(w);
  toy.op(1, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(r.stuck);
  CHECK(says(r.waiting, "op \"op0\" waits for an action"));
  CHECK(says(r.waiting, "prefetch of \"t0\" (iteration 0, action 0) waits for room"));
}

TEST_CASE("what starts in HBM must fit there") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(12);
  toy.hardware.hbm_reserved = Bytes(3);
  toy.weight(10);
  toy.op(1, {}, {});
  CHECK(replay(toy).stuck);
  toy.plan.initial_pool = {TensorId(0)};
  CHECK_FALSE(replay(toy).stuck);
}

TEST_CASE("a plan that breaks a rule is no result") {
  Toy toy;
  const TensorId w = toy.weight(10);
  const OpId op = toy.op(1, {w}, {});
  SECTION("a prefetch of what is resident") { toy.prefetch(w, op); }
  SECTION("a detach without a copy") { toy.detach(w, op); }
  SECTION("a store of what has a copy") {
    toy.store(w, op);
    toy.store(w, op);
  }
  toy.op(100, {}, {});
  CHECK_THROWS_AS(replay(toy), CheckFailure);
}
