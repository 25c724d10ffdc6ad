// A graph and a machine as the planner's passes read them all the time: flat arrays by index.
//
// Built once, shared by every walk and pass. Accesses stand by op and by tensor; costs are those of
// op_cost(). Units: bytes (int64), seconds and bytes/s (double). `NpuMachine` is what one NPU sees: its
// own HBM and links, and an equal share of what it shares with other NPUs (pool bytes, pool ports).
// With a shared port the times are an estimate (`estimate`): the real share changes with what the
// other NPUs do at the moment. O(ops + accesses).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/op_cost.h"

namespace hyperoffload {

struct NpuMachine {
  std::int64_t hbm = 0;                           // bytes
  std::int64_t pool = 0;                          // this NPU's share
  double read_bandwidth = 0, read_latency = 0;    // pool -> HBM
  double write_bandwidth = 0, write_latency = 0;  // HBM -> pool
  double hbm_bandwidth = 0;
  Allocation allocation;                          // of the pool
  bool estimate = false;

  // What so many bytes take in the pool as one allocation.
  std::int64_t pool_bytes(std::int64_t bytes) const {
    return allocated_bytes(allocation, Bytes(bytes)).value;
  }
  // Time of one transfer that shares nothing with anyone.
  double load_seconds(std::int64_t bytes) const;
  double store_seconds(std::int64_t bytes) const;
};

NpuMachine one_npu(const Hardware& hardware);
// What an NPU gets at best, with nobody else copying: what bounds count on.
NpuMachine best_npu(const Hardware& hardware);

struct FlatAccess {
  std::int32_t tensor;
  bool reads;
  bool writes;
};

struct FlatGraph {
  // `rank`: whose trace it is, where each NPU has its own (it decides who its collectives are with).
  FlatGraph(const Graph& graph, const Hardware& hardware, int rank = 0);

  const Graph* graph;
  NpuMachine machine;
  int ops = 0, tensors = 0, engines = 0;
  std::vector<OpCost> cost;             // by op
  std::vector<std::int64_t> workspace;  // by op
  std::vector<std::int64_t> bytes;      // by tensor
  std::vector<char> in_pool;            // by op: its tensors must be in the pool
  bool any_in_pool = false;             // of those ops
  std::vector<char> persistent;         // by tensor
  std::vector<char> stays;              // by tensor: never leaves HBM (none, unless set)
  std::vector<char> bound_to_pool;      // by tensor: `initial: pool`
  std::vector<std::int32_t> inputs;     // tensors present from each iteration's start
  std::int64_t input_bytes = 0;

  std::span<const FlatAccess> accesses(int op) const {
    return {access_.data() + access_begin_[op], access_.data() + access_begin_[op + 1]};
  }
  // An op's engine, and its place among the ops there: those before it are done when it starts.
  int engine(int op) const { return engine_[op]; }
  int place(int op) const { return graph->place_on_engine(OpId(op)); }
  // HBM bytes that must be there while it runs: workspace and all it accesses; none of an op in the pool.
  std::int64_t working_set(int op) const;

 private:
  std::vector<FlatAccess> access_;
  std::vector<std::uint32_t> access_begin_;
  std::vector<std::int32_t> engine_;
};

}  // namespace hyperoffload
