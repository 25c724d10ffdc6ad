#include "app/commands.h"

#include <fmt/format.h>

#include <cstdio>

#include "app/evaluate.h"
#include "app/evaluate_ranks.h"
#include "app/experiment.h"
#include "app/frontier.h"
#include "app/output.h"
#include "app/recompute_choice.h"
#include "app/remedies.h"
#include "planner/memory_map.h"
#include "planner/objectives.h"
#include "planner/planner.h"
#include "planner/reorder.h"
#include "sim/model/error.h"
#include "sim/model/parse_units.h"
#include "sim/report/result_json.h"
#include "sim/report/table.h"
#include "sim/report/trace_info.h"
#include "sim/workload/jitter.h"
#include "sim/workload/workload.h"

namespace hyperoffload {
namespace {

struct Inputs {
  Graph graph;
  Hardware hardware;
};

Hardware load_machine(const MachineOptions& options) {
  Hardware hardware = load_hardware(options.hardware);
  if (options.hbm) replace_hbm_capacity(hardware, parse_bytes(*options.hbm, "--hbm"), "--hbm");
  return hardware;
}

Inputs load_inputs(const MachineOptions& options) {
  return {load_graph(options.trace), load_machine(options)};
}

TimelineFilter filter_of(const TimelineOptions& options, int npus) {
  TimelineFilter filter;
  if (!options.from.empty()) filter.from = parse_seconds(options.from, "--timeline-from");
  if (!options.to.empty()) filter.to = parse_seconds(options.to, "--timeline-to");
  if (!options.min_duration.empty())
    filter.min_duration = parse_seconds(options.min_duration, "--timeline-min-duration");
  if (filter.to <= filter.from)
    throw InputError("--timeline-to", options.to, "a time after --timeline-from");
  if (options.npu >= npus)
    throw InputError("--timeline-npu", std::to_string(options.npu),
                     npus == 1 ? "0, the only one" : fmt::format("0 to {}", npus - 1));
  filter.npu = options.npu;
  return filter;
}

bool any(const TimelineOptions& options) {
  return !options.from.empty() || !options.to.empty() || !options.min_duration.empty() || options.npu >= 0;
}

int simulate_ranks(const SimulateOptions& options, const std::vector<Graph>& ranks) {
  const Hardware hardware = load_machine(options);
  check_rank_count(ranks, hardware, options.trace + ": ranks");
  if (!options.plan.empty())
    throw InputError("--plan", "a trace of several ranks", "--policy: a plan is of one rank");
  if (options.fold) throw InputError("--fold", "a trace of several ranks", "one trace that all NPUs replay");
  const TimelineFilter filter = filter_of(options.show, hardware.npu_count);
  const RankJob job{ranks, hardware, options.iterations, !options.timeline.empty(), false,
                    parse_bound_method(options.bound, "--bound")};
  const Evaluation evaluation = evaluate_ranks(job, parse_policy(options.policy, "--policy"));
  if (!evaluation.result.has_figures()) throw InfeasibleError(evaluation.result.reason);
  if (!options.timeline.empty()) write_timeline(options.timeline, job, evaluation, filter);
  if (!options.output.empty()) write_output(options.output, result_to_json(evaluation.result));
  if (options.output != "-") write_output("-", results_table({evaluation.result}));
  return 0;
}

}  // namespace

int trace_generate_command(const std::string& workload, const std::string& output) {
  refuse_overwriting(output, {workload});
  write_output(output, graph_to_json(generate_trace(load_workload(workload))));
  return 0;
}

int trace_jitter_command(const std::string& trace, const std::string& by, std::uint64_t seed, const std::string& output) {
  const double share = parse_share(by, "--by");
  if (share >= 1) throw InputError("--by", by, "below 100%");
  refuse_overwriting(output, {trace});
  write_output(output, graph_to_json(with_jitter(load_graph(trace), share, seed)));
  return 0;
}

int trace_info_command(const std::string& trace, bool json) {
  const TraceInfo info = trace_info(load_graph(trace));
  write_output("-", json ? trace_info_json(info) : trace_info_table(info));
  return 0;
}

// What addresses cost, for a person.
std::string arena_words(const Arena& arena) {
  const auto over = [&](std::int64_t height) {
    const double share = arena.live_peak > 0 ? static_cast<double>(height) / static_cast<double>(arena.live_peak) - 1 : 0;
    return fmt::format("{} B ({:+.2f} %)", height, 100 * share);
  };
  return fmt::format(
      "addresses: {} B are alive at the fullest instant, {} in program order; the arena takes {}, first fit by size "
      "would take {}{}\n",
      arena.live_peak, over(arena.program_peak), over(arena.height), over(arena.first_fit_by_size),
      arena.proven > arena.program_peak ? ", no packing of the plan is lower than " + over(arena.proven) : "");
}

int frontier_command(const PlanOptions& options, const Inputs& inputs, const PlannerOptions& planner) {
  if (options.explain || options.map)
    throw InputError("--frontier", options.map ? "--map" : "--explain", "a curve alone: no single plan is shown");
  if (options.addresses) throw InputError("--frontier", "--addresses", "a curve alone: no single plan is shown");
  const auto curve = frontier(inputs.graph, inputs.hardware, planner, options.points);
  write_output(options.output.empty() ? "-" : options.output,
               options.output.ends_with(".csv")
                   ? frontier_to_csv(curve)
                   : frontier_to_json(curve, inputs.graph, inputs.hardware, options.iterations));
  return 0;
}

int plan_command(const PlanOptions& options) {
  refuse_overwriting(options.output, {options.trace, options.hardware});
  const double slowdown =
      options.max_slowdown.empty() ? 0 : parse_share(options.max_slowdown, "--max-slowdown");
  PlannerOptions planner;
  planner.bound = parse_bound_method(options.bound, "--bound");
  Inputs inputs = load_inputs(options);
  planner.iterations = options.iterations;
  planner.explain = options.explain;
  planner.effort = options.effort;
  planner.pinned = options.pinned;
  pinned_tensors(inputs.graph, options.never_offload, "--never-offload");  // is told by its own name
  planner.pinned.insert(planner.pinned.end(), options.never_offload.begin(), options.never_offload.end());
  planner.addresses = options.addresses;
  planner.read_slack = planner.write_slack = parse_share(options.slack, "--slack");
  if (planner.read_slack > 100) throw InputError("--slack", options.slack, "at most 10000%");
  if (options.frontier) return frontier_command(options, inputs, planner);
  PlanOutcome outcome;
  if (!options.recompute.empty()) {
    for (const std::string& other : {options.trace, options.output.empty() ? "-" : options.output})
      if (options.changed_trace == other) throw InputError("--changed-trace", other, "a file of its own");
    const std::optional<int> layers =
        options.recompute == "auto" ? std::nullopt : std::optional(std::stoi(options.recompute));
    RecomputeChoice choice = choose_recompute(inputs.graph, layers, [&](const Graph& graph) {
      return make_plan(graph, inputs.hardware, planner).plan;
    });
    if (choice.graph) inputs.graph = std::move(*choice.graph);
    write_output("", fmt::format("{} of the layers compute again what their backward ops need\n", choice.layers));
  }
  if (options.max_slowdown.empty()) {
    outcome = (options.reorder ? make_reordered_plan : make_plan)(inputs.graph, inputs.hardware, planner);
  } else {
    LeastHbm least = least_hbm(inputs.graph, inputs.hardware, planner, slowdown);
    const Bytes reserved = inputs.hardware.hbm_reserved, capacity = least.hbm + reserved;
    write_output("", fmt::format("{} B of HBM ({}) keep {:.4g}x the ideal time; at least {} B are proven to be needed{}\n",
                                 capacity.value, show_bytes(capacity.value), 1 + slowdown,
                                 (least.proven + reserved).value,
                                 reserved > Bytes(0) ? fmt::format("; {} B of it are reserved", reserved.value) : ""));
    inputs.hardware.hbm_capacity = capacity;
    outcome = std::move(least.outcome);
  }
  const std::string json = plan_to_json(outcome.plan, inputs.graph);
  if (!options.recompute.empty()) write_output(options.changed_trace, graph_to_json(inputs.graph));
  if (outcome.arena) write_output("", arena_words(*outcome.arena));
  std::string said;
  if (options.map)
    said = draw_memory_map(inputs.graph, inputs.hardware, outcome.plan, options.iterations, options.width);
  if (options.explain && !options.explain_name.empty())
    said += explain_name(inputs.graph, inputs.hardware, outcome.plan, options.iterations, options.explain_name);
  else if (options.explain)
    said += to_text(outcome.log);
  if (options.explain && options.explain_name.empty() && !options.reorder && options.max_slowdown.empty())
    said += remedy_words(inputs.graph, inputs.hardware, planner, outcome.plan);
  if (!options.output.empty()) write_output(options.output, json);
  if (!said.empty())
    write_output(options.output == "-" ? "" : "-", said);
  else if (options.output.empty())
    write_output("-", json);
  return 0;
}

int check_command(const CheckOptions& options) {
  const Inputs inputs = load_inputs(options);
  const Plan plan = load_plan(options.plan, inputs.graph);
  const std::string broken = broken_rules({inputs.graph, inputs.hardware, options.iterations}, plan);
  write_output("-", broken.empty() ? "the plan keeps every rule\n" : broken + "\n");
  return broken.empty() ? 0 : 3;
}

int simulate_command(const SimulateOptions& options) {
  for (const std::string& output : {options.output, options.timeline})
    refuse_overwriting(output, {options.trace, options.hardware, options.plan});
  const BoundMethod bound = parse_bound_method(options.bound, "--bound");
  if (options.plan.empty() == options.policy.empty())
    throw InputError("simulate",
                     options.plan.empty() ? "neither --plan nor --policy" : "both --plan and --policy",
                     "one of them");
  if (options.output == "-" && options.timeline == "-")
    throw InputError("--timeline", "- beside -o -", "at most one of them on standard output");
  if (options.timeline.empty() && any(options.show))
    throw InputError("simulate", "a choice of what the timeline shows, but no timeline", "--timeline FILE");
  std::vector<Graph> ranks = load_rank_graphs(options.trace);
  if (ranks.size() > 1) return simulate_ranks(options, ranks);
  const Inputs inputs{std::move(ranks.front()), load_machine(options)};
  const TimelineFilter filter = filter_of(options.show, options.fold ? 1 : inputs.hardware.npu_count);
  const Job job{inputs.graph, inputs.hardware, options.iterations, !options.timeline.empty(), options.fold,
                false, bound};
  const Evaluation evaluation = options.plan.empty() ? evaluate(job, parse_policy(options.policy, "--policy"))
                                                     : evaluate(job, load_plan(options.plan, inputs.graph));
  const Result& result = evaluation.result;
  if (!result.has_figures()) throw InfeasibleError(result.reason);
  if (!options.timeline.empty()) write_timeline(options.timeline, job, evaluation, filter);
  if (!options.output.empty()) write_output(options.output, result_to_json(result));
  if (options.output != "-") write_output("-", results_table({result}));
  return 0;
}

int run_command(const RunOptions& options) {
  Experiment experiment = load_experiment(options.experiment, options.settings);
  experiment.timeline_filter = filter_of(options.timeline, experiment.hardware.npu_count);
  if (any(options.timeline)) {
    if (options.directory.empty())
      throw InputError("run", "a choice of what the timelines show, but no folder for them", "-o DIR");
    experiment.timeline = true;
  }
  const std::vector<Result> results = run_experiment(experiment, options.directory, options.jobs);
  write_output("-", results_table(results) + results_answer(results));
  return 0;
}

}  // namespace hyperoffload
