#include "app/evaluate_ranks.h"

#include <fmt/format.h>

#include "app/policy_table.h"
#include "planner/planner.h"
#include "sim/model/error.h"
#include "sim/policy/planned.h"
#include "sim/replay/replay.h"
#include "sim/report/metrics.h"

namespace hyperoffload {
namespace {

std::vector<const Graph*> pointers(const std::vector<Graph>& graphs) {
  std::vector<const Graph*> all;
  for (const Graph& graph : graphs) all.push_back(&graph);
  return all;
}

RunRecord replay_with(const RankJob& job, const Hardware& hardware, bool ideal,
                      const RankPolicyFactory& factory) {
  ReplayOptions options;
  options.iterations = job.iterations;
  options.everything_in_place = ideal;
  return replay_ranks(pointers(job.graphs), hardware, factory, options);
}

RunRecord ideal_run(const RankJob& job) {
  return replay_with(job, job.hardware, true, [](int) { return std::make_unique<Policy>(); });
}

RunRecord run_plans(const RankJob& job, const PolicySpec& policy) {
  std::vector<Plan> plans;
  Hardware hardware = job.hardware;
  PlannerOptions options;
  options.iterations = job.iterations;
  for (const Graph& graph : job.graphs) {
    if (policy.name == "graph") {
      plans.push_back(make_plan(graph, job.hardware, options).plan);
      continue;
    }
    StaticPlan made = make_static_plan({graph, job.hardware, job.iterations}, policy);
    if (made.one_copy_stream) hardware.transfer_engines = 1;
    plans.push_back(std::move(made.plan));
  }
  return replay_with(job, hardware, false, [&](int npu) {
    const auto n = static_cast<std::size_t>(npu);
    return std::make_unique<PlannedPolicy>(job.graphs[n], plans[n]);
  });
}

RunRecord run(const RankJob& job, const PolicySpec& policy) {
  if (policy.name == "resident") return ideal_run(job);
  const PolicyEntry& entry = policy_entry(policy.name);
  if (!entry.runtime) return run_plans(job, policy);
  return replay_with(job, job.hardware, false, [&](int) { return entry.runtime(policy); });
}

}  // namespace

Evaluation evaluate_ranks(const RankJob& job, const PolicySpec& policy) {
  RunOutcome outcome{job.graphs[0], job.hardware, policy.text(), job.iterations};
  outcome.ranks = pointers(job.graphs);
  Evaluation evaluation;
  try {
    const RunRecord record = run(job, policy);
    const RunRecord ideal = ideal_run(job);
    outcome.record = &record;
    outcome.ideal = &ideal;
    evaluation.result = summarize(outcome);
  } catch (const InfeasibleError& e) {
    outcome.fits = false;
    outcome.reason = e.what();
    evaluation.result = summarize(outcome);
  }
  if (policy.name == "resident") judge_resident(job.hardware, evaluation.result);
  return evaluation;
}

}  // namespace hyperoffload
