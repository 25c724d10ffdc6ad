// `g10`: G10's smart tensor migration (Zhang et al., MICRO 2023), with the pool as its only tier.
//
// *Inactive period*: a stretch between two uses of a tensor, for what persists also from its last use to the
// first of the next iteration. While the bytes live at some op exceed 99 % of HBM, the period with the largest
// benefit is taken: its bytes x the time of those of its ops that exceed it, from when half its eviction could be
// done to when half its load would be (ties: bytes x length). It must be longer than evicting and loading take
// with half of one again to spare. A ledger holds what each link still carries during each op: eviction begins
// with the period and takes what is free, the load ends with it; if they meet, the period is passed over.
// Then loads, in order, begin earlier while the op before has room (eager prefetch).
// Source: the paper's sections on tensor vitality and migration; details as its code has them
// (github.com/platformxlab/G10 at c42dfb1, analysis.cc: target 0.99, spare 0.5, 45 us a migration).
// Ours: no SSD; periods that wrap use the ledger too (there they go by time alone); an eager load needs room for
// its own bytes; what is still too much when no period hides any more is taken by the same benefit without the
// ledger and loaded right before its use, as the page faults would do there (loads already placed are put off, too).
// O(chosen x (periods x log ops + ops)). One timeline: program order, the ops of the busiest engine.
#pragma once

#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

// InfeasibleError when everything inactive is away and an op still finds no room.
StaticPlan g10_migration(const Graph& graph, const Hardware& hardware, int iterations);

}  // namespace hyperoffload
