// What an NPU may have beside two copy directions and full speed: one transfer engine, a launch overhead,
// efficiency by kernel, priority of demand.
#include "sim/model/op_cost.h"
#include "test/machine/copies.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

Op roofline_op(double flops, std::int64_t bytes, const std::string& kernel = "") {
  Op op;
  op.name = "op";
  op.flops = Flops(flops);
  op.hbm_bytes = Bytes(bytes);
  op.kernel = kernel;
  return op;
}

// v is stored, w prefetched, both from the end of "a" on, 20 us each.
Trace both_ways() {
  GraphMaker m;
  m.weight("w", 20000).activation("v", 20000).activation("x", 1);
  m.op("a", 1_us, {}, {"v"}).op("b", 1_us, {}, {"x"}).op("c", 1_us, {"w"}, {}).op("d", 1_us, {"v"}, {});
  Trace t{m.build(), {}};
  t.plan = PlanMaker(t.graph)
               .initial_pool({"w"})
               .store("v", "a")
               .prefetch("w", "a")
               .detach("v", "b")
               .prefetch("v", "c")
               .build();
  return t;
}

}  // namespace

TEST_CASE("one transfer engine moves one thing at a time, whatever its direction") {
  Hardware h = machine(1_GB, 1_us);
  const RunRecord two = run(both_ways(), h);
  h.transfer_engines = 1;
  const RunRecord one = run(both_ways(), h);
  // Both are at the head of their queues at 1 us; the prefetch goes first, then the store.
  const double each = 1e-6 + 20e-6;
  CHECK(transfer_end(two, 0, 0) == exactly(1e-6 + each));
  CHECK(transfer_end(two, 0, 1) == exactly(1e-6 + each));
  CHECK(transfer_end(one, 0, 0) == exactly(1e-6 + each));
  CHECK(transfer_end(one, 0, 1) == exactly(1e-6 + 2 * each));
  CHECK(one.npus[0].transfers[0].direction == Direction::kPoolToHbm);
}

TEST_CASE("one transfer engine serves who came first") {
  GraphMaker m;
  m.weight("w1", 20000).weight("w2", 20000).activation("v", 20000);
  m.op("a", 5_us, {}, {"v"}).op("b", 50_us, {}, {}).op("c", 1_us, {"w1", "w2"}, {}).op("d", 1_us, {"v"}, {});
  Trace t{m.build(), {}};
  t.plan = PlanMaker(t.graph)
               .initial_pool({"w1", "w2"})
               .prefetch("w1", "")
               .store("v", "a")
               .prefetch("w2", "a")
               .detach("v", "b")
               .prefetch("v", "c")
               .build();
  Hardware h = machine();
  h.transfer_engines = 1;
  // w1 runs to 20 us; v has waited since 5 us, w2 comes to the head of its queue at 20 us.
  const auto& transfers = run(t, h).npus[0].transfers;
  CHECK(transfers[1].direction == Direction::kHbmToPool);
  CHECK(transfers[1].start.value == exactly(20e-6));
  CHECK(transfers[2].start.value == exactly(40e-6));
}

TEST_CASE("a launch overhead comes before every op the machine times, and leaves measured ones alone") {
  Hardware h = machine();  // 1e12 FLOP/s, 1e12 B/s
  h.launch_overhead = 5_us;
  CHECK(op_cost(roofline_op(1e7, 0), h).alone.value == exactly(5e-6 + 1e7 / 1e12));
  CHECK(op_cost(roofline_op(1e7, 30'000'000), h).alone.value == exactly(5e-6 + 3e7 / 1e12));
  Op measured = roofline_op(1e7, 0);
  measured.duration = 7_us;
  CHECK(op_cost(measured, h).alone.value == exactly(7e-6));
  GraphMaker m;
  for (const char* name : {"a", "b", "c"}) {
    m.op(name, 0_us, {}, {});
    m.last().duration.reset();
    m.last().flops = Flops(1e7);
    m.last().hbm_bytes = Bytes(30'000'000);
  }
  CHECK(total_seconds(simulate_ideal(m.build(), h)) == exactly(3 * (5e-6 + 3e7 / 1e12)));
}

TEST_CASE("an efficiency holds for its kernel only, and lowers what the kernel asks of HBM") {
  Hardware h = machine();
  h.efficiency["attention"] = {0.65, 0.84};
  CHECK(op_cost(roofline_op(1e9, 1000), h).alone.value == exactly(1e9 / 1e12));
  CHECK(op_cost(roofline_op(1e9, 1000, "attention"), h).alone.value == exactly(1e9 / 0.65e12));
  const OpCost bound_by_hbm = op_cost(roofline_op(1, 1'000'000'000, "attention"), h);
  CHECK(bound_by_hbm.alone.value == exactly(1e9 / 0.84e12));
  CHECK(bound_by_hbm.hbm_rate_cap.value == exactly(0.84e12));
}

TEST_CASE("an efficient kernel leaves HBM to a copy beside it") {
  // H = 4000 B/us, a kernel that reaches half of it, a copy at 900: nobody is slowed.
  GraphMaker m;
  m.weight("w", 9'000'000).op("k", 0_us, {}, {});
  m.last().duration.reset();
  m.last().hbm_bytes = Bytes(4'000'000);
  m.last().kernel = "attention";
  m.op("last", 0_us, {"w"}, {});
  Trace t{m.build(), {}};
  t.plan = PlanMaker(t.graph).initial_pool({"w"}).prefetch("w", "").build();
  Hardware h = machine();
  h.hbm_bandwidth = BytesPerSecond(4e9);
  h.link_read.bandwidth = BytesPerSecond(900e6);
  h.efficiency["attention"] = {1, 0.5};
  for (bool shortcuts : {true, false}) {
    const RunRecord record = run(t, h, shortcuts);
    CHECK(record.npus[0].ops[0].end.value == exactly(4e6 / 2e9));
    CHECK(transfer_end(record) == exactly(9e6 / 900e6));
  }
}

namespace {

// NPU 0 waits for w; NPU 1 fetches as much for later while it computes. Both through one port of 1 GB/s.
RunRecord demand_and_prefetch(double demand, double prefetch) {
  GraphMaker waits, computes;
  waits.weight("w", 100'000).op("use", 1_us, {"w"}, {});
  computes.weight("w", 100'000).op("long", Seconds(1e-3), {}, {}).op("use", 1_us, {"w"}, {});
  std::vector<Trace> traces;
  for (GraphMaker* m : {&waits, &computes}) {
    Trace t{m->build(), {}};
    t.plan = PlanMaker(t.graph).initial_pool({"w"}).prefetch("w", "").build();
    traces.push_back(t);
  }
  Hardware h = machine();
  h.npu_count = 2;
  h.pool_read_port = BytesPerSecond(1e9);
  h.priority = {demand, prefetch};
  return run_ranks(traces, h);
}

}  // namespace

TEST_CASE("case 60: priority decides who waits, never how much gets through") {
  // https://github.com/tenstorrent/tt-metal/pull/57224. B = 100 kB each, W = 1 GB/s.
  const double both = 200e3 / 1e9;
  // Equal weights: both run at W/2 to the end, whatever the value.
  for (double weight : {1.0, 5.0}) {
    const RunRecord equal = demand_and_prefetch(weight, weight);
    CHECK(transfer_end(equal, 0) == exactly(both));
    CHECK(transfer_end(equal, 1) == exactly(both));
  }
  // 4 : 1: the op that waits gets 0.8 W, then the prefetch all; the last byte comes at the same time.
  const RunRecord weighed = demand_and_prefetch(4, 1);
  CHECK(transfer_end(weighed, 0) == exactly(100e3 / 0.8e9));
  CHECK(transfer_end(weighed, 1) == exactly(both));
  const RunRecord reversed = demand_and_prefetch(1, 4);
  CHECK(transfer_end(reversed, 1) == exactly(100e3 / 0.8e9));
  CHECK(transfer_end(reversed, 0) == exactly(both));
}

TEST_CASE("a prefetch becomes demand when an op comes to wait for it") {
  // NPU 1's op begins to wait at 50 us; until then it gets 1/5, then as much as NPU 0's.
  GraphMaker waits, later;
  waits.weight("w", 100'000).op("use", 1_us, {"w"}, {});
  later.weight("w", 100'000).op("short", 50_us, {}, {}).op("use", 1_us, {"w"}, {});
  std::vector<Trace> traces;
  for (GraphMaker* m : {&waits, &later}) {
    Trace t{m->build(), {}};
    t.plan = PlanMaker(t.graph).initial_pool({"w"}).prefetch("w", "").build();
    traces.push_back(t);
  }
  Hardware h = machine();
  h.npu_count = 2;
  h.pool_read_port = BytesPerSecond(1e9);
  h.priority = {4, 1};
  const RunRecord record = run_ranks(traces, h);
  // NPU 0 has 40 kB by 50 us and needs 60 kB more at W/2.
  CHECK(transfer_end(record, 0) == exactly(50e-6 + 60e3 / 0.5e9));
  CHECK(transfer_end(record, 1) == exactly(200e-6));
}
