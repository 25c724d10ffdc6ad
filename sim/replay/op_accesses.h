// What an op accesses, once a tensor: first what it reads, then what it only writes, each by rising tensor.
#pragma once

#include <algorithm>

#include "sim/model/graph.h"

namespace hyperoffload {

// Calls visit(tensor, reads, writes). O(accesses log accesses).
template <class Visit>
void for_each_read_then_write(const Op& op, Visit visit) {
  for (TensorId t : op.reads) visit(t, true, std::binary_search(op.writes.begin(), op.writes.end(), t));
  for (TensorId t : op.writes)
    if (!std::binary_search(op.reads.begin(), op.reads.end(), t)) visit(t, false, true);
}

}  // namespace hyperoffload
