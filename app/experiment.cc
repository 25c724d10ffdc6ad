#include "app/experiment.h"

#include <fmt/format.h>

#include "sim/model/error.h"
#include "sim/model/yaml_reader.h"
#include "sim/workload/workload.h"

namespace hyperoffload {
namespace {

Graph read_workload_graph(const YamlNode& node) {
  if (node.is_scalar()) return read_workload_graph(load_yaml(node.file_name()));
  if (node.is_map())
    for (const auto& [key, value] : node.map())
      if (key == "trace") {
        const YamlMap map(node, {"trace"});
        return load_graph(map.get("trace").file_name());
      }
  return generate_trace(read_workload(node));
}

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

}  // namespace

Experiment load_experiment(const std::string& path, const std::vector<std::string>& settings) {
  const YamlNode root = apply_overrides(load_yaml(path), settings);
  const YamlMap map(
      root, {"name", "description", "hardware", "workload", "hbm", "iterations", "policies", "output"});
  Experiment experiment;
  experiment.name = map.get("name").string();
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
  experiment.graph = read_workload_graph(map.get("workload"));
  return experiment;
}

}  // namespace hyperoffload
