// A policy on a machine whose NPUs have traces of their own (`ranks` in a trace file).
#pragma once

#include <vector>

#include "app/evaluate.h"
#include "app/policy_spec.h"

namespace hyperoffload {

struct RankJob {
  const std::vector<Graph>& graphs;  // one for each NPU that takes part
  const Hardware& hardware;
  int iterations = 1;
};

// Each rank is planned on its own, with its fair share of what is shared. No bound, no timeline.
Evaluation evaluate_ranks(const RankJob& job, const PolicySpec& policy);

}  // namespace hyperoffload
