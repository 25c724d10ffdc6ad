// A policy on a machine whose NPUs have traces of their own (`ranks` in a trace file).
#pragma once

#include <string>
#include <vector>

#include "app/evaluate.h"
#include "app/policy_spec.h"

namespace hyperoffload {

struct RankJob {
  const std::vector<Graph>& graphs;  // one for each NPU that takes part
  const Hardware& hardware;
  int iterations = 1;
  bool keep_record = false;  // for a timeline: all iterations
  bool series = false;       // keep levels over time, of the slowest NPU
  BoundMethod bound = BoundMethod::kWindow;
};

// InputError(where) unless there is a trace for each NPU.
void check_rank_count(const std::vector<Graph>& graphs, const Hardware& hardware, const std::string& where);

// Each rank is planned on its own, with its fair share of what is shared; `plans` has one each. The bound is
// that of the slowest rank (stall) and of the one that needs most (HBM), each as if it had its links to itself
// and never waited for the others.
Evaluation evaluate_ranks(const RankJob& job, const PolicySpec& policy);

}  // namespace hyperoffload
