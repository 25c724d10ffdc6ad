// Many NPUs that all do the same as one: a representative with its share of what they share.
//
// All NPUs replay one trace under one policy from time 0 on. Where every NPU shares each of its links with
// the same number of others, symmetry keeps them in step for ever: max-min sharing, being unique, gives k
// equal flows on a link of B exactly B/k each, so one NPU on links of B/k sees the same rates. A collective's
// stream out of it equals the one into it, so it is one flow that crosses its own ports and its HBM twice.
// Exact (to 1e-9), so only done, where
// - the nodes in use are equally full (and the sockets, where placement is local);
// - placement is striped or local; striped over the supernode only if no switch or uplink is declared;
// - every hop of every collective is of one kind (in a package, in a node, or between nodes without a
//   declared second level; first-level switches are not crossed by far hops);
// - nobody ever waits for room in the pool that others may take: NPUs would get it one after another. Known
//   only afterwards; a plan is held to its share and waits for nobody.
// Anything else is refused with the reason. O(one NPU's run).
#pragma once

#include <string>

#include "sim/replay/replay.h"

namespace hyperoffload {

// Empty: the fold is exact, if nobody waits for the pool. Else why not.
std::string why_not_fold(const Graph& graph, const Hardware& hardware);

// The representative's machine: one NPU with its share.
Hardware folded_hardware(const Hardware& hardware);

// A record with one NPU that stands for all (`RunRecord::stands_for`); the pool's peaks are of all.
// InfeasibleError where the fold is refused.
RunRecord replay_folded(const Graph& graph, const Hardware& hardware, const PolicyFactory& make_policy,
                        const ReplayOptions& options);

}  // namespace hyperoffload
