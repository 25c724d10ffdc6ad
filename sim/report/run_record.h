// What a replay measured, before any figure is derived from it. Filled by sim/replay, read by
// sim/report. Times in simulated seconds from 0; iterations count from 0; `npu` is an index.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/model/ids.h"
#include "sim/model/units.h"
#include "sim/report/series.h"

namespace hyperoffload {

struct OpRecord {
  int iteration = 0;
  OpId op;
  Seconds ready;     // engine free, dependencies done, iteration started
  Seconds resident;  // all it reads is resident, earlier actions are done (>= ready)
  Seconds start;     // room was there too (>= resident)
  Seconds end;
  Seconds alone;     // its duration with nothing else using HBM (end - start >= alone)
  TensorId waited_for;      // the tensor that was last to become resident; none if no wait
  int waited_transfer = -1; // index into NpuRecord::transfers of the transfer it waited for, or -1
  Bytes room_short{};       // when it had to wait for room: the bytes short at first
  Seconds decided{};        // a host that decides while time runs let it go; 0: at once
};

struct TransferRecord {
  Direction direction = Direction::kPoolToHbm;
  int iteration = 0;      // of the plan's body it belongs to, or in which a policy issued it
  TensorId tensor;
  Bytes from, to;         // half-open byte range
  Seconds queued;         // at the head of its queue, its anchor done: could start but for room
  Seconds start;          // room was there: its bytes are taken
  Seconds flow_start;     // start + latency: the bandwidth part begins
  Seconds end;            // also where it lies behind the last op's end: the end it would have
  int action = -1;        // index into Plan::actions, or -1
  Bytes room_short{};       // when it had to wait for room: the bytes short at first
  Bytes bytes() const { return to - from; }
};

struct MemorySample {  // a step function: the value from `time` on
  Seconds time;
  Bytes hbm;
  Bytes pool;
};

struct NpuRecord {
  std::vector<OpRecord> ops;              // in order of start; all iterations, or the last only
  std::vector<TransferRecord> transfers;  // in order of start; all, or those that touch the last iteration
  std::vector<MemorySample> memory;       // empty unless a timeline was asked for
  std::vector<Seconds> iteration_start;   // one an iteration
  std::vector<Seconds> iteration_end;     // its last op's end
  std::vector<Seconds> inputs_taken;      // when its inputs' bytes were taken; empty: at its start
  std::vector<IterationSeries> series;    // when asked for, and of the slowest NPU only
  Bytes hbm_peak;                         // before the last op's end, transfers in flight included
};

struct RunRecord {
  int iterations = 1;
  bool full = false;             // ops, transfers and memory of all iterations are kept
  std::vector<NpuRecord> npus;
  int stands_for = 1;            // so many NPUs each of them stands for
  bool waited_for_pool = false;  // a transfer or an op, for room there that others may take, at some time
  Bytes pool_peak;               // of the whole pool, before the last op's end; as allocated
  Bytes pool_requested_peak;     // the same before allocations are rounded up
  Bytes pool_exceeded;           // ideal run: by how much the pool, or some sockets, would be too small
};

// The last iteration of the slowest NPU, as results have it.
inline Seconds slowest_iteration(const RunRecord& record) {
  Seconds slowest;
  for (const NpuRecord& npu : record.npus)
    slowest = std::max(slowest, npu.iteration_end.back() - npu.iteration_start.back());
  return slowest;
}

}  // namespace hyperoffload
