// `fixed_distance`: static offload by counts of ops, as MindSpore's passes for HyperOffload have it (their knobs are
// select_distance, select_num, prefetch_distance, release_distance; what is known of them are these names, so the
// rules below are our reading).
//
// A tensor that is idle for at least `select` ops may leave. The longest idle stretches (then larger, then earlier)
// are taken until everything fits, each only where HBM is short, or simply the first `count` of them. A copy out starts behind the latest write; the bytes
// are given back behind the last use, or `release` ops later; the copy in starts `distance` ops before the use:
// beside them, whatever they and the copy take. A load that would begin before its iteration begins in the one
// before. Distances count ops in program order. No durations, no bandwidths. O(stretches x log).
#pragma once

#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

struct FixedDistanceOptions {
  int distance = 2;
  int select = 0;  // 0: such that the tensor is away for at least one op
  int count = 0;   // 0: until everything fits
  int release = 0;
};

// InfeasibleError when all candidates are taken (with `count` 0) and it still does not fit.
StaticPlan fixed_distance(const Graph& graph, const Hardware& hardware, int iterations,
                          const FixedDistanceOptions& options);

}  // namespace hyperoffload
