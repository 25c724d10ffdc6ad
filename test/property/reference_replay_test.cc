// The reference replay against closed forms: every expected time is a sum the test spells out, in
// microseconds. The toy's links move 1 B/us in and 0.5 B/us out.
#include "test/support/reference_replay.h"

#include <algorithm>

#include "sim/model/check.h"
#include "test/support/catch.h"
#include "test/support/reference_machine.h"
#include "test/support/toy.h"

using namespace hyperoffload;

namespace {

ReferenceResult replay(const Toy& toy, int iterations = 1) {
  const Graph graph = toy.graph();
  return reference_replay(graph, toy.plan, toy.hardware, iterations);
}

Approx us(double microseconds) { return Approx(microseconds * 1e-6).epsilon(1e-12).margin(1e-18); }
double start_of(const ReferenceResult& r, OpId op, int iteration = 0) {
  for (const ReferenceOp& o : r.ops)
    if (o.op == op && o.iteration == iteration) return static_cast<double>(o.start);
  return -1;
}
double end_of(const ReferenceResult& r, OpId op, int iteration = 0) {
  for (const ReferenceOp& o : r.ops)
    if (o.op == op && o.iteration == iteration) return static_cast<double>(o.end);
  return -1;
}
double start_of(const ReferenceTransfer& t) { return static_cast<double>(t.start); }
double end_of(const ReferenceTransfer& t) { return static_cast<double>(t.end); }
double seconds(const ReferenceResult& r) {
  return static_cast<double>(r.iteration_end.back() - r.iteration_start.back());
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

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

// --- memory ---

TEST_CASE("at one instant frees come first, then ops, then transfers") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId w = toy.weight(10, Tier::kPool), x = toy.activation(10);
  const OpId first = toy.op(5, {}, {});
  toy.at(first).workspace = Bytes(10);
  const OpId second = toy.op(7, {}, {x});  // wants the ten bytes the workspace leaves
  toy.prefetch(w, first);                  // so does this
  const OpId third = toy.op(1, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, second) == us(5));
  CHECK(start_of(r.transfers[0]) == us(5 + 7));  // x dies there
  CHECK(start_of(r, third) == us(5 + 7 + 10));
  CHECK(r.hbm_peak == Bytes(10));
}

TEST_CASE("what waits for room reserves nothing: a later op on another engine may take it") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId x = toy.activation(6), y = toy.activation(8), z = toy.activation(4);
  toy.op(5, {}, {x}, "compute");
  toy.op(20, {x}, {});                            // x lives until 25
  const OpId big = toy.op(1, {}, {y}, "comm");    // 8 > 10 - 6: waits from 0
  const OpId small = toy.op(9, {}, {z}, "host");  // 4 fit at once
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, small) == us(0));
  CHECK(start_of(r, big) == us(5 + 20));
}

TEST_CASE("bytes leave HBM at the later of the store's end and the last use, not before") {
  // The store takes 10 / 0.5 = 20 us from 4; the detach waits for it, the next birth for the detach.
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId x = toy.activation(10), y = toy.activation(10);
  const OpId make = toy.op(4, {}, {x});
  toy.store(x, make);
  const OpId use = toy.op(6, {x}, {});  // beside the store
  toy.detach(x, use);
  const OpId next = toy.op(2, {}, {y});
  toy.prefetch(x, next);
  const OpId last = toy.op(1, {x}, {});
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, use) == us(4));
  CHECK(start_of(r, next) == us(4 + 20));
  CHECK(start_of(r, last) == us(4 + 20 + 2 + 10));
  CHECK(r.pool_peak == Bytes(10));
  CHECK(r.hbm_to_pool == Bytes(10));
}

TEST_CASE("a store waits for pool room, a writer for the store of what it writes") {
  Toy toy;
  toy.hardware.pool_capacity = Bytes(10);
  const TensorId x = toy.activation(10), y = toy.activation(10);
  const OpId one = toy.op(2, {}, {x, y});
  toy.store(x, one);
  toy.store(y, one);                      // the pool is full until x has died
  const OpId two = toy.op(1, {x}, {});    // x's last access; its store ends at 2 + 20
  const OpId three = toy.op(1, {}, {y});  // writes y: waits for y's store as well
  toy.detach(y, two);
  toy.prefetch(y, two);
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, two) == us(2));
  CHECK(start_of(r.transfers[1]) == us(2 + 20));
  CHECK(start_of(r, three) == us(2 + 20 + 20 + 10));
  CHECK(r.seen.at("death waits for an action") == 1);
}

TEST_CASE("a pure write takes only the bytes that are missing and needs no old ones") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(10);
  const TensorId s = toy.tensor(TensorKind::kKv, 10);
  const OpId read = toy.op(2, {s}, {});
  toy.store(s, read).to = Bytes(4);
  toy.detach(s, read).to = Bytes(4);
  const OpId middle = toy.op(50, {}, {});
  const OpId write = toy.op(1, {}, {s});
  toy.at(middle).workspace = Bytes(4);
  const ReferenceResult r = replay(toy);
  CHECK(start_of(r, middle) == us(2 + 4 / 0.5));  // room for its workspace after the detach
  CHECK(start_of(r, write) == us(2 + 8 + 50));
  CHECK(r.hbm_peak == Bytes(10));
  CHECK(r.pool_peak == Bytes(4));
  CHECK(r.seen.at("pure write takes the missing bytes") == 1);
}

TEST_CASE("pool bytes stay a tensor's own: a later store of the same bytes takes none") {
  Toy toy;
  toy.hardware.pool_capacity = Bytes(10);
  const TensorId s = toy.tensor(TensorKind::kKv, 10);
  const OpId write = toy.op(1, {}, {s});
  toy.store(s, write);
  const ReferenceResult r = replay(toy, 3);
  REQUIRE_FALSE(r.stuck);
  CHECK(r.pool_peak == Bytes(10));
  // Each iteration's write waits for the last one's store: 1 + 20, then 1 + 20, ...
  CHECK(start_of(r, write, 2) == us(2 * (1 + 20.0)));
}

TEST_CASE("inputs are taken together at their iteration's start, or not at all") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(20);
  const TensorId a = toy.tensor(TensorKind::kInput, 6), b = toy.tensor(TensorKind::kInput, 6);
  const TensorId w = toy.weight(10, Tier::kPool);
  const OpId uses_inputs = toy.op(5, {a, b}, {});
  toy.prefetch(w, uses_inputs).scope = IterationScope::kFirst;  // fits once the inputs have died
  const OpId uses_weight = toy.op(1, {w}, {});
  const ReferenceResult once = replay(toy);
  CHECK(start_of(once, uses_weight) == us(5 + 10));
  CHECK(once.hbm_peak == Bytes(6 + 6));
  const ReferenceResult twice = replay(toy, 2);  // beside the weight one input has room, two have not
  CHECK(twice.stuck);
  CHECK(says(twice.waiting, "inputs wait"));
}

TEST_CASE("the next iteration's inputs wait for room, and no op of it starts before") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(12);
  const TensorId in = toy.tensor(TensorKind::kInput, 12);
  const TensorId w = toy.tensor(TensorKind::kKv, 6, Tier::kPool);
  const OpId uses_input = toy.op(5, {in}, {});
  toy.prefetch(w, uses_input);
  const OpId writes = toy.op(1, {w}, {w});
  toy.store(w, writes);  // 6 / 0.5 = 12 us, beyond the iteration's end
  toy.detach(w, writes);
  const ReferenceResult r = replay(toy, 2);
  const double first = 5 + 6 + 1;
  CHECK(static_cast<double>(r.iteration_start[1]) == us(first));
  CHECK(start_of(r, uses_input, 1) == us(first + 12));
  CHECK(seconds(r) == us(12 + first));
}

TEST_CASE("no op of an iteration starts before its inputs have room, whether it reads them or not") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(12);
  const TensorId in = toy.tensor(TensorKind::kInput, 12);
  const TensorId w = toy.tensor(TensorKind::kKv, 6, Tier::kPool);
  const OpId other = toy.op(1, {}, {}, "comm");
  const OpId uses_input = toy.op(5, {in}, {});
  toy.store(in).scope = IterationScope::kLater;  // waits for the input it stores
  toy.detach(in, uses_input).scope = IterationScope::kLater;
  toy.prefetch(w, uses_input);
  const OpId writes = toy.op(1, {w}, {w});
  toy.store(w, writes);
  toy.detach(w, writes);
  const ReferenceResult r = replay(toy, 2);
  const double inputs = 5 + 6 + 1 + 6 / 0.5;  // the store of w and its detach
  REQUIRE_FALSE(r.stuck);
  CHECK(start_of(r, other, 1) == us(inputs));
  CHECK(start_of(r, uses_input, 1) == us(inputs));
  CHECK(start_of(r.transfers[2]) == us(inputs));
  CHECK(start_of(r, writes, 1) == us(inputs + 12 / 0.5 + 6));  // the input's store, then the prefetch of w
}

TEST_CASE("an action on an input waits until the iteration's inputs have their bytes") {
  Toy toy;
  toy.hardware.hbm_capacity = Bytes(18);
  const TensorId in = toy.tensor(TensorKind::kInput, 12), w = toy.weight(12, Tier::kPool);
  const OpId uses_input = toy.op(5, {in}, {});
  const OpId uses_weight = toy.op(1, {w}, {});
  toy.op(2, {}, {});
  const auto front = [](Action& a) { a.to = Bytes(6); };
  const auto back = [](Action& a) { a.from = Bytes(6); };
  toy.store(in).scope = IterationScope::kLater;
  toy.detach(in, uses_input).scope = IterationScope::kLater;
  front(toy.prefetch(w, uses_input));
  back(toy.prefetch(w, uses_input));
  toy.plan.actions.back().scope = IterationScope::kFirst;
  back(toy.detach(w, uses_weight));
  back(toy.prefetch(w, uses_weight));  // 6 us into the next iteration; then the front's detach,
  front(toy.detach(w, uses_weight));   // for which the next inputs wait
  const ReferenceResult r = replay(toy, 2);
  const double inputs = 5 + 6 + 6 + 1 + 6;  // beyond the iteration's end, 2 us behind uses_weight
  REQUIRE_FALSE(r.stuck);
  CHECK(start_of(r, uses_input, 1) == us(inputs));
  CHECK(start_of(r.transfers[3]) == us(inputs));  // the input's store: 12 / 0.5 us, then it dies and
  CHECK(start_of(r, uses_weight, 1) == us(inputs + 24 + 6));  // the front has room
}

// --- HBM bandwidth ---

TEST_CASE("progressive filling: caps first, the rest in equal parts") {
  const auto flow = [](long double cap) {
    reference::Activity a;
    a.is_op = true;
    a.bytes_left = 1;
    a.cap = cap;
    return a;
  };
  std::vector<reference::Activity> flows{flow(1), flow(100), flow(4), flow(100)};
  share_bandwidth(flows, 20);
  CHECK(flows[0].rate == 1);
  CHECK(flows[2].rate == 4);
  CHECK(flows[1].rate == Approx((20 - 1 - 4) / 2.0));
  CHECK(flows[3].rate == flows[1].rate);
  share_bandwidth(flows, 8);  // 8 / 4 = 2 > 1; then 7 / 3 < 4
  CHECK(flows[0].rate == 1);
  CHECK(static_cast<double>(flows[1].rate) == Approx(7 / 3.0));
  CHECK(static_cast<double>(flows[2].rate) == Approx(7 / 3.0));
}

TEST_CASE("a kernel bound by HBM gives a copy what its link takes, and gets it back after") {
  // HBM 10 B/us; the copy moves 20 B at 2 B/us (link), the kernel at 8 B/us meanwhile.
  Toy toy;
  toy.hardware.hbm_bandwidth = BytesPerSecond(10e6);
  toy.hardware.link_read.bandwidth = BytesPerSecond(2e6);
  const TensorId w = toy.weight(20, Tier::kPool);
  toy.prefetch(w);
  const OpId kernel = toy.op(0, {}, {});
  toy.at(kernel).duration.reset();
  toy.at(kernel).hbm_bytes = Bytes(100);
  toy.op(1, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(end_of(r.transfers[0]) == us(20 / 2.0));
  CHECK(end_of(r, kernel) == us(10 + (100 - 8 * 10) / 10.0));
}

TEST_CASE("kernel and copy share equally when either could take more than half") {
  Toy toy;
  toy.hardware.hbm_bandwidth = BytesPerSecond(10e6);
  toy.hardware.link_read.bandwidth = BytesPerSecond(8e6);
  const TensorId w = toy.weight(40, Tier::kPool);
  toy.prefetch(w);
  const OpId kernel = toy.op(0, {}, {});
  toy.at(kernel).duration.reset();
  toy.at(kernel).hbm_bytes = Bytes(100);
  toy.op(1, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(end_of(r.transfers[0]) == us(40 / 5.0));
  CHECK(end_of(r, kernel) == us(8 + (100 - 5 * 8) / 10.0));
}

TEST_CASE("demand spread over a duration stretches only below its own rate") {
  // 40 B over 10 us = 4 B/us. A copy at 8 B/us beside it on HBM of 10 (6) B/us leaves it 5 -> 4 (3).
  for (const double hbm : {10.0, 6.0}) {
    Toy toy;
    toy.hardware.hbm_bandwidth = BytesPerSecond(hbm * 1e6);
    toy.hardware.link_read.bandwidth = BytesPerSecond(8e6);
    const TensorId w = toy.weight(30, Tier::kPool);
    toy.prefetch(w);
    const OpId kernel = toy.op(10, {}, {});
    toy.at(kernel).hbm_bytes = Bytes(40);
    toy.op(1, {w}, {});
    const ReferenceResult r = replay(toy);
    if (hbm == 10.0) {  // the copy gets 10 - 4 = 6
      CHECK(end_of(r.transfers[0]) == us(30 / 6.0));
      CHECK(end_of(r, kernel) == us(10));
    } else {  // both 3; then the kernel's last 10 B at its own 4
      CHECK(end_of(r.transfers[0]) == us(30 / 3.0));
      CHECK(end_of(r, kernel) == us(10 + (40 - 3 * 10) / 4.0));
    }
  }
}

TEST_CASE("latency loads no HBM, and computing runs on beside a slowed flow") {
  // HBM 4 B/us. Copy: 2 us latency, then 20 B. Kernel: 7 us of flops, 20 B.
  // 0-2: kernel alone 8 B; from 2 both at 2 B/us: its 12 B end at 2 + 6, after the flops.
  Toy toy;
  toy.hardware.hbm_bandwidth = BytesPerSecond(4e6);
  toy.hardware.link_read = {BytesPerSecond(100e6), Seconds(2e-6)};
  const TensorId w = toy.weight(20, Tier::kPool);
  toy.prefetch(w);
  const OpId kernel = toy.op(0, {}, {});
  toy.at(kernel).duration.reset();
  toy.at(kernel).flops = Flops(7e6);  // at 1e12 FLOP/s
  toy.at(kernel).hbm_bytes = Bytes(20);
  toy.op(1, {w}, {});
  const ReferenceResult r = replay(toy);
  CHECK(end_of(r, kernel) == us(2 + (20 - 4 * 2) / 2.0));
  CHECK(end_of(r.transfers[0]) == us(8 + (20 - 2 * 6) / 4.0));
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
  CHECK(seconds(r) == us(20 + 20));
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
  CHECK(seconds(r) == us(10 + 3));
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
