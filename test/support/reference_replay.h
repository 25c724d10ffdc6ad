// A second replay of plans and of reactive swapping, without SimGrid: one NPU, private links.
//
// Written from docs/formats.md and docs/semantics.md alone and kept apart from sim/ and planner/ on
// purpose: it shares only the model types and op_cost(). It favours being obviously right: after
// every event it looks at everything again (what ended, detaches, deaths, inputs, ops, queues).
// O(events x (ops + actions) x accesses of an op): meant for graphs of 5 to 200 ops.
// A plan that breaks a rule (prefetching what is resident, ...) is a CheckFailure, not a result.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

struct ReferenceOp {
  int iteration = 0;
  OpId op;
  long double start = 0, end = 0;
};

struct ReferenceTransfer {
  Direction direction = Direction::kPoolToHbm;
  int iteration = 0;
  int action = -1;  // index into Plan::actions; -1: reactive swapping
  TensorId tensor;
  Bytes from, to;
  long double start = 0, flow_start = 0, end = 0;
};

struct ReferenceResult {
  bool stuck = false;
  std::string waiting;  // when stuck: who waits, for what

  // Everything that started, in order of start. A transfer in flight at the last op's end runs on to
  // its end; nothing starts at or after it.
  std::vector<ReferenceOp> ops;
  std::vector<ReferenceTransfer> transfers;
  std::vector<long double> iteration_start, iteration_end;
  Bytes hbm_peak, pool_peak;
  Bytes pool_to_hbm, hbm_to_pool;  // carried within the last iteration

  std::map<std::string, int> seen;  // how often each rule mattered, by name
};

ReferenceResult reference_replay(const Graph& graph, const Plan& plan, const Hardware& hardware,
                                 int iterations);

// Every tensor where it is needed, memory without limit, no transfers.
ReferenceResult reference_ideal(const Graph& graph, const Hardware& hardware, int iterations);

// Reactive swapping. Ops with `memory: pool` are not covered: CheckFailure.
enum class Evict { kLru, kOldest };
ReferenceResult reference_on_demand(const Graph& graph, const Hardware& hardware, int iterations,
                                    Evict evict = Evict::kLru);

// Bytes of `direction` carried between two times: per transfer the share of its bandwidth part that
// lies between them, summed, then rounded.
Bytes carried_bytes(const std::vector<ReferenceTransfer>& transfers, Direction direction, long double from,
                    long double to);

}  // namespace hyperoffload
