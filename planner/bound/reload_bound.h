// The least time of an iteration that its loads alone take, whenever they run.
//
// Why it is a bound. On one engine look at HBM as each op starts: it holds all the op accesses and its workspace, and of
// the rest no more bytes than are left. Call a byte's stay from one access (or the iteration's start) to the next *kept* if
// it is there at each op between, else it is loaded again where that next access reads it. Whatever a run does, what it
// keeps fits at each op. The fewest bytes not kept are those of the sweep that, where too much is there, gives up the
// stays that end last: any choice gives up as much of the stays over that op, and one that ends later is over all later ops
// that one which ends sooner is over (Belady's rule, byte by byte; rooms that differ by op change nothing). The same sweep is
// the best for the ops up to any j, too: what ends behind j costs them nothing. So before the last op for which anything is
// loaded ends, the link carried those bytes, in no fewer transfers than the largest tensors take, each with its latency:
//   end >= max over j of (loads for ops up to j: transfers x latency + bytes / bandwidth) + time alone of the ops from j on.
// A load counts from its start, so what is on its way as the iteration starts counts as there. That state is free (any bytes
// up to the capacity), as it is for a cold pass and the last of many iterations.
// O((ops + accesses) log). One engine, no ops in the pool. Weakness: blind to when the link is free (the linear program
// isn't), to stores and to what HBM's bandwidth holds back. It sees every op of a long trace, whose program is coarse.
#pragma once

#include "planner/analysis/flat_graph.h"

namespace hyperoffload {

// Seconds; 0 with several engines, ops in the pool, or an op that doesn't fit.
double reload_bound(const FlatGraph& graph, int iterations);

}  // namespace hyperoffload
