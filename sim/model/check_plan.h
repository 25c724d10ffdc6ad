// The independent plan validator: every rule of the plan format, without the planner and without
// time. It reports each broken rule with the iteration, step, tensor and reason.
//
// Two passes. (1) check_rules.h: per tensor, in program order, a state machine over its accesses and
// actions (resident, has a valid pool copy, by byte range). A prefetch that may have started counts as
// started. (2) check_stuck.h, for a plan that keeps the rules so far: could it get stuck? The replay in
// program order in which transfers take no time and go before ops, waiting for room as usual; with
// several engines each op is also charged with what every later op that does not depend on it would
// take, and with the prefetches anchored on those. In the same replay a plan's addresses must hold:
// check_addresses.h.
// Iterations beyond the second are skipped once the state at an iteration's start repeats; what is
// broken in several is reported for the first of them. 100 broken rules are listed, the rest counted.
// O((ops x engines + accesses + actions) x distinct iterations), of which there are at most four or so.
#pragma once

#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload {

class Residency;

struct Violation {
  // order | initial-pool start-hbm start-pool | range unborn dead prefetch-resident store-absent
  // store-valid store-undetached detach-absent detach-last-copy detach-unaccessed before-op |
  // read-absent pool-read pool-write | stuck | address | more (the count of those not listed)
  std::string rule;
  int iteration = 0;    // from 0
  OpId step;            // the op, or the op the action stands behind; none: the iteration's start
  TensorId tensor;      // none when no single tensor is meant
  int action = -1;      // index into Plan::actions, or -1
  std::string message;  // one sentence a person can act on, with names and bytes
};

struct CheckLimits {
  Bytes hbm;              // usable HBM bytes of one NPU
  Bytes pool;             // pool bytes available to this NPU
  Allocation allocation{};  // what takes them: each piece of a tensor in the pool is one allocation
};
// Of one NPU: its HBM and its share of the pool (fair_pool()), which a replay holds its plan to.
CheckLimits limits_of(const Hardware& hardware);

// Empty: the plan keeps every rule for `iterations` iterations.
std::vector<Violation> check_plan(const Graph& graph, const Plan& plan, const CheckLimits& limits,
                                  int iterations = 1);

// Who comes into HBM and goes in the second pass, for choosing addresses that hold there. The plan must be in
// program order and keep every rule; addresses it has are not looked at.
void watch_program_order(const Graph& graph, const Plan& plan, const CheckLimits& limits, int iterations,
                         Residency& watch);

}  // namespace hyperoffload
