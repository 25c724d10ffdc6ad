// What a policy may see of one NPU while time runs.
#pragma once

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/replay/memory.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

struct NpuView {
  const Graph& graph;
  const Hardware& hardware;
  const Memory& memory;
  int iteration = 0;  // from 0; -1 before the first
  Seconds now;
  std::vector<int> ops_done;      // per engine, of this iteration
  std::vector<OpId> running;      // per engine; none: idle
  bool busy[2] = {false, false};  // per Direction: a transfer is under way
  bool inputs_taken = true;               // of this iteration
  Bytes input_bytes;              // taken together at each iteration's start

  bool op_done(OpId op) const {  // in this iteration
    return graph.place_on_engine(op) < ops_done[graph.op(op).engine.index()];
  }
};

}  // namespace hyperoffload
