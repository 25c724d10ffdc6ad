#include "app/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "sim/model/atomic_file.h"
#include "sim/model/check.h"
#include "sim/model/error.h"
#include "sim/replay/isolate.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/result_csv.h"
#include "sim/report/result_json.h"
#include "sim/report/series_json.h"

namespace hyperoffload {
namespace {

namespace fs = std::filesystem;

void write_timeline(const std::string& path, const Timeline& timeline) {
  std::ostringstream text;
  const TimelineSummary summary = write_chrome_trace(text, timeline);
  if (summary.zero_length > 0)
    std::fputs(fmt::format("{}: {} slices take no time, so no viewer shows them\n", path, summary.zero_length).c_str(), stderr);
  if (!summary.warning.empty()) std::fputs(fmt::format("{}: {}\n", path, summary.warning).c_str(), stderr);
  write_file_atomically(path, text.str());
}

// Plans, series and timeline of one policy, if there is a directory.
template <class AnyJob>
void write_beside(const Experiment& experiment, const AnyJob& job, const Evaluation& evaluation,
                  const std::string& stem) {
  const std::vector<Graph>& graphs = experiment.graphs;
  if (evaluation.plan) write_output(stem + ".plan.json", plan_to_json(*evaluation.plan, graphs[0]));
  for (std::size_t n = 0; n < evaluation.plans.size(); ++n)
    write_output(fmt::format("{}.plan.{}.json", stem, n), plan_to_json(evaluation.plans[n], graphs[n]));
  if (!evaluation.series.empty()) {
    const auto slowest = static_cast<std::size_t>(evaluation.result.slowest);
    const Graph& graph = evaluation.changed ? *evaluation.changed : graphs[graphs.size() > 1 ? slowest : 0];
    write_output(stem + ".series.json",
                 series_to_json(graph, experiment.hardware, evaluation.result, evaluation.series));
  }
  if (evaluation.record) write_timeline(stem + ".trace.json", job, evaluation, experiment.timeline_filter);
}

// What an earlier run left: a run that is stopped must leave no results beside files of another one. Results go
// first, and are written last.
void remove_earlier(const Experiment& experiment, const std::string& directory) {
  std::error_code none;  // what can't be removed can't be written either, and that is said
  for (const char* name : {"results.csv", "results.json"}) fs::remove(fs::path(directory) / name, none);
  for (const PolicySpec& policy : experiment.policies)
    for (const char* end : {".plan.json", ".series.json", ".trace.json"})
      fs::remove(fs::path(directory) / (policy_file_stem(policy.text()) + end), none);
}

// One policy, in its own process; what comes back is its result as JSON.
std::string run_policy(const Experiment& experiment, const PolicySpec& policy, const std::string& directory) {
  const bool writes = !directory.empty();
  const std::string stem = (fs::path(directory) / policy_file_stem(policy.text())).string();
  const auto run = [&](const auto& job, const Evaluation& evaluation) {
    if (writes) write_beside(experiment, job, evaluation, stem);
    return result_to_json(evaluation.result);
  };
  const bool keep_record = experiment.timeline && writes;
  if (experiment.graphs.size() > 1) {
    const RankJob job{experiment.graphs, experiment.hardware, experiment.iterations, keep_record, writes,
                      experiment.bound};
    return run(job, evaluate_ranks(job, policy));
  }
  const Job job{experiment.graphs[0], experiment.hardware, experiment.iterations, keep_record, false, writes,
                experiment.bound};
  return run(job, evaluate(job, policy));
}

}  // namespace

std::string policy_file_stem(std::string policy) {
  std::replace_if(
      policy.begin(), policy.end(), [](char c) { return c == ':' || c == '=' || c == ',' || c == '/'; }, '-');
  return policy;
}

void make_directory(const std::string& directory) {
  if (directory == "-") throw InputError("-o", "-", "a folder: several files are written");
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || !fs::is_directory(directory))
    throw InputError("-o " + directory, error ? error.message() : "a file of that name",
                     "a folder, or a place to make one");
}

void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code none;  // a file that isn't there, and "-", is no other
    if (input != "-" && output != "-" && fs::equivalent(output, input, none))
      throw InputError("-o " + output, "a file that is read", "another one");
  }
}

void write_output(const std::string& path, const std::string& text) {
  if (path.empty())
    std::fputs(text.c_str(), stderr);
  else
    write_file_atomically(path, text);
}

void write_timeline(const std::string& path, const Job& job, const Evaluation& evaluation,
                    const TimelineFilter& filter) {
  HYPER_CHECK(evaluation.record.has_value(), "a timeline needs the run's record");
  write_timeline(path, {evaluation.changed ? *evaluation.changed : job.graph, job.hardware, *evaluation.record,
                        evaluation.result.policy, evaluation.plan ? &*evaluation.plan : nullptr, filter});
}

void write_timeline(const std::string& path, const RankJob& job, const Evaluation& evaluation,
                    const TimelineFilter& filter) {
  HYPER_CHECK(evaluation.record.has_value(), "a timeline needs the run's record");
  Timeline timeline{job.graphs[0], job.hardware, *evaluation.record, evaluation.result.policy, nullptr, filter};
  for (const Graph& graph : job.graphs) timeline.ranks.push_back(&graph);
  for (const Plan& plan : evaluation.plans) timeline.rank_plans.push_back(&plan);
  write_timeline(path, timeline);
}

std::vector<Result> run_experiment(const Experiment& experiment, const std::string& directory, int jobs) {
  if (!directory.empty()) {
    make_directory(directory);
    remove_earlier(experiment, directory);
  }
  std::vector<IsolatedWork> works;
  for (const PolicySpec& policy : experiment.policies)
    works.push_back([&] { return run_policy(experiment, policy, directory); });
  std::vector<Result> results;
  for (const std::string& json : run_isolated_all(works, jobs)) {
    const std::vector<Result> parsed = parse_results(json, "a policy's result");
    HYPER_CHECK(parsed.size() == 1, "one result a policy");
    results.push_back(parsed.front());
  }
  if (!directory.empty()) {
    write_output((fs::path(directory) / "results.json").string(), results_to_json(results));
    write_output((fs::path(directory) / "results.csv").string(), results_to_csv(results));
  }
  return results;
}

}  // namespace hyperoffload
