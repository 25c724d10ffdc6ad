// What commands write: results, plans and timelines, each whole or not at all.
#pragma once

#include <string>
#include <vector>

#include "app/evaluate.h"
#include "app/evaluate_ranks.h"
#include "app/experiment.h"

namespace hyperoffload {

// "-": standard output; "": standard error. Otherwise a file, by a temporary name and a rename.
void write_output(const std::string& path, const std::string& text);

// InputError if the output is one of the files that are read, by whatever path.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs);

// The folder of `-o`, made where it isn't there.
void make_directory(const std::string& directory);

// Chrome trace event JSON; gzipped when the name ends in .gz.
void write_timeline(const std::string& path, const Job& job, const Evaluation& evaluation,
                    const TimelineFilter& filter = {});
void write_timeline(const std::string& path, const RankJob& job, const Evaluation& evaluation,
                    const TimelineFilter& filter = {});

// "on_demand:evict=oldest" -> "on_demand-evict-oldest": a policy in a file's name.
std::string policy_file_stem(std::string policy);

// Runs every policy, `jobs` at once, each in a process of its own. With a directory: results.json,
// results.csv, POLICY.series.json, POLICY.plan.json of a policy that plans (POLICY.plan.N.json of rank N where each
// has a trace of its own), POLICY.trace.json if timelines are asked for.
std::vector<Result> run_experiment(const Experiment& experiment, const std::string& directory, int jobs);

}  // namespace hyperoffload
