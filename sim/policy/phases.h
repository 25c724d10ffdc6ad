// Which ops run forward, backward or as the optimizer: by what the trace says in `phase`.
#pragma once

#include <algorithm>
#include <string>

#include "sim/model/graph.h"

namespace hyperoffload {

inline bool runs_forward(const Op& op) { return op.phase.rfind("forward", 0) == 0; }
inline bool runs_backward(const Op& op) { return op.phase.rfind("backward", 0) == 0; }

// A trace without phases still shows its optimizer by the states that it keeps.
inline bool runs_optimizer(const Graph& graph, const Op& op) {
  const auto state = [&](TensorId t) { return graph.tensor(t).kind == TensorKind::kOptimizer; };
  return op.phase.rfind("optimizer", 0) == 0 || std::any_of(op.reads.begin(), op.reads.end(), state) ||
         std::any_of(op.writes.begin(), op.writes.end(), state);
}

}  // namespace hyperoffload
