// The reference replay against closed forms: kernels and copies share HBM bandwidth max-min fairly.
#include "test/property/by_hand.h"
#include "test/support/reference_machine.h"

using namespace hyperoffload;

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
