// What a pass that rewrites a program starts from.
#pragma once

#include "sim/model/graph.h"

namespace hyperoffload {

inline GraphSpec spec_of(const Graph& graph) {
  return {graph.name(), graph.meta_json(), graph.tensors(), graph.ops(), graph.engines(), {}};
}

}  // namespace hyperoffload
