#include "app/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/policy_table.h"
#include "app/recompute_choice.h"
#include "app/shared_links.h"
#include "planner/planner.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "sim/model/op_cost.h"
#include "sim/model/plan_order.h"
#include "sim/policy/planned.h"
#include "sim/replay/fold.h"
#include "sim/replay/replay.h"
#include "sim/report/metrics.h"

namespace hyperoffload {
namespace {

// The same question of another program or machine.
Job with_graph(const Job& job, const Graph& graph, const Hardware& hardware) {
  return {graph, hardware, job.iterations, job.keep_record, job.fold, job.series, job.bound};
}

RunRecord ideal_run(const Job& job, int iterations, bool full) {
  ReplayOptions options;
  options.series = job.series;
  options.iterations = iterations;
  options.full_record = full;
  options.everything_in_place = true;
  return (job.fold ? replay_folded : replay)(
      job.graph, job.hardware, [] { return std::make_unique<Policy>(); }, options);
}

// One NPU, one iteration: nothing moves, so all NPUs and iterations are alike. Ranks that meet over the
// fabric all take part.
RunRecord ideal_iteration(const Job& job) {
  Hardware one = job.hardware;
  const auto& ops = job.graph.ops();
  if (std::none_of(ops.begin(), ops.end(), [&](const Op& op) { return over_fabric(op, one); }))
    one.npu_count = 1;
  return ideal_run({job.graph, one, 1, false, job.fold}, 1, false);
}

void refuse_endless(const RunRecord& record) {
  for (const NpuRecord& npu : record.npus)
    if (!std::isfinite(npu.iteration_end.back().value))
      throw InfeasibleError("the run takes longer than 1.8e308 s: a rate of the machine is too low, or an op's time too long");
}

Evaluation sum_up(const Job& job, RunOutcome outcome, RunRecord record) {
  outcome.record = &record;
  Evaluation evaluation;
  evaluation.result = summarize(outcome);
  evaluation.series = std::move(record.npus[static_cast<std::size_t>(evaluation.result.slowest)].series);
  if (job.keep_record) evaluation.record = std::move(record);
  return evaluation;
}

// `known_after`: it loads for no op before what that reads is known.
Evaluation sum_up(const Job& job, const std::string& policy, RunRecord record, bool known_after = false) {
  refuse_endless(record);
  const RunRecord ideal = ideal_iteration(job);
  RunOutcome outcome{job.graph, job.hardware, policy, job.iterations};
  outcome.ideal = &ideal;
  outcome.bound = prove_bound(job.graph, job.hardware, job.iterations, job.bound, slowest_iteration(ideal), known_after);
  return sum_up(job, outcome, std::move(record));
}

Evaluation cannot_run(const Job& job, const std::string& policy, const std::string& reason) {
  RunOutcome outcome{job.graph, job.hardware, policy, job.iterations};
  outcome.fits = false;
  outcome.reason = reason;
  outcome.bound = prove_bound(job.graph, job.hardware, job.iterations, job.bound);
  Evaluation evaluation;
  evaluation.result = summarize(outcome);
  return evaluation;
}

Evaluation evaluate_resident(const Job& job) {
  RunRecord record = ideal_run(job, job.iterations, job.keep_record);
  const Bytes pool_exceeded = record.pool_exceeded;
  Evaluation evaluation = sum_up(job, "resident", std::move(record));
  Result& result = evaluation.result;
  judge_resident(job.hardware, pool_exceeded, result);
  // It may keep in HBM what is bound to the pool, which no plan may: its least stall is none.
  if (result.fits) {
    result.bound->stall = std::min(result.bound->stall, Seconds(0));
    result.bound->steady_stall.reset();
  }
  return evaluation;
}

RunRecord replay_job(const Job& job, const PolicyFactory& factory, Seconds host_overhead = Seconds(0)) {
  ReplayOptions options;
  options.host_overhead = host_overhead;
  options.iterations = job.iterations;
  options.full_record = job.keep_record;
  options.series = job.series;
  return (job.fold ? replay_folded : replay)(job.graph, job.hardware, factory, options);
}

Evaluation evaluate_planned(const Job& job, const std::string& name, const Plan& plan) {
  return sum_up(job, name, replay_job(job, [&] { return std::make_unique<PlannedPolicy>(job.graph, plan); }));
}

// A policy that changes the program: its ops are judged by an ideal run of theirs, the iteration by the trace's.
Evaluation sum_up_changed(const Job& job, const std::string& policy, Graph changed, RunRecord record) {
  refuse_endless(record);
  const RunRecord trace_ideal = ideal_iteration(job);
  const RunRecord ideal = ideal_iteration(with_graph(job, changed, job.hardware));
  RunOutcome outcome{job.graph, job.hardware, policy, job.iterations};
  outcome.ideal = &ideal;
  outcome.ideal_time = trace_ideal.npus[0].iteration_end.back() - trace_ideal.npus[0].iteration_start.back();
  outcome.changed = &changed;
  outcome.bound = prove_bound(job.graph, job.hardware, job.iterations, job.bound);
  outcome.bound->order = kAsGiven;
  Evaluation evaluation = sum_up(job, outcome, std::move(record));
  evaluation.changed = std::move(changed);
  return evaluation;
}

Evaluation evaluate_static(const Job& job, const PolicySpec& policy) {
  StaticPlan made = make_static_plan(job, policy);
  Hardware hardware = job.hardware;
  if (made.one_copy_stream) hardware.transfer_engines = 1;
  const Graph& graph = made.graph ? *made.graph : job.graph;
  const Job mine = with_graph(job, graph, hardware);
  RunRecord record = replay_job(mine, [&] { return std::make_unique<PlannedPolicy>(graph, made.plan); });
  if (made.graph) return sum_up_changed(job, policy.text(), std::move(*made.graph), std::move(record));
  Evaluation evaluation = sum_up(job, policy.text(), std::move(record));
  evaluation.plan = std::move(made.plan);
  return evaluation;
}

Evaluation evaluate_graph(const Job& job, const PolicySpec& policy) {
  const auto plan_of = [&](const Graph& graph, const LinkSlack& slack) {
    return plan_with(graph, job.hardware, job.iterations, 0, slack);
  };
  std::optional<int> layers;
  if (!policy.is("recompute", "auto"))
    layers = policy.is("recompute", "none") ? 0 : static_cast<int>(policy.integer("recompute"));
  RecomputeChoice choice =
      choose_recompute(job.graph, layers, [&](const Graph& graph) { return plan_of(graph, {}); });
  const Graph& graph = choice.graph ? *choice.graph : job.graph;
  const Job mine = with_graph(job, graph, job.hardware);
  ReplayedPlans best = plan_and_replay(
      {&graph}, job.hardware, job.iterations, slack_of(policy),
      [&](int, const LinkSlack& slack) { return plan_of(graph, slack); },
      [&](const std::vector<Plan>& plans) {
        return replay_job(mine, [&] { return std::make_unique<PlannedPolicy>(graph, plans[0]); });
      });
  best.use.recomputed_layers = choice.layers;
  if (choice.graph) {
    Evaluation evaluation = sum_up_changed(job, policy.text(), std::move(*choice.graph), std::move(best.record));
    evaluation.result.planner = best.use;
    return evaluation;
  }
  Evaluation evaluation = sum_up(job, policy.text(), std::move(best.record), true);
  evaluation.result.planner = best.use;
  evaluation.plan = std::move(best.plans[0]);
  evaluation.plan->bound = evaluation.result.bound;
  return evaluation;
}

}  // namespace

BoundMethod parse_bound_method(const std::string& name, const std::string& where) {
  if (name == "window") return BoundMethod::kWindow;
  if (name == "lp") return BoundMethod::kLp;
  throw InputError(where, fmt::format("\"{}\"", name), "window or lp");
}

void judge_resident(const Hardware& hardware, Bytes pool_exceeded, Result& result) {
  const auto too_small = [](const char* tier, Bytes peak, Bytes capacity) {
    return fmt::format("{} is short of {} B: everything takes {} B, {} B are there", tier,
                       (peak - capacity).value, peak.value, capacity.value);
  };
  if (result.hbm_peak > hardware.hbm_usable())
    result.reason = too_small("HBM", result.hbm_peak, hardware.hbm_usable());
  else if (result.pool_peak > hardware.pool_capacity)
    result.reason = too_small("the pool", result.pool_peak, hardware.pool_capacity);
  else if (pool_exceeded > Bytes(0))
    result.reason = fmt::format("sockets of the pool are short of {} B", pool_exceeded.value);
  result.fits = result.reason.empty();
}

std::string broken_rules(const Job& job, const Plan& plan) {
  std::string text;
  for (const Violation& violation : check_plan(job.graph, plan, limits_of(job.hardware), job.iterations))
    text += (text.empty() ? "" : "\n") + violation.message;
  return text;
}

StaticPlan make_static_plan(const Job& job, const PolicySpec& policy) {
  StaticPlan made = policy_entry(policy.name).fixed(job.graph, job.hardware, job.iterations, policy);
  const auto broken =
      check_plan(made.graph ? *made.graph : job.graph, made.plan, limits_of(job.hardware), job.iterations);
  if (!broken.empty())
    throw InfeasibleError(fmt::format("what {} moves can't run: {}{}", policy.text(), broken.front().message,
                                      broken.size() > 1 ? fmt::format(" (and {} more)", broken.size() - 1) : ""));
  return made;
}

Evaluation evaluate(const Job& job, const Plan& plan) {
  if (const std::string broken = broken_rules(job, plan); !broken.empty())
    throw InfeasibleError("the plan breaks the rules:\n" + broken);
  if (!plan.order.empty()) {
    const Reordered moved = reorder(job.graph, plan);
    return evaluate_planned(with_graph(job, moved.graph, job.hardware), "plan", moved.plan);
  }
  Evaluation evaluation = evaluate_planned(job, "plan", plan);
  evaluation.plan = plan;
  return evaluation;
}

Evaluation evaluate(const Job& job, const PolicySpec& policy) {
  try {
    if (policy.name == "resident") return evaluate_resident(job);
    if (policy.name == "graph") return evaluate_graph(job, policy);
    const PolicyEntry& entry = policy_entry(policy.name);
    if (entry.fixed) return evaluate_static(job, policy);
    return sum_up(job, policy.text(),
                  replay_job(job, [&] { return entry.runtime(policy); }, policy.seconds("host_overhead")));
  } catch (const InfeasibleError& e) {
    return cannot_run(job, policy.text(), e.what());
  }
}

}  // namespace hyperoffload
