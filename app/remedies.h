// What would hide the transfers that a plan can't hide: so much link bandwidth, or so much HBM, found by planning again.
//
// A figure is one that a plan was found for, to 2 % (bandwidth) and 0.1 % (HBM: what the plan of `--max-slowdown 0.1%`
// takes); a little less may do, which the planner would have to find. Hidden: the iteration is at most 0.1 % longer than
// the ideal one. About 30 searches, so only for traces of at most `kRemedyOps` ops (of 200 it took 10 s of CPU where the
// plan took 0.8; of 100 2 s).
#pragma once

#include <optional>
#include <string>

#include "planner/planner.h"

namespace hyperoffload {

inline constexpr std::size_t kRemedyOps = 100;

struct Remedies {
  std::optional<double> link;  // times the bandwidth of all rates between NPU and pool; none: not even 1024 times
  std::optional<Bytes> hbm;    // capacity; none: not even with all in HBM that may be there
};

// Of a plan that stalls. `options` as the plan was made with.
Remedies find_remedies(const Graph& graph, const Hardware& hardware, const PlannerOptions& options);

// A line for `plan --explain`; empty if the plan stalls less than that or the trace is too long.
std::string remedy_words(const Graph& graph, const Hardware& hardware, const PlannerOptions& options, const Plan& plan);

}  // namespace hyperoffload
