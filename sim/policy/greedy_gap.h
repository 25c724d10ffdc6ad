// `greedy_gap`: hyper-parallel's activation offload (mindspore-ai/hyper-parallel, issue 693), its rules as that
// issue states them.
//
// R[i] is what is in HBM at op i when nothing moves. Candidates are adjacent accesses (a, b) of a tensor with an
// op between, longest first (then larger, then earlier). While the highest R exceeds the limit, a candidate
// with an R above it inside (a, b) is taken: R[a+1..b-1] falls by its size. It is copied out behind the latest
// write at or before a, released behind a, and copied in right before b. No durations, no bandwidths: every load
// is exposed. One copy stream serves both directions (`streams=1`, as there).
//
// Not as there: HBM's capacity is the limit, with no first step that runs by other rules; the stream waits for room
// instead of failing, and lets the other direction pass meanwhile. With several engines "right before b" is behind
// the last op that b follows, and R holds what later ops of other engines may take early. `wrap` (ours) also takes the gap of a persistent
// tensor from its last access to its first in the next iteration; there only activations are offered.
// O((accesses + chosen) x log).
#pragma once

#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

struct GreedyGapOptions {
  bool wrap = true;
  int streams = 1;
};

// InfeasibleError when no candidate is left and R still exceeds the HBM there is.
StaticPlan greedy_gap(const Graph& graph, const Hardware& hardware, int iterations, const GreedyGapOptions& options);

}  // namespace hyperoffload
