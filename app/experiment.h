// An experiment: a workload on a machine under several policies. YAML, as the README describes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/policy_spec.h"
#include "planner/planner.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/yaml_reader.h"
#include "sim/report/chrome_trace.h"

namespace hyperoffload {

struct Experiment {
  std::string name;
  Hardware hardware;  // `hbm:` applied
  std::vector<Graph> graphs;  // one that all NPUs replay, or one for each
  int iterations = 1;
  std::vector<PolicySpec> policies;
  bool timeline = false;
  TimelineFilter timeline_filter;  // of `run`'s options
  BoundMethod bound = BoundMethod::kWindow;
};

inline constexpr int kMaxIterations = 100'000'000;

// `settings`: "key=value" each, laid over the file before it is read. One with `sweep:` is refused.
Experiment load_experiment(const std::string& path, const std::vector<std::string>& settings);

// In steps, for sweeps and questions. The file with the settings laid over it:
YamlNode load_experiment_file(const std::string& path, const std::vector<std::string>& settings);
// One value more; where the path leads into a machine or workload that is a file name, its content is put
// in the place of the name first.
YamlNode with_experiment_value(const YamlNode& experiment, const std::string& path, const YamlNode& value);
// Machine and workload as content, not as file names.
YamlNode with_files_in_place(const YamlNode& experiment);
// All but the graphs; a `sweep:` is passed over.
Experiment read_experiment(const YamlNode& experiment);
// The `workload:` as it stands in the experiment or in the file it names.
YamlNode workload_of(const YamlNode& experiment);
std::vector<Graph> read_workload_graphs(const YamlNode& workload);
Graph read_workload_graph(const YamlNode& workload);  // a trace of several ranks is refused
// The layer trace that a workload names; none where it is generated.
std::optional<std::string> trace_file_of(const YamlNode& workload);

}  // namespace hyperoffload
