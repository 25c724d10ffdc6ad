// The tight bound of a small trace on a small machine.
#pragma once

#include "planner/bound/lp_bound.h"
#include "planner/planner.h"
#include "test/planner/toy.h"

namespace hyperoffload::toy {

inline Bound lp(const Graph& g, const Hardware& h, int iterations, const LpBoundOptions& options = {}) {
  FlatGraph flat(g, h);
  flat.machine = best_npu(h);
  return lp_bound(flat, ideal(g, h), iterations, options);
}

inline double stall(const Graph& g, const Hardware& h, int iterations) { return lp(g, h, iterations).stall.value; }

}  // namespace hyperoffload::toy
