// An experiment: a workload on a machine under several policies. YAML, as the README describes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/policy_spec.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"

namespace hyperoffload {

struct Experiment {
  std::string name;
  Hardware hardware;  // `hbm:` applied
  Graph graph;
  int iterations = 1;
  std::vector<PolicySpec> policies;
  bool timeline = false;
};

inline constexpr int kMaxIterations = 100'000'000;

// `settings`: "key=value" each, laid over the file before it is read.
Experiment load_experiment(const std::string& path, const std::vector<std::string>& settings);

}  // namespace hyperoffload
