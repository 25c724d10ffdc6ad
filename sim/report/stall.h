// Where the last iteration's stall went, by cause.
//
// Idea: an op's start is the latest end of what it follows (its engine's previous op, its
// dependencies, the iteration's start) plus the delays it met: input room, late bytes, room; its
// length is its ideal duration plus contention. The ops' longest path is walked once without any
// delay and again with one more cause switched on each time: the growth of the iteration is that
// cause's share. No share is negative, they add up to iteration - ideal, and with one engine each
// equals the plain sum over its ops. With several, a delay that another engine's work hides counts
// nothing, and where two causes cover each other the one switched on first takes it (the order of
// StallCauses: contention of HBM, of the fabric, inputs, host, late bytes, room).
// Complexity: O(ops + dependencies) a cause, O(log transfers) a wait.
// Weakness: the ideal run may itself share HBM between engines; what that changes, and what moved
// ops changed, is `other`, the only one that may be negative.
#pragma once

#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/report/result.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

struct StallInput {
  const Graph& graph;
  const NpuRecord& npu;
  int iteration = 0;                 // the one looked at
  const NpuRecord* ideal = nullptr;  // for the ops' ideal durations; null: OpRecord::alone
  int ideal_iteration = 0;
  Seconds stall{};  // what the causes have to add up to
  const Hardware* hardware = nullptr;  // whose fabric carries collectives; null: none does
};

struct StallReport {
  StallCauses causes;
  LateTransfer late_transfer;
  WaitSpread per_op;
  std::vector<Wait> worst;
};

StallReport attribute_stall(const StallInput& input);

}  // namespace hyperoffload
