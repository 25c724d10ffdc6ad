#include "app/experiment.h"

#include <fmt/format.h>

#include "app/evaluate.h"
#include "app/evaluate_ranks.h"
#include "sim/model/error.h"
#include "sim/model/yaml_reader.h"
#include "sim/workload/workload.h"

namespace hyperoffload {
namespace {

std::vector<PolicySpec> read_policies(const YamlNode& node) {
  std::vector<PolicySpec> policies;
  for (const YamlNode& item : node.list()) {
    policies.push_back(parse_policy(item));
    for (std::size_t i = 0; i + 1 < policies.size(); ++i)
      if (policies[i].text() == policies.back().text())
        item.fail(fmt::format("policy {} again", policies.back().text()), "each policy once");
  }
  if (policies.empty()) node.fail("an empty list", "at least one policy");
  return policies;
}

const std::vector<std::string> kKeys = {"name",       "description", "hardware", "workload", "hbm",
                                        "iterations", "policies",    "output",   "sweep", "bound"};

// A file's content in the place of its name, where `path` leads into it.
YamlNode with_content(const YamlNode& experiment, const std::string& path) {
  for (const auto& [key, value] : experiment.map())
    if ((key == "hardware" || key == "workload") && path.starts_with(key + ".") && value.is_scalar())
      return with_value(experiment, key, load_yaml(value.file_name()));
  return experiment;
}

}  // namespace

YamlNode load_experiment_file(const std::string& path, const std::vector<std::string>& settings) {
  YamlNode experiment = load_yaml(path);
  for (const std::string& setting : settings)
    experiment = apply_overrides(with_content(experiment, setting.substr(0, setting.find('='))), {setting});
  return experiment;
}

YamlNode with_experiment_value(const YamlNode& experiment, const std::string& path, const YamlNode& value) {
  return with_value(with_content(experiment, path), path, value);
}

YamlNode with_files_in_place(const YamlNode& experiment) {
  return with_content(with_content(experiment, "hardware."), "workload.");
}

YamlNode workload_of(const YamlNode& experiment) {
  const YamlNode node = YamlMap(experiment, kKeys).get("workload");
  return node.is_scalar() ? load_yaml(node.file_name()) : node;
}

std::optional<std::string> trace_file_of(const YamlNode& workload) {
  if (workload.is_map())
    for (const auto& [key, value] : workload.map())
      if (key == "trace") return YamlMap(workload, {"trace"}).get("trace").file_name();
  return std::nullopt;
}

Graph read_workload_graph(const YamlNode& workload) {
  const std::optional<std::string> trace = trace_file_of(workload);
  return trace ? load_graph(*trace) : generate_trace(read_workload(workload));
}

std::vector<Graph> read_workload_graphs(const YamlNode& workload) {
  if (const std::optional<std::string> trace = trace_file_of(workload)) return load_rank_graphs(*trace);
  std::vector<Graph> graphs;
  graphs.push_back(generate_trace(read_workload(workload)));
  return graphs;
}

Experiment read_experiment(const YamlNode& root) {
  const YamlMap map(root, kKeys);
  Experiment experiment;
  experiment.name = map.get("name").string();
  if (const auto description = map.find("description")) description->string();
  const YamlNode hardware = map.get("hardware");
  experiment.hardware = hardware.is_scalar() ? load_hardware(hardware.file_name()) : read_hardware(hardware);
  if (const auto hbm = map.find("hbm")) replace_hbm_capacity(experiment.hardware, hbm->bytes(), hbm->where());
  if (const auto iterations = map.find("iterations"))
    experiment.iterations = static_cast<int>(iterations->integer(1, kMaxIterations));
  experiment.policies = read_policies(map.get("policies"));
  if (const auto output = map.find("output")) {
    const YamlMap keys(*output, {"timeline"});
    if (const auto timeline = keys.find("timeline")) experiment.timeline = timeline->boolean();
  }
  if (const auto bound = map.find("bound"))
    experiment.bound = parse_bound_method(bound->string(), bound->where());
  return experiment;
}

Experiment load_experiment(const std::string& path, const std::vector<std::string>& settings) {
  const YamlNode root = load_experiment_file(path, settings);
  if (const auto sweep = YamlMap(root, kKeys).find("sweep"))
    sweep->fail("a sweep", "none: `hyperoffload sweep` runs it, `run` takes one point");
  Experiment experiment = read_experiment(root);
  const YamlNode workload = workload_of(root);
  experiment.graphs = read_workload_graphs(workload);
  if (experiment.graphs.size() > 1)
    check_rank_count(experiment.graphs, experiment.hardware, workload.where() + ": ranks");
  return experiment;
}

}  // namespace hyperoffload
