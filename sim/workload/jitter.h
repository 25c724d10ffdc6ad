// A trace whose kernels take other times than it says: each op's duration, FLOPs and HBM bytes times one factor, drawn
// evenly from [1 - share, 1 + share] by seed and place in program order. Collectives' bytes and everything else stay, so
// that a plan for the trace as it was is one for this, too. Not modelled: times that drift, or differ from one iteration
// to the next. O(ops).
#pragma once

#include <cstdint>

#include "sim/model/graph.h"

namespace hyperoffload {

Graph with_jitter(const Graph& graph, double share, std::uint64_t seed);  // 0 <= share < 1

}  // namespace hyperoffload
