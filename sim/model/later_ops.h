// What an op is charged for the later ops that may run before it: the plan checker's rule for traces
// with several engines.
//
// Later means later in program order; an op depends on another through data, `after` and its engine's
// order, transitively. The later ops of one engine that don't depend on an op are those in front of
// the first one that does. Those firsts are found backwards, one row of `engines` places an op; the
// charges are then differences of prefix sums along each engine.
// O((ops + dependencies) x engines) once, O(ops x engines) a charge; 4 bytes x ops x engines held.
#pragma once

#include <vector>

#include "sim/model/check_words.h"
#include "sim/model/graph.h"

namespace hyperoffload {

struct Charges {
  std::vector<WideBytes> hbm, pool;  // per op; empty: none, as on one engine
};

class LaterOps {
 public:
  explicit LaterOps(const Graph& graph);
  // Per op: `takes` is what it takes in its own tier, `prefetches` the HBM bytes anchored on it.
  Charges charges(const std::vector<WideBytes>& takes, const std::vector<WideBytes>& prefetches) const;

 private:
  const Graph& graph_;
  std::vector<int> dependent_;  // per op and engine: the place there of the first op that depends on it
};

}  // namespace hyperoffload
