// Exact shortcuts against the run without them: every socket a link of its own, every op's HBM demand a flow,
// no link left out.
#include <random>

#include "sim/machine/hbm_use.h"
#include "test/machine/copies.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

// A random trace of kernels (bound by compute, by HBM, or of a fixed duration with demand) and copies both
// ways.
Trace random_trace(std::uint64_t seed, bool engines) {
  std::mt19937_64 random(seed);
  const auto pick = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  constexpr int kOps = 12;
  GraphMaker m;
  Names weights;
  for (int i = 0; i < kOps; ++i) {
    weights.push_back("w" + std::to_string(i));
    m.weight(weights.back(), pick(1'000'000, 9'000'000));
  }
  for (int i = 0; i < kOps; ++i) {
    const std::string engine = engines && i % 3 == 2 ? "comm" : "compute";
    m.op("op" + std::to_string(i), Seconds(1e-6 * static_cast<double>(pick(20, 200))),
         {weights[static_cast<std::size_t>(i)]}, {}, engine);
    m.last().hbm_bytes = Bytes(pick(0, 300'000'000));
    if (pick(0, 1)) {
      m.last().duration.reset();
      m.last().flops = Flops(static_cast<double>(pick(1, 100)) * 1e9);
    }
  }
  Trace trace{m.build(), {}};
  PlanMaker plan(trace.graph);
  for (int i = 0; i < kOps; ++i)
    if (i % 4 == 3) plan.store(weights[static_cast<std::size_t>(i)], "");
  Names pool;
  for (int i = 0; i < kOps; ++i)
    if (i % 4 != 3) pool.push_back(weights[static_cast<std::size_t>(i)]);
  plan.initial_pool(pool);
  for (int i = 0; i < kOps; ++i)
    if (i % 4 != 3)
      plan.prefetch(weights[static_cast<std::size_t>(i)], i < 3 ? "" : "op" + std::to_string(i - 3));
  trace.plan = plan.build();
  return trace;
}

void check_same(const RunRecord& a, const RunRecord& b) {
  REQUIRE(a.npus.size() == b.npus.size());
  for (std::size_t n = 0; n < a.npus.size(); ++n) {
    REQUIRE(a.npus[n].ops.size() == b.npus[n].ops.size());
    REQUIRE(a.npus[n].transfers.size() == b.npus[n].transfers.size());
    for (std::size_t i = 0; i < a.npus[n].ops.size(); ++i)
      CHECK(a.npus[n].ops[i].end.value == exactly(b.npus[n].ops[i].end.value));
    for (std::size_t i = 0; i < a.npus[n].transfers.size(); ++i)
      CHECK(a.npus[n].transfers[i].end.value == exactly(b.npus[n].transfers[i].end.value));
  }
}

std::vector<Trace> random_ranks(int count, std::uint64_t seed, bool engines) {
  std::vector<Trace> traces;
  for (int n = 0; n < count; ++n)
    traces.push_back(random_trace(seed + static_cast<std::uint64_t>(n), engines));
  return traces;
}

}  // namespace

TEST_CASE("a node's sockets as one bin are exactly its four sockets, for uneven dies") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Hardware h = preset("cloudmatrix384");
    h.npu_count = 20;
    const std::vector<Trace> traces = random_ranks(20, 100 * seed, seed % 2 == 0);
    check_same(run_ranks(traces, h), run_ranks(traces, h, false));
  }
}

TEST_CASE("all sockets of the supernode as one bin are exactly its sockets, for uneven dies") {
  Hardware h = preset("cloudmatrix384");
  h.nodes->count = 3;
  h.npu_count = 40;
  h.placement.supernode = true;
  h.pool_capacity = Bytes(sockets_in_reach(h) * h.socket_capacity->value);
  const std::vector<Trace> traces = random_ranks(40, 7, false);
  check_same(run_ranks(traces, h), run_ranks(traces, h, false));
}

TEST_CASE("with an oversubscribed second level a node's sockets still fold") {
  Hardware h = preset("cloudmatrix384");
  h.nodes->count = 2;
  h.npu_count = 24;
  h.placement.supernode = true;
  h.nodes->second_level = BytesPerSecond(300e9);
  h.pool_capacity = Bytes(sockets_in_reach(h) * h.socket_capacity->value);
  const std::vector<Trace> traces = random_ranks(24, 70, false);
  check_same(run_ranks(traces, h), run_ranks(traces, h, false));
}

TEST_CASE("ops whose HBM flow can't matter need none") {
  // Links from 3 to 60 % of HBM: at the upper end copies are not free and nothing is left out.
  for (const double share : {0.03, 0.1, 0.2, 0.34, 0.6})
    for (const bool engines : {false, true}) {
      INFO("links with " << share << " of HBM" << (engines ? ", two engines" : ""));
      Hardware h = machine(100_GB, 1_us);
      h.hbm_bandwidth = BytesPerSecond(1.6e12);
      h.link_read.bandwidth = h.link_write.bandwidth = BytesPerSecond(1.6e12 * share);
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const Trace trace = random_trace(seed, engines);
        check_same(run(trace, h), run(trace, h, false));
      }
    }
}

TEST_CASE("which ops need an HBM flow") {
  // H = 1000 B/us, copies of 100 each: 800 are sure to be left.
  Hardware h = machine();
  h.hbm_bandwidth = BytesPerSecond(1e9);
  h.link_read.bandwidth = h.link_write.bandwidth = BytesPerSecond(1e8);
  GraphMaker m;
  m.op("demand of 800", 10_us, {}, {});
  m.last().hbm_bytes = Bytes(8000);
  m.op("demand of 801", 10_us, {}, {});
  m.last().hbm_bytes = Bytes(8010);
  m.op("none", 10_us, {}, {});
  const auto quiet_of = [&](const Graph& graph) {
    std::vector<OpCost> costs;
    for (const Op& op : graph.ops()) costs.push_back(local_cost(op, h));
    return hbm_use(graph, costs, h);
  };
  const HbmUse use = quiet_of(m.build());
  CHECK(use.quiet == std::vector<char>{1, 0, 1});
  CHECK_FALSE(use.idle);
  m.op("other engine", 10_us, {}, {}, "comm");  // its 1000 leave nothing sure
  m.last().hbm_bytes = Bytes(10'000);
  CHECK(quiet_of(m.build()).quiet == std::vector<char>{0, 0, 1, 0});
  h.priority.demand = 2;
  CHECK(quiet_of(m.build()).quiet == std::vector<char>{0, 0, 1, 0});
}
