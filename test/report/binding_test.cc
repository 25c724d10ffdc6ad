#include "sim/report/binding.h"

#include "test/report/toy_run.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;

// 1 s ideal; the caller adds the stall and the links' use.
NpuFigures figures(double stall) {
  NpuFigures f;
  f.ideal = Seconds(1);
  f.iteration = Seconds(1 + stall);
  f.stall = f.iteration - f.ideal;
  f.slowdown = f.iteration.value;
  return f;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE(
    "A link that takes longer than the ideal iteration binds, and the bandwidth it would take is said") {
  NpuFigures f = figures(0.6);
  f.stalls.late_transfer = f.stall;
  f.pool_to_hbm.bytes = Bytes(150'000'000);
  f.pool_to_hbm.transfers = 100;
  f.pool_to_hbm.carrying = Seconds(1.5);  // 100 MB/s
  f.pool_to_hbm.busy = Seconds(1.55);     // 0.05 s of latency
  f.pool_to_hbm.utilisation = 1.55 / 1.6;
  const Binding b = binding_of(f, toy_hardware());
  CHECK(b.resource == "pool_to_hbm_bandwidth");
  CHECK(b.needed->value == Approx(150e6 / (1 - 0.05)));
  CHECK(has(b.sentence, "96.9 %"));      // 1.55 / 1.6
  CHECK(has(b.sentence, "at least 157.9 MB/s"));  // 150e6 / 0.95
  CHECK(has(b.sentence, "100.0 MB/s"));  // as declared
}

TEST_CASE("Where a link gets less than its own bandwidth, what it shares binds, and who shares it is said") {
  NpuFigures f = figures(1);
  f.stalls.late_transfer = f.stall;
  f.pool_to_hbm.bytes = Bytes(50'000'000);
  f.pool_to_hbm.carrying = f.pool_to_hbm.busy = Seconds(2);  // 25 MB/s of a link that has 100
  Hardware h = toy_hardware();
  h.npu_count = 4;
  h.nodes = Nodes{};
  h.nodes->npus = 4;
  h.nodes->sockets = 2;
  h.socket_port = BytesPerSecond(50e6);  // 2 x 50 / 4
  const Binding b = binding_of(f, h);
  CHECK(b.resource == "pool_to_hbm_share");
  CHECK(b.needed->value == Approx(50e6));
  CHECK(has(b.sentence, "of which it got 25.00 MB/s: the sockets' ports give each NPU 25.00 MB/s when all copy"));
  h.socket_port.reset();
  CHECK(has(binding_of(f, h).sentence, "collectives, other NPUs or kernels use"));
}

TEST_CASE("Transfers whose latency alone fills the ideal time bind by latency") {
  NpuFigures f = figures(0.6);
  f.hbm_to_pool.transfers = 1000;
  f.hbm_to_pool.carrying = Seconds(0.3);
  f.hbm_to_pool.busy = Seconds(1.5);
  const Binding b = binding_of(f, toy_hardware());
  CHECK(b.resource == "link_latency");
  CHECK_FALSE(b.needed.has_value());
}

TEST_CASE("A link that is busy longer than ideal explains a stall only if it is half of it") {
  NpuFigures f = figures(3);  // reactive swapping: busy 1.1 s of 4 s
  f.stalls.late_transfer = f.stall;
  f.late_transfer.carrying = Seconds(1.1);
  f.pool_to_hbm.carrying = f.pool_to_hbm.busy = Seconds(1.1);
  CHECK(binding_of(f, toy_hardware()).resource == "overlap");
}

TEST_CASE("The largest cause names what binds when no link is saturated") {
  NpuFigures f = figures(0.5);
  f.stalls.no_room = Seconds(0.3);
  f.stalls.input_room = Seconds(0.1);
  CHECK(binding_of(f, toy_hardware()).resource == "hbm_capacity");
  f.stalls.hbm_contention = Seconds(0.45);
  CHECK(binding_of(f, toy_hardware()).resource == "hbm_bandwidth");
  f.stalls.fabric_contention = Seconds(0.455);
  CHECK(binding_of(f, toy_hardware()).resource == "fabric_bandwidth");
  f.stalls.other = Seconds(0.46);
  CHECK(binding_of(f, toy_hardware()).resource == "engines");
  f.stalls.late_transfer = Seconds(0.5);
  f.late_transfer.latency = Seconds(0.5);
  CHECK(binding_of(f, toy_hardware()).resource == "link_latency");
  f.late_transfer.room = Seconds(0.6);
  CHECK(binding_of(f, toy_hardware()).resource == "hbm_capacity");
  f.late_transfer.held_back = Seconds(0.7);
  CHECK(binding_of(f, toy_hardware()).resource == "transfer_order");
  f.late_transfer.link_busy = Seconds(0.8);
  CHECK(binding_of(f, toy_hardware()).resource == "overlap");
}

TEST_CASE("At the ideal time nothing binds") {
  NpuFigures f = figures(0);
  CHECK(binding_of(f, toy_hardware()).resource == "none");
  f.pool_to_hbm.busy = Seconds(0.4);
  f.pool_to_hbm.utilisation = 0.4;
  CHECK(has(binding_of(f, toy_hardware()).sentence, "40.0 %"));
}

}  // namespace hyperoffload
