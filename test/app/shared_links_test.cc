// `graph` where collectives take part of the link that a plan counts on.
#include "app/shared_links.h"

#include "app/evaluate.h"
#include "test/support/catch.h"
#include "test/support/tiny.h"

using namespace hyperoffload;
using namespace hyperoffload::tiny;

namespace {

constexpr double kRate = 50e9;  // B/s of port, link and peer

// Two NPUs; HBM for three tensors, each of which the link alone loads in 8 ms.
constexpr std::int64_t kWeight = 400'000'000;
Hardware two_npus() {
  Hardware h;
  h.name = "two";
  h.npu_count = 2;
  h.compute = FlopsPerSecond(1e12);
  h.hbm_capacity = Bytes(3 * kWeight);
  h.hbm_bandwidth = BytesPerSecond(1.6e12);
  const LinkDirection link{BytesPerSecond(kRate), Seconds(0)};
  h.link_read = h.link_write = link;
  h.npu_port = BytesPerSecond(kRate);
  h.peer = Peer{{link, link}, {link, link}};
  h.pool_capacity = Bytes(1'000'000'000'000);
  return h;
}

// Four ops of 10 ms, the first with an input, the others with a weight each, the last one's in the pool; beside
// an all-gather that takes the port for so long.
Graph beside_a_collective(double seconds) {
  GraphMaker m;
  m.input("w0", kWeight).weight("w1", kWeight).weight("w2", kWeight).weight("w3", kWeight).in_pool();
  for (const std::string n : {"0", "1", "2", "3"}) m.op("op" + n, Seconds(0.01), {"w" + n}, {});
  m.op("gather", Seconds(0), {}, {}, "comm");
  m.last().duration.reset();
  m.last().collective = Collective{"all-gather", Bytes(static_cast<std::int64_t>(2 * seconds * kRate)), "", {}};
  return m.build();
}

Result of(const std::string& policy, double collective = 0.03) {
  const Graph graph = beside_a_collective(collective);
  const Hardware hardware = two_npus();
  return evaluate({graph, hardware}, parse_policy(policy, "--policy")).result;
}

}  // namespace

TEST_CASE("a plan that counts on the whole link is late where a collective takes half of it") {
  // op3's weight comes behind op1, from 20 ms on, at half the rate: 16 ms instead of 8, 6 ms late.
  const Result result = of("graph:slack=0");
  CHECK(result.figures().stall.value == Approx(0.006).epsilon(1e-9));
  CHECK(result.planner->replays == 1);
}

TEST_CASE("what the replay shows is given as slack to the next plan, which is in time") {
  // The transfer took twice as long as promised: 100 % of slack. Behind op0 it is there at 10 + 16 ms.
  const Result result = of("graph");
  CHECK(result.figures().stall.value == Approx(0).margin(1e-12));
  CHECK(result.planner->read_slack == Approx(1).epsilon(1e-9));
  CHECK(result.planner->replays == 2);
}

TEST_CASE("what a collective loses to a transfer is the fabric's contention, not that of HBM") {
  // The iteration ends with an all-gather of 60 ms; the weight's 8 ms of bytes cross its port meanwhile.
  const Result result = of("graph:slack=0", 0.06);
  CHECK(result.figures().ideal.value == Approx(0.06).epsilon(1e-9));
  CHECK(result.figures().stalls.fabric_contention.value == Approx(0.008).epsilon(1e-9));
  CHECK(result.figures().stalls.hbm_contention == Seconds(0));
  CHECK(result.binding.resource == "fabric_bandwidth");
}
