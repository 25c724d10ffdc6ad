// Results with every field set to something of its own, for the tests of what writes them.
#pragma once

#include "sim/report/result.h"

namespace hyperoffload::test {

inline NpuFigures sample_figures(int npu) {
  NpuFigures f;
  f.npu = npu;
  f.iteration = Seconds(1.1 + npu);
  f.total = Seconds(3.3 + npu);
  f.first_iteration = Seconds(2.2 + npu);
  f.ideal = Seconds(1);
  f.stall = f.iteration - f.ideal;
  f.slowdown = f.iteration.value / f.ideal.value;
  f.stalls.late_transfer = f.stall;
  f.late_transfer = {Seconds(0.01), Seconds(0.02), Seconds(0.03), Seconds(0.04), Seconds(0.05)};
  f.per_op = {7, Seconds(0.06), Seconds(0.05)};
  f.hbm_peak = Bytes(4000 + npu);
  f.pool_to_hbm = {Bytes(1111), 3, Seconds(0.5), Seconds(0.4), Seconds(0.3), Seconds(0.2), 0.45};
  f.hbm_to_pool = {Bytes(2222), 4, Seconds(0.6), Seconds(0.5), Seconds(0.4), Seconds(0.2), 0.55};
  return f;
}

inline Result sample_result() {
  Result r;
  r.trace = "llama \"8B\", prefill";
  r.hardware = "die";
  r.policy = "on_demand:evict=oldest,x=1";
  r.iterations = 3;
  r.fits = true;
  r.npus = {sample_figures(0), sample_figures(1)};
  r.slowest = 1;
  Wait wait;
  wait.op = "op\n7";
  wait.cause = StallCause::kLateTransfer;
  wait.reason = "link_busy";
  wait.from = Seconds(0.1);
  wait.wait = Seconds(0.06);
  wait.tensor = "w\u00e9";
  wait.bytes = Bytes(999);
  wait.transfer_start = Seconds(0.05);
  wait.transfer_end = Seconds(0.16);
  wait.held_by = "transfer";
  wait.held_by_name = "w2";
  Wait room;
  room.op = "op8";
  room.cause = StallCause::kNoRoom;
  room.short_bytes = Bytes(123);
  r.npus[1].worst = {wait, room};
  r.hbm_peak = Bytes(4001);
  r.pool_peak = Bytes((std::int64_t{1} << 60) + 1);
  r.stands_for = 16;
  r.pool_requested_peak = Bytes((std::int64_t{1} << 60) - 1);
  r.hbm_capacity = Bytes(5000);
  r.hbm_reserved = Bytes(10);
  r.pool_capacity = Bytes(std::int64_t{9'223'372'036'854'775'807});
  r.throughput.tokens_per_s = 1.0 / 3;
  r.throughput.time_per_output_token = Seconds(1.1);
  r.binding = {"pool_to_hbm_bandwidth", BytesPerSecond(153.2e9), "the link binds"};
  r.bound = Bound{Bytes(4096), Seconds(1e-6), "lp", "program", Seconds(1.25e-6)};
  return r;
}

inline Result sample_failure() {
  Result r;
  r.trace = "llama \"8B\", prefill";
  r.hardware = "die";
  r.policy = "graph";
  r.iterations = 3;
  r.reason = "step 12 (\"op12\") is 500 bytes short of HBM";
  r.hbm_capacity = Bytes(5000);
  r.hbm_reserved = Bytes(10);
  return r;
}

}  // namespace hyperoffload::test
