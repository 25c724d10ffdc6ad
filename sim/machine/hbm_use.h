// Which ops need a flow of their own through HBM, and whether HBM can bind at all: exact shortcuts that
// spare SimGrid flows.
//
// H: HBM bandwidth; r, w: the caps of the two copies; E engines have ops that move bytes through HBM, one at
// a time each, so at most F = E + 2 flows are there at once.
// 1. Copies are free: max-min sharing gives every flow min(its cap, H/F) at least. With r, w <= H/F (or all
// caps
//    together <= H) a copy is never slowed by HBM, whoever else is there.
// 2. An op is quiet if what is sure to be left for it, H - r - w - the largest caps of the other engines,
//    is at least its cap, or moves its bytes within its compute time: it ends after its time alone, always.
// 3. Copies being free, a quiet op's flow matters to other engines' flows only: it is left out if no other
//    engine has any, or if all ops of all engines are quiet. If all are, no HBM link is needed either.
// Collectives that load HBM, or unequal weights of demand and prefetch, switch all of this off.
#pragma once

#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/op_cost.h"

namespace hyperoffload {

struct HbmUse {
  std::vector<char> quiet;  // per op: takes its time alone, no flow needed
  bool idle = false;        // HBM never binds
};

// `costs`: local_cost() of each op.
HbmUse hbm_use(const Graph& graph, const std::vector<OpCost>& costs, const Hardware& hardware);

}  // namespace hyperoffload
