#include "app/evaluate_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/policy_table.h"
#include "app/shared_links.h"
#include "planner/planner.h"
#include "sim/model/clock_noise.h"
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
                      const RankPolicyFactory& factory, Seconds host_overhead = Seconds(0)) {
  ReplayOptions options;
  options.iterations = job.iterations;
  options.full_record = job.keep_record;
  options.series = job.series;
  options.everything_in_place = ideal;
  options.host_overhead = host_overhead;
  return replay_ranks(pointers(job.graphs), hardware, factory, options);
}

RunRecord ideal_run(const RankJob& job) {
  return replay_with(job, job.hardware, true, [](int) { return std::make_unique<Policy>(); });
}

RunRecord replay_plans(const RankJob& job, const Hardware& hardware, const std::vector<Plan>& plans) {
  return replay_with(job, hardware, false, [&](int npu) {
    const auto n = static_cast<std::size_t>(npu);
    return std::make_unique<PlannedPolicy>(job.graphs[n], plans[n]);
  });
}

RunRecord run_static(const RankJob& job, const PolicySpec& policy, std::vector<Plan>& plans) {
  Hardware hardware = job.hardware;
  for (const Graph& graph : job.graphs) {
    StaticPlan made = make_static_plan({graph, job.hardware, job.iterations}, policy);
    if (made.graph)
      throw InputError(fmt::format("policy {}", policy.text()), "a trace of several ranks",
                       "a policy that leaves the program as it is");
    if (made.one_copy_stream) hardware.transfer_engines = 1;
    plans.push_back(std::move(made.plan));
  }
  return replay_plans(job, hardware, plans);
}

RunRecord run_graph(const RankJob& job, const PolicySpec& policy, Evaluation& evaluation) {
  if (!policy.is("recompute", "none"))
    throw InputError(fmt::format("policy {}", policy.text()), "a trace of several ranks",
                     "a policy that leaves the program as it is");
  const auto plan = [&](int rank, const LinkSlack& slack) {
    return plan_with(job.graphs[static_cast<std::size_t>(rank)], job.hardware, job.iterations, rank, slack);
  };
  const auto run = [&](const std::vector<Plan>& plans) { return replay_plans(job, job.hardware, plans); };
  ReplayedPlans best =
      plan_and_replay(pointers(job.graphs), job.hardware, job.iterations, slack_of(policy), plan, run);
  evaluation.plans = std::move(best.plans);
  evaluation.result.planner = best.use;
  return std::move(best.record);
}

RunRecord run(const RankJob& job, const PolicySpec& policy, Evaluation& evaluation) {
  if (policy.name == "resident") return ideal_run(job);
  if (policy.name == "graph") return run_graph(job, policy, evaluation);
  const PolicyEntry& entry = policy_entry(policy.name);
  if (!entry.runtime) return run_static(job, policy, evaluation.plans);
  return replay_with(job, job.hardware, false, [&](int) { return entry.runtime(policy); },
                     policy.seconds("host_overhead"));
}

// No iteration of a rank is shorter than its ideal time alone and the least stall on links of its own; its
// ideal time here also counts what it waits for others.
Bound bound_of(const RankJob& job, const Result& result, Seconds longest_ideal) {
  Bound all;
  for (std::size_t n = 0; n < job.graphs.size(); ++n) {
    const RankBound rank =
        rank_bound(job.graphs[n], job.hardware, job.iterations, static_cast<int>(n), job.bound, longest_ideal);
    all.method = rank.bound.method;
    all.order = rank.bound.order;
    all.hbm_peak = std::max(all.hbm_peak, rank.bound.hbm_peak);
    if (!result.has_figures() || static_cast<int>(n) != result.slowest) continue;
    const Seconds stall = rank.ideal + rank.bound.stall - result.figures().ideal;
    if (stall > result.figures().ideal * kClockNoise) all.stall = stall;
  }
  return all;
}

}  // namespace

void check_rank_count(const std::vector<Graph>& graphs, const Hardware& hardware, const std::string& where) {
  if (static_cast<int>(graphs.size()) != hardware.npu_count)
    throw InputError(where, fmt::format("{} traces", graphs.size()),
                     fmt::format("one for each of the machine's {} NPUs", hardware.npu_count));
}

Evaluation evaluate_ranks(const RankJob& job, const PolicySpec& policy) {
  RunOutcome outcome{job.graphs[0], job.hardware, policy.text(), job.iterations};
  outcome.ranks = pointers(job.graphs);
  Evaluation evaluation;
  Bytes pool_exceeded;
  std::optional<RunRecord> ideal;
  try {
    ideal = ideal_run(job);
    RunRecord record = run(job, policy, evaluation);
    const auto planner = evaluation.result.planner;
    pool_exceeded = record.pool_exceeded;
    outcome.record = &record;
    outcome.ideal = &*ideal;
    evaluation.result = summarize(outcome);
    evaluation.result.planner = planner;
    evaluation.series = std::move(record.npus[static_cast<std::size_t>(evaluation.result.slowest)].series);
    if (job.keep_record) evaluation.record = std::move(record);
  } catch (const InfeasibleError& e) {
    outcome.fits = false;
    outcome.reason = e.what();
    evaluation = {};
    evaluation.result = summarize(outcome);
  }
  Result& result = evaluation.result;
  result.bound = bound_of(job, result, ideal ? slowest_iteration(*ideal) : Seconds(0));
  if (policy.name == "resident" && result.has_figures()) {
    judge_resident(job.hardware, pool_exceeded, result);
    if (result.fits) result.bound->stall = Seconds(0);  // it may keep in HBM what is bound to the pool
  }
  return evaluation;
}

}  // namespace hyperoffload
