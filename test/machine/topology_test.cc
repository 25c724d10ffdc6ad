// Ports, switches and paths against formulas, each to 1e-9 relative.
#include "test/machine/copies.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

constexpr std::int64_t kBytes = 1'510'000'000;

Hardware cloudmatrix(int dies) {
  Hardware h = preset("cloudmatrix384");
  h.npu_count = dies;
  return h;
}

// Nodes of one NPU and one socket each, round numbers: a link of 100 GB/s near, 80 far, 1 us and 2 us.
Hardware nodes(int count) {
  Hardware h = machine();
  h.hbm_capacity = 1000_GB;
  h.npu_count = count;
  h.link_read = h.link_write = {BytesPerSecond(100e9), 1_us};
  h.link_far = Path{{BytesPerSecond(80e9), 2_us}, {BytesPerSecond(80e9), 2_us}};
  h.nodes = Nodes{};
  h.nodes->count = count;
  h.placement.supernode = true;
  return h;
}

}  // namespace

TEST_CASE("a CloudMatrix384 die alone reads 151 GB/s striped over its node") {
  CHECK(transfer_end(run(reads({kBytes}), cloudmatrix(1))) == exactly(1.0e-6 + kBytes / 151e9));
  CHECK(transfer_end(run(write_one(kBytes), cloudmatrix(1))) == exactly(1.1e-6 + kBytes / 110e9));
}

TEST_CASE("16 dies of a node that all read get 40 GB/s each, 4 sockets x 160 / 16") {
  const double each = 4 * 160e9 / 16;
  const RunRecord record = run(reads({kBytes}), cloudmatrix(16));
  for (std::size_t n = 0; n < 16; ++n) CHECK(transfer_end(record, n) == exactly(1.0e-6 + kBytes / each));
}

TEST_CASE(
    "16 dies of a node write 40 GB/s each, and reading meanwhile costs nothing: ports are full duplex") {
  const double each = 4 * 160e9 / 16;
  const RunRecord record = run(both_ways(kBytes, 1), cloudmatrix(16));
  CHECK(transfer_end(record, 3, 0) == exactly(1.0e-6 + kBytes / each));
  CHECK(transfer_end(record, 3, 1) == exactly(1.1e-6 + kBytes / each));
}

TEST_CASE("dies fill nodes in order: the 17th is alone on the second node") {
  const RunRecord record = run(reads({kBytes}), cloudmatrix(17));
  CHECK(transfer_end(record, 15) == exactly(1.0e-6 + kBytes / (4 * 160e9 / 16)));
  CHECK(transfer_end(record, 16) == exactly(1.0e-6 + kBytes / 151e9));
}

TEST_CASE("4 dies on a node are held by their own caps, 5 by the sockets") {
  CHECK(transfer_end(run(reads({kBytes}), cloudmatrix(4)), 3) == exactly(1.0e-6 + kBytes / 151e9));
  CHECK(transfer_end(run(reads({kBytes}), cloudmatrix(5)), 4) == exactly(1.0e-6 + kBytes / (640e9 / 5)));
}

TEST_CASE("a local socket serves a quarter of its node's dies, at its own port") {
  Hardware h = cloudmatrix(16);
  h.placement.spread = Spread::kLocal;
  CHECK(transfer_end(run(reads({kBytes}), h), 7) == exactly(1.0e-6 + kBytes / (160e9 / 4)));
  h.npu_count = 5;  // dies 0 to 3 on socket 0, die 4 on socket 1
  const RunRecord record = run(reads({kBytes}), h);
  CHECK(transfer_end(record, 0) == exactly(1.0e-6 + kBytes / (160e9 / 4)));
  CHECK(transfer_end(record, 4) == exactly(1.0e-6 + kBytes / 151e9));
}

TEST_CASE("striped over the supernode a copy has the far path's cap and latency") {
  Hardware h = cloudmatrix(1);
  h.placement.supernode = true;
  CHECK(transfer_end(run(reads({kBytes}), h)) == exactly(1.7e-6 + kBytes / 147e9));
  h.npu_count = 768;  // 192 sockets x 160 / 768
  CHECK(transfer_end(run(reads({kBytes}), h), 700) == exactly(1.7e-6 + kBytes / (192 * 160e9 / 768)));
}

TEST_CASE("DRAM bandwidth is shared by reads and writes, a port is not") {
  Hardware h = nodes(1);
  h.socket_port = BytesPerSecond(100e9);
  const Trace both = both_ways(100'000'000'000, 10);
  CHECK(transfer_end(run(both, h)) == exactly(1e-6 + 100e9 / 100e9));
  h.socket_memory = BytesPerSecond(120e9);  // 60 each way
  CHECK(transfer_end(run(both, h)) == exactly(1e-6 + 100e9 / 60e9));
}

TEST_CASE("an oversubscribed second level holds up what leaves a node") {
  // Two nodes, each copy half here and half there. Each node's uplink: 20 GB/s in and out, for one far half.
  Hardware h = nodes(2);
  const std::int64_t bytes = 80'000'000'000;
  CHECK(transfer_end(run(reads({bytes}), h), 1) == exactly(2e-6 + 80e9 / 80e9));
  h.nodes->second_level = BytesPerSecond(20e9);
  CHECK(transfer_end(run(reads({bytes}), h), 1) == exactly(2e-6 + 40e9 / 20e9));
}

TEST_CASE("a node's first-level switches carry what comes and what goes") {
  // All of a node's flows: its own half, the half it fetches, the half that the other node fetches: 1.5
  // copies.
  Hardware h = nodes(2);
  h.nodes->first_level = BytesPerSecond(60e9);
  const std::int64_t bytes = 80'000'000'000;
  CHECK(transfer_end(run(reads({bytes}), h), 0) == exactly(2e-6 + 1.5 * 80e9 / 60e9));
}

TEST_CASE("the fair share that the planner counts on is what all get at once") {
  for (const bool supernode : {false, true})
    for (const Spread spread : {Spread::kStripe, Spread::kLocal})
      for (const int dies : {1, 5, 16, 64}) {
        INFO(to_string(spread) << (supernode ? " over the supernode, " : " over the node, ") << dies);
        Hardware h = cloudmatrix(dies);
        h.placement.spread = spread;
        h.placement.supernode = supernode;
        const LinkDirection fair = fair_link(h, true);
        CHECK(transfer_end(run(reads({kBytes}), h), 0) ==
              exactly(fair.latency.value + kBytes / fair.bandwidth.value));
      }
}
