// Whether an op accesses a tensor. O(log accesses).
#pragma once

#include <algorithm>

#include "sim/model/graph.h"

namespace hyperoffload {

inline bool op_accesses(const Op& op, TensorId t) {
  return std::binary_search(op.reads.begin(), op.reads.end(), t) ||
         std::binary_search(op.writes.begin(), op.writes.end(), t);
}

}  // namespace hyperoffload
