// Hand-built runs for the report's tests: a graph, a machine and records with round numbers.
#pragma once

#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/report/metrics.h"
#include "sim/report/run_record.h"

namespace hyperoffload::test {

inline Seconds us(double t) { return Seconds(t * 1e-6); }

// `engines.size()` op lists; op i of the graph runs on engine `engine_of[i]` and takes 10 us; op i
// reads weight "w<i>" of 1000 bytes.
inline Graph toy_graph(const std::vector<int>& engine_of,
                       const std::vector<std::string>& engines = {"compute"},
                       const std::string& meta = "{}") {
  GraphSpec spec;
  spec.name = "toy";
  spec.meta_json = meta;
  spec.engines = engines;
  for (std::size_t i = 0; i < engine_of.size(); ++i) {
    Tensor w;
    w.name = "w" + std::to_string(i);
    w.bytes = Bytes(1000);
    w.kind = TensorKind::kWeight;
    w.persistent = true;
    spec.tensors.push_back(w);
    Op op;
    op.name = "op" + std::to_string(i);
    op.duration = us(10);
    op.reads = {TensorId(i)};
    op.engine = EngineId(engine_of[i]);
    spec.ops.push_back(op);
  }
  return build_graph(std::move(spec));
}

inline Hardware toy_hardware() {
  Hardware hw;
  hw.name = "toybox";
  hw.compute = FlopsPerSecond(1e12);
  hw.hbm_capacity = Bytes(5000);
  hw.hbm_bandwidth = BytesPerSecond(1e12);
  hw.link_read = {BytesPerSecond(1e8), us(1)};   // 1000 B: 1 us + 10 us
  hw.link_write = {BytesPerSecond(5e7), us(2)};  // 1000 B: 2 us + 20 us
  hw.pool_capacity = Bytes(100000);
  return hw;
}

// Times in us. `ready` <= `resident` <= `start`; alone is 10 us.
inline OpRecord op_record(int op, double ready, double resident, double start, double end,
                          int iteration = 0) {
  OpRecord r;
  r.iteration = iteration;
  r.op = OpId(op);
  r.ready = us(ready);
  r.resident = us(resident);
  r.start = us(start);
  r.end = us(end);
  r.alone = us(10);
  return r;
}

inline TransferRecord transfer(Direction direction, int tensor, double queued, double start, double flow,
                               double end) {
  TransferRecord t;
  t.direction = direction;
  t.tensor = TensorId(tensor);
  t.from = Bytes(0);
  t.to = Bytes(1000);
  t.queued = us(queued);
  t.start = us(start);
  t.flow_start = us(flow);
  t.end = us(end);
  return t;
}

// One NPU, one iteration [0, end of the last op).
inline RunRecord one_pass(std::vector<OpRecord> ops, std::vector<TransferRecord> transfers = {}) {
  NpuRecord npu;
  npu.iteration_start = {us(0)};
  npu.iteration_end = {us(0)};
  for (const OpRecord& op : ops) npu.iteration_end[0] = std::max(npu.iteration_end[0], op.end);
  npu.ops = std::move(ops);
  npu.transfers = std::move(transfers);
  npu.hbm_peak = Bytes(2000);
  RunRecord record;
  record.full = true;
  record.npus = {npu};
  record.pool_peak = Bytes(3000);
  return record;
}

inline void wait_for(OpRecord& op, int transfer_index, int tensor) {
  op.waited_transfer = transfer_index;
  op.waited_for = TensorId(tensor);
}

}  // namespace hyperoffload::test
