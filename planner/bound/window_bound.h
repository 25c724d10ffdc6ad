// Proven limits in one cheap pass: the least stall any valid plan can reach at the given HBM capacity,
// and the least HBM capacity at which that stall could be zero.
//
// Why it is a bound. Take two ops i before j of one engine and look at the time from i's start to j's.
//  Loads: ops i..j read R distinct bytes of tensors that exist when i starts and that none of them
//   wrote first. At i's start HBM holds at most C bytes, of which what i only writes and its workspace
//   are not among the R. The rest, M = R - (C - those), is not there yet: its transfers start after i's
//   start (bytes count from a transfer's start) and are over before the reader starts, that is by j's
//   start. So start_j - start_i >= latencies + M / link bandwidth.
//  Stores: ops i..j-1 wrote D distinct bytes (tensors of this engine alone) that are still alive when j
//   starts. At j's start HBM holds at most C less what is born at j; the rest must have a valid pool
//   copy, stored after its write, so after i's start: start_j - start_i >= latencies + rest / bandwidth.
//  Cold start: in a single pass what starts in HBM has no pool copy. What ops before j accessed and what
//   is still alive (tensors of this engine alone) is in HBM at j's start, or was stored, or came from the
//   pool, so all of it but C bytes crossed one link or the other: start_j >= rest / (both bandwidths).
//  HBM: ops i..j-1 and those copies share HBM bandwidth B. Op k takes at least its time alone d and
//   (h + c) / B if c bytes are copied meanwhile, c at most bandwidth x its time. So c up to
//   f = min(link x d, B x d - h) is free, more costs 1/B a byte while the op is bound by HBM, then 1/link
//   a byte while the engine waits; the cheapest way to place M is a bound.
// Starts follow each other by dependencies, engine order and these windows; the longest path is a lower
// limit for the iteration, stalls of disjoint windows add up. The state at the iteration's start is
// free (any C bytes, any copies): true for one cold pass, whose initial placement is free, and for the
// last of many. A transfer takes whole latencies: as many as the bytes have largest tensors.
// Least HBM: the same inequalities with no stall, op by op as early and as late as the ideal allows.
// Any subset of windows is valid: all lengths 2^k, and all pairs of a coarse grid.
// O((ops + accesses) log ops + grid^2). Weakness: what must be moved together with what stays idle is
// only seen within one window; the linear relaxation sees more.
#pragma once

#include "planner/analysis/flat_graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

// `ideal`: the iteration's time with everything in place.
Bound window_bound(const FlatGraph& graph, double ideal, int iterations);

}  // namespace hyperoffload
