// One policy on one workload and machine: plan if it plans, replay, and sum up. Planner and simulator meet here and in
// evaluate_ranks.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/policy_spec.h"
#include "planner/planner.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "sim/policy/static_plan.h"
#include "sim/report/result.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

struct Job {
  const Graph& graph;
  const Hardware& hardware;  // HBM capacity as this job has it
  int iterations = 1;
  bool keep_record = false;  // for a timeline: all iterations
  bool fold = false;         // one NPU stands for all; InfeasibleError where that is not exact
  bool series = false;       // keep levels over time, of the slowest NPU
  BoundMethod bound = BoundMethod::kWindow;
};

// "window" or "lp"; InputError otherwise.
BoundMethod parse_bound_method(const std::string& name, const std::string& where);

struct Evaluation {
  Result result;
  std::optional<RunRecord> record;  // when kept, and the run could happen
  std::optional<Plan> plan;         // of a policy that plans, where it is for the trace as given
  std::optional<Graph> changed;     // the program that was replayed, where a policy changed it
  std::vector<IterationSeries> series;  // when asked for, and the run could happen
  std::vector<Plan> plans;          // one for each NPU where each has a trace of its own
};

// A policy that can't run has a result with `fits: false` and the reason; nothing is thrown for that.
Evaluation evaluate(const Job& job, const PolicySpec& policy);
// A plan file. InfeasibleError with every rule it breaks when the checker refuses it.
Evaluation evaluate(const Job& job, const Plan& plan);

// `resident` runs on a device big enough: whether this one is.
void judge_resident(const Hardware& hardware, Bytes pool_exceeded, Result& result);

// What a static baseline makes of a trace; InfeasibleError when its rules leave it short, or what it makes
// can't run (the checker refuses it).
StaticPlan make_static_plan(const Job& job, const PolicySpec& policy);

// Every broken rule, a line each; empty: the plan is valid for so many iterations.
std::string broken_rules(const Job& job, const Plan& plan);

}  // namespace hyperoffload
