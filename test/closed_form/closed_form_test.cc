// The machine against formulas, each to 1e-9 relative. B: bytes, W: bandwidth, L: latency, C: compute time.
#include "test/support/catch.h"
#include "test/support/simulate.h"
#include "test/support/tiny.h"

using namespace hyperoffload;
using namespace hyperoffload::tiny;

namespace {

Approx exactly(double value) { return Approx(value).epsilon(1e-9).margin(0); }

// Two ops of C each; w (B bytes, in the pool) is read by the second, its prefetch starts with the first.
Graph two_ops(Seconds compute, std::int64_t bytes) {
  return GraphMaker()
      .weight("w", bytes)
      .activation("x", 1)
      .activation("y", 1)
      .op("a", compute, {}, {"x"})
      .op("b", compute, {"x", "w"}, {"y"})
      .build();
}

double run_with_prefetch(Seconds compute, std::int64_t bytes, const Hardware& hardware) {
  const Graph graph = two_ops(compute, bytes);
  const Plan plan = PlanMaker(graph).initial_pool({"w"}).prefetch("w", "").build();
  return total_seconds(simulate_plan(graph, plan, hardware));
}

}  // namespace

TEST_CASE("one transfer takes latency + bytes / bandwidth") {
  const Graph graph =
      GraphMaker().weight("w", 64'000'000'000).activation("x", 1).op("a", 1_us, {"w"}, {"x"}).build();
  Hardware hardware = machine(Bytes(100'000'000'000), 1.7_us);
  hardware.link_read.bandwidth = BytesPerSecond(64e9);
  const Plan plan = PlanMaker(graph).initial_pool({"w"}).prefetch("w", "").build();
  const RunRecord record = simulate_plan(graph, plan, hardware);
  CHECK(record.npus[0].transfers[0].end.value == exactly(1.7e-6 + 64e9 / 64e9));
  CHECK(total_seconds(record) == exactly(1.7e-6 + 64e9 / 64e9 + 1e-6));
}

TEST_CASE("a prefetch that compute hides stalls 0") {
  // L + B/W = 1 + 8 us < C = 10 us
  CHECK(run_with_prefetch(10_us, 8000, machine(1_GB, 1_us)) == exactly(2 * 10e-6));
}

TEST_CASE("a prefetch half hidden exposes exactly the rest") {
  // L + B/W - C = 1 + 19 - 10 us
  CHECK(run_with_prefetch(10_us, 19000, machine(1_GB, 1_us)) == exactly(2 * 10e-6 + (1e-6 + 19e-6 - 10e-6)));
}

TEST_CASE("opposite directions together cost no more than one") {
  // While "b" runs, v is stored and w is prefetched, 20 us each.
  const Graph graph = GraphMaker()
                          .weight("w", 20000)
                          .activation("v", 20000)
                          .activation("x", 1)
                          .activation("y", 1)
                          .op("a", 1_us, {}, {"v"})
                          .op("b", 1_us, {}, {"x"})
                          .op("c", 1_us, {"w"}, {"y"})
                          .op("d", 1_us, {"v"}, {})
                          .build();
  const Plan plan = PlanMaker(graph)
                        .initial_pool({"w"})
                        .store("v", "a")
                        .prefetch("w", "a")
                        .detach("v", "b")
                        .prefetch("v", "c")
                        .build();
  const RunRecord record = simulate_plan(graph, plan, machine());
  const auto& transfers = record.npus[0].transfers;
  CHECK(transfers[0].end.value == exactly(1e-6 + 20e-6));
  CHECK(transfers[1].end.value == exactly(1e-6 + 20e-6));
}

TEST_CASE("two NPUs on one pool port get half each, on private links all") {
  // B = 64000, W = 1000 B/us: 64 us alone.
  Hardware hardware = machine();
  hardware.npu_count = 2;
  CHECK(run_with_prefetch(1_us, 64000, hardware) == exactly(64e-6 + 1e-6));
  hardware.pool_read_port = BytesPerSecond(1e9);
  CHECK(run_with_prefetch(1_us, 64000, hardware) == exactly(2 * 64e-6 + 1e-6));
}

TEST_CASE("roofline: the later of compute and HBM traffic") {
  const auto run = [](double flops, std::int64_t bytes) {
    GraphMaker m;
    m.op("k", 0_us, {}, {});
    m.last().duration.reset();
    m.last().flops = Flops(flops);
    m.last().hbm_bytes = Bytes(bytes);
    return total_seconds(simulate_ideal(m.build(), machine()));  // 1e12 FLOP/s, 1e12 B/s
  };
  CHECK(run(3e9, 2'000'000'000) == exactly(3e9 / 1e12));
  CHECK(run(1e9, 2'000'000'000) == exactly(2e9 / 1e12));
}

TEST_CASE("a kernel beside a copy slows only when HBM binds it") {
  // H = 4000 B/us of HBM, a copy at W = 900 B/us all the while: the kernel gets H - W (TransformerEngine PR
  // 2520).
  const auto kernel_time = [](double flops, std::int64_t bytes) {
    GraphMaker m;
    m.weight("w", 9'000'000).op("k", 0_us, {}, {});
    m.last().duration.reset();
    m.last().flops = Flops(flops);
    m.last().hbm_bytes = Bytes(bytes);
    m.op("last", 0_us, {"w"}, {});
    const Graph graph = m.build();
    Hardware hardware = machine();
    hardware.hbm_bandwidth = BytesPerSecond(4e9);
    hardware.link_read.bandwidth = BytesPerSecond(900e6);
    const Plan plan = PlanMaker(graph).initial_pool({"w"}).prefetch("w", "").build();
    return simulate_plan(graph, plan, hardware).npus[0].ops[0].end.value;
  };
  CHECK(kernel_time(0, 4'000'000) == exactly(4e6 / (4e9 - 900e6)));  // 22.5 % of the rate is gone
  CHECK(kernel_time(2e9, 4'000'000) == exactly(2e9 / 1e12));         // 2 ms of compute, 1.29 ms of HBM
}

TEST_CASE("demand beside a duration is spread over it: slowed by what HBM lacks") {
  // 10 ms asking for 3.6 of 4 GB/s, beside a copy at 0.9: it gets 3.1, max-min fair.
  GraphMaker m;
  m.weight("w", 90'000'000).op("k", Seconds(10e-3), {}, {});
  m.last().hbm_bytes = Bytes(36'000'000);
  m.op("last", 0_us, {"w"}, {});
  const Graph graph = m.build();
  Hardware hardware = machine();
  hardware.hbm_bandwidth = BytesPerSecond(4e9);
  hardware.link_read.bandwidth = BytesPerSecond(900e6);
  const Plan plan = PlanMaker(graph).initial_pool({"w"}).prefetch("w", "").build();
  CHECK(simulate_plan(graph, plan, hardware).npus[0].ops[0].end.value == exactly(36e6 / 3.1e9));
}

TEST_CASE("all of it again from t = 10 s on") {
  const Graph graph = GraphMaker()
                          .weight("w", 19000)
                          .activation("x", 1)
                          .activation("y", 1)
                          .activation("z", 1)
                          .op("warm", 10_s, {}, {"z"})
                          .op("a", 10_us, {}, {"x"})
                          .op("b", 10_us, {"x", "w"}, {"y"})
                          .build();
  const Plan plan = PlanMaker(graph).initial_pool({"w"}).prefetch("w", "warm").build();
  const RunRecord record = simulate_plan(graph, plan, machine(1_GB, 1_us));
  const auto& ops = record.npus[0].ops;
  // Relative to the times since t = 10 s, whose doubles are 1.8e-15 s apart.
  CHECK(ops[1].end.value - 10 == Approx(10e-6).epsilon(1e-9));
  CHECK(ops[2].start.value - 10 == Approx(1e-6 + 19e-6).epsilon(1e-9));
  CHECK(record.npus[0].transfers[0].end.value - 10 == Approx(1e-6 + 19e-6).epsilon(1e-9));
}

TEST_CASE("20,000 iterations of 3 us don't drift") {
  const Graph graph =
      GraphMaker().activation("x", 1).op("a", 1_us, {}, {"x"}).op("b", 2_us, {"x"}, {}).build();
  const RunRecord record = simulate_ideal(graph, machine(), 20000);
  CHECK(total_seconds(record) == exactly(20000 * 3e-6));
  const auto& npu = record.npus[0];
  CHECK((npu.iteration_end.back() - npu.iteration_start.back()).value == exactly(3e-6));
}

TEST_CASE("on_demand stores what an op in the pool needs there, and loads it back for the next reader") {
  // a (10 us) makes g (1000 B). The host's op updates the state m (2000 B) with g; both start, or are made, in
  // HBM: g is stored, m is stored and given up, one after another, L + B/W each. c waits for m: L + B/W.
  const Graph graph = [] {
    GraphMaker m;
    m.activation("g", 1000).tensor("m", 2000, TensorKind::kOptimizer);
    m.op("a", 10_us, {}, {"g"}).op("update", 5_us, {"g", "m"}, {"m"}, "host");
    m.last().memory = Tier::kPool;
    m.op("c", 1_us, {"m"}, {});
    return m.build();
  }();
  const double latency = 2e-6, rate = 1e9;
  const Hardware hardware = machine(1_GB, 2_us);
  const RunRecord record = simulate_on_demand(graph, hardware);
  const auto& npu = record.npus[0];
  const double stored = 10e-6 + (latency + 1000 / rate) + (latency + 2000 / rate), updated = stored + 5e-6;
  REQUIRE(npu.transfers.size() == 3);
  CHECK(npu.transfers[0].end.value == exactly(10e-6 + latency + 1000 / rate));
  CHECK(npu.transfers[1].end.value == exactly(stored));
  CHECK(npu.ops[1].start.value == exactly(stored));
  CHECK(npu.transfers[2].direction == Direction::kPoolToHbm);
  CHECK(npu.transfers[2].start.value == exactly(updated));
  CHECK(total_seconds(record) == exactly(updated + latency + 2000 / rate + 1e-6));
  CHECK(record.pool_peak == Bytes(3000));
  // The next iteration starts with m in HBM, its pool copy valid since the update: only given up, not stored.
  const RunRecord two = simulate_on_demand(graph, hardware, 2);
  const double second = 10e-6 + (latency + 1000 / rate) + 5e-6 + (latency + 2000 / rate) + 1e-6;
  CHECK(total_seconds(two) == exactly(total_seconds(record) + second));
}
