// Public cases of network and pool models gone wrong, each with the right value.
#include "sim/machine/placement.h"
#include "sim/model/yaml_reader.h"
#include "sim/report/metrics.h"
#include "test/machine/copies.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

// One NPU and one link, as a user would write them.
Hardware declared(const std::string& bandwidth, const std::string& latency, int npus = 1) {
  const std::string link = "{bandwidth: " + bandwidth + ", latency: " + latency + "}";
  return read_hardware(
      parse_yaml("name: case\nnpu: {count: " + std::to_string(npus) +
                     ", compute: 1TFLOPS, hbm: {capacity: 100TB, bandwidth: 100TB/s}}\nlink: {read: " + link +
                     ", write: " + link + "}\npool: {capacity: 1000TB}\n",
                 "case.yaml"));
}

double all_reduce_seconds(const Hardware& h, std::int64_t bytes) {
  GraphMaker m;
  m.op("c", 0_us, {}, {}, "comm");
  m.last().duration.reset();
  m.last().collective = Collective{"all-reduce", Bytes(bytes), "", {}};
  return total_seconds(simulate_ideal(m.build(), h));
}

Hardware with_peers(int npus, double bandwidth, double latency) {
  Hardware h = declared("100GB/s", "1us", npus);
  const LinkDirection link{BytesPerSecond(bandwidth), Seconds(latency)};
  h.peer = Peer{{link, link}, {link, link}};
  return h;
}

}  // namespace

TEST_CASE("case 34: a slow hop to the other socket shows in the largest stalls, hardly in the mean bandwidth") {
  // https://github.com/sgl-project/sglang/pull/11028: without NUMA binding P99 was 24 times the median.
  // 100 ops of C; the weights of every tenth are fetched, each from one op before. From the near socket B/N < C:
  // hidden. From the far one L + B/F > C: the op waits for the rest.
  constexpr int kOps = 100, kEach = 10;
  constexpr double kC = 100e-6, kNear = 50e9, kFar = 5e9, kLatency = 1e-6;
  constexpr std::int64_t kB = 1'000'000;
  GraphMaker m;
  Names names;
  for (int i = 0; i < kOps; ++i) {
    if (i % kEach != kEach - 1) {
      m.op("op" + std::to_string(i), Seconds(kC), {}, {});
      continue;
    }
    names.push_back("w" + std::to_string(i));
    m.weight(names.back(), kB).op("op" + std::to_string(i), Seconds(kC), {names.back()}, {});
  }
  Trace t{m.build(), {}};
  PlanMaker plan(t.graph);
  plan.initial_pool(names);
  for (int i = kEach - 1; i < kOps; i += kEach)
    plan.prefetch("w" + std::to_string(i), "op" + std::to_string(i - 2));
  t.plan = plan.build();
  Hardware h = machine(100_GB);
  h.nodes = Nodes{};
  h.nodes->count = 2;  // a "node" is a socket with its NPU
  h.socket_capacity = 1_GB;
  h.link_read = {BytesPerSecond(kNear), Seconds(kLatency)};
  h.link_far = Path{{BytesPerSecond(kFar), Seconds(kLatency)}, h.link_write};
  const auto result_with = [&](Placement placement) {
    h.placement = placement;
    h.pool_capacity = sockets_hold(h, sockets_in_reach(h));
    const RunRecord record = run(t, h), ideal = simulate_ideal(t.graph, h);
    RunOutcome outcome{t.graph, h, "graph"};
    outcome.record = &record;
    outcome.ideal = &ideal;
    return summarize(outcome);
  };
  const Result bound = result_with({Spread::kLocal, false, Bytes(0)});
  const Result unbound = result_with({Spread::kHash, true, Bytes(kB)});  // whole tensors, either socket
  const Pool pool(h, true, true);
  int far = 0;
  for (std::size_t i = 0; i < names.size(); ++i)
    far += pool.where({0, TensorId(i), Bytes(0), Bytes(kB)})[0].bin == 1;
  REQUIRE(far >= 2);
  REQUIRE(far <= 8);
  const double stall = kLatency + kB / kFar - kC;
  CHECK(bound.figures().per_op.max.value == 0);
  CHECK(unbound.figures().stall.value == exactly(far * stall));
  CHECK(unbound.figures().per_op.stalled_ops == far);
  CHECK(unbound.figures().per_op.max.value == exactly(stall));
  CHECK(unbound.figures().per_op.p99.value == exactly(stall));
  CHECK(unbound.figures().per_op.p99.value > 10 * unbound.figures().stall.value / kOps);  // the mean
  // The same bytes in nearly the same time.
  CHECK(unbound.figures().pool_to_hbm.bytes == bound.figures().pool_to_hbm.bytes);
  CHECK(unbound.figures().iteration.value < 1.1 * bound.figures().iteration.value);
}

TEST_CASE("case 50: an asynchronous copy takes its share of HBM from a kernel that HBM binds") {
  // https://github.com/NVIDIA/TransformerEngine/pull/2520: 900 of 4000 GB/s on a GH200 is 22.5 %.
  const auto kernel_seconds = [](double flops) {
    GraphMaker m;
    m.weight("w", 90'000'000'000).op("kernel", 0_us, {}, {});
    m.last().duration.reset();
    m.last().flops = Flops(flops);
    m.last().hbm_bytes = Bytes(4'000'000'000);
    m.op("last", 0_us, {"w"}, {});
    Trace t{m.build(), {}};
    t.plan = PlanMaker(t.graph).initial_pool({"w"}).prefetch("w", "").build();
    Hardware h = machine(100_GB);
    h.hbm_bandwidth = BytesPerSecond(4e12);
    h.link_read.bandwidth = BytesPerSecond(900e9);
    return run(t, h).npus[0].ops[0].end.value;
  };
  CHECK(kernel_seconds(0) == exactly(4e9 / ((1 - 0.225) * 4e12)));
  CHECK(kernel_seconds(2e9) == exactly(2e9 / 1e12));  // bound by compute: not slowed at all
}

TEST_CASE("case 53: a link of 1 Gb/s carries 125,000,000 bytes a second, not 115,476,190") {
  // https://github.com/simgrid/simgrid/issues/219
  CHECK(transfer_end(run(reads({125'000'000}), declared("1Gbps", "0us"))) == exactly(1));
}

TEST_CASE("case 54: 64 GB over 64 GB/s and 1 us take 1.000001 s, both ways at once too") {
  CHECK(transfer_end(run(reads({64'000'000'000}), declared("64GB/s", "1us"))) == exactly(1.000001));
  CHECK(transfer_end(run(reads({64'000'000'000}), declared("64GB/s", "100us"))) == exactly(1.0001));
  const RunRecord record = run(both_ways(64'000'000'000, 5), declared("64GB/s", "1us"));
  CHECK(transfer_end(record, 0, 0) == exactly(1.000001));
  CHECK(transfer_end(record, 0, 1) == exactly(1.000001));
}

TEST_CASE(
    "case 55: less bandwidth never makes a copy or an all-reduce faster, and far less makes it slower") {
  // https://github.com/simgrid/simgrid/issues/338
  double copy = 0, reduce = 0;
  for (const double rate : {100e9, 50e9, 10e9, 1e9, 1e6}) {
    Hardware h = with_peers(4, rate, 1e-6);
    h.link_read.bandwidth = BytesPerSecond(rate);
    const double copy_now = transfer_end(run(reads({1'000'000}), h)),
                 reduce_now = all_reduce_seconds(h, 1'000'000);
    CHECK(copy_now > copy);
    CHECK(reduce_now > reduce);
    copy = copy_now;
    reduce = reduce_now;
  }
  // Off the critical resource it changes nothing, to the last bit.
  Hardware h = with_peers(4, 100e9, 1e-6);
  const double before = all_reduce_seconds(h, 1'000'000);
  h.link_read.bandwidth = BytesPerSecond(1e6);
  CHECK(all_reduce_seconds(h, 1'000'000) == before);
}

TEST_CASE("case 56: 100 times 64 MiB over 10 Gb/s take 5.369 s at least") {
  // https://github.com/simgrid/simgrid/issues/341: 100 x 67,108,864 B x 8 / 1e10.
  const double bound = 100.0 * 67'108'864 * 8 / 1e10;
  CHECK(bound == Approx(5.369).epsilon(1e-4));
  const Trace trace = reads(std::vector<std::int64_t>(100, 67'108'864));
  CHECK(transfer_end(run(trace, declared("10Gbps", "0us")), 0, 99) == exactly(bound));
  CHECK(transfer_end(run(trace, declared("10Gbps", "1us")), 0, 99) == exactly(bound + 100e-6));
}

TEST_CASE("case 57: the eleventh NPU pays for its traffic like the first") {
  // https://github.com/simgrid/simgrid/issues/81
  Hardware h = with_peers(12, 10e9, 1e-6);
  const RunRecord record = run(reads({100'000'000}), h);
  for (std::size_t n = 0; n < 12; ++n) CHECK(transfer_end(record, n) == exactly(1e-6 + 1e8 / 100e9));
  CHECK(all_reduce_seconds(h, 1'200'000) == exactly(22 * (1e-6 + 1e5 / 10e9)));
  // A group whose ranks aren't there is timed, never free.
  GraphMaker m;
  m.op("c", 0_us, {}, {}, "comm");
  m.last().duration.reset();
  m.last().collective = Collective{"all-reduce", Bytes(4'000'000), "[0, 5, 900, 901]", {}};
  const RunRecord beyond = simulate_ideal(m.build(), h);
  CHECK(total_seconds(beyond, 5) == exactly(6 * (1e-6 + 1e6 / 10e9)));
}

TEST_CASE("case 58: nothing to move ends after the latency, nothing to compute at once, no latency is fine") {
  // https://github.com/simgrid/simgrid/issues/165, /87
  for (const double latency : {0.0, 1e-6}) {
    Hardware h = with_peers(2, 10e9, latency);
    h.link_read.latency = Seconds(latency);
    CHECK(transfer_end(run(reads({0}), h)) == latency);
    CHECK(transfer_end(run(reads({1000}), h)) == exactly(latency + 1000 / 100e9));
    CHECK(all_reduce_seconds(h, 0) == exactly(2 * latency));
    CHECK(all_reduce_seconds(h, 1) == exactly(2 * (latency + 0.5 / 10e9)));
  }
  GraphMaker m;
  m.op("nothing", 0_us, {}, {}).op("no flops", 0_us, {}, {});
  m.last().duration.reset();
  m.last().flops = Flops(0);
  m.last().hbm_bytes = Bytes(0);
  CHECK(total_seconds(simulate_ideal(m.build(), machine(), 1000)) == 0);
}

TEST_CASE("case 61: 4 us more latency a step cost a large all-reduce what they add up to") {
  // https://github.com/aliyun/SimAI/issues/67: 512 MB over 256 GPUs fell from 45.7 to 2.5 GB/s.
  const double p = 256, n = 512e6, rate = 50e9;
  const auto formula = [&](double latency) { return 2 * (p - 1) * (latency + n / p / rate); };
  const double fast = all_reduce_seconds(with_peers(256, rate, 2e-6), 512'000'000);
  const double slow = all_reduce_seconds(with_peers(256, rate, 6e-6), 512'000'000);
  CHECK(fast == exactly(formula(2e-6)));
  CHECK(slow == exactly(formula(6e-6)));
  CHECK(slow - fast == Approx(2 * (p - 1) * 4e-6).epsilon(1e-9));
  CHECK(slow < 1.1 * fast);
}
