// The linear program's own schedule as a plan (LpGuide::flows): what it moves in which slot, in pieces.
//
// Shares become byte ranges, cut into pieces of at most `piece_bytes`. A slot is the wait before an op or the time
// beside it; what moves in it stands behind the op before. The program lets everything in a slot flow evenly, so that
// what is stored makes room for what is loaded all along: pieces go into the queues in that order, by how far the
// slot's stores and loads are, each piece leaving as its store ends. All stores before all loads would cost up to 10 % of
// the ideal time: a tensor's actions wait for each other in file order, and ops would take the room that loads
// were to have. Program order holds, at each op, what the program holds at its end: it fits, but for rounding.
// An op takes its room at once, loads piece by piece: one that is short of a little may starve until all that was to move
// beside it has moved. No action can wait for an op to start, but a load can for a store of its tensor: a byte of
// what was stored last before the op comes back at once, at the head of the loads that were too early.
// Nothing here looks at time: the walk judges. A cold pass on one engine, nothing pinned. O(pieces log).
// Weakness: a plan of small pieces is long, and latency counts for each.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "planner/passes/lp_guide.h"
#include "sim/model/plan.h"

namespace hyperoffload {

// `first`: ops that are to start before what moves beside them does.
Plan write_guide(const FlatGraph& graph, const LpGuide& guide, std::int64_t piece_bytes, const std::vector<int>& first = {});

}  // namespace hyperoffload
