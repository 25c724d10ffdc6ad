// Where persistent tensors start when a runtime has yet seen nothing: in HBM in the order of first access (an op's
// reads before what it only writes, then by index; those never accessed last) while they fit beside the inputs; the
// first that doesn't and all that follow start in the pool (docs/semantics.md, rule 19). O(accesses).
#pragma once

#include <vector>

#include "sim/replay/npu_view.h"

namespace hyperoffload {

// Those that start in the pool, sorted; `initial: pool` ones are always among them.
std::vector<TensorId> start_by_first_use(const NpuView& view, Bytes capacity);

}  // namespace hyperoffload
