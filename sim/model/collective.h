// Collectives over the fabric: who takes part, what flows between whom, and how long it takes alone.
//
// `bytes` is the larger side of one rank, as NCCL counts it: all-reduce and broadcast the buffer,
// all-gather the gathered whole, reduce-scatter and all-to-all what one rank gives, send and recv the
// message. With p ranks, n bytes, a latency of `a` a step and `B` bytes/s a rank (alpha-beta model):
//   ring    all-reduce      2(p-1) a + 2 (p-1)/p n/B      neighbours pass on parts of n/p
//           all-gather, reduce-scatter  (p-1) a + (p-1)/p n/B
//           broadcast       (p-1) a + n/B                 a pipelined chain
//           all-to-all      (p-1) a + (p-1)/2 n/B         parts go round until they are home
//   direct  all-reduce      2 a + 2 (p-1)/p n/B           each with all others at once
//           all-gather, reduce-scatter, all-to-all  a + (p-1)/p n/B;  broadcast  a + (p-1) n/B
// All steps of a collective are one stream a pair of ranks: the fluid limit of small parts. A step that
// waits for a slower neighbour is not told apart from one that is slow itself. A rank sends by writing to
// its peer: `peer.*.write` is its path. Default: all-to-all direct, all others ring.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"

namespace hyperoffload {

enum class CollectiveKind { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast, kSend, kRecv };

std::optional<CollectiveKind> collective_kind(const std::string& name);  // "-" and "_" are the same
std::vector<std::string> collective_kinds();

// A group as a trace writes it: a number or a list of ranks (JSON), a name of the trace's `meta.parallel`
// (tp, cp, dp, pp, ep, etp, edp, embedding; ranks are numbered tp fastest, then cp, dp, pp). Any other name:
// all NPUs. InputError(where) for numbers that can't be.
Group group_named(const std::string& group, const std::string& meta_json, const std::string& where);
// The ranks of `rank`'s set; empty if a list leaves it out.
std::vector<int> members_of(const Group& group, int rank, int world);

// One stream of a collective, between places in the list of members.
struct Hop {
  int from = 0, to = 0;
  double bytes = 0;
};
struct CollectiveFlows {
  std::vector<Hop> hops;
  int steps = 0;  // latencies paid, one after another
};
CollectiveFlows collective_flows(CollectiveKind kind, CollectiveAlgorithm algorithm, Bytes bytes, int ranks);
CollectiveAlgorithm algorithm_of(const Hardware& hardware, const std::string& kind);

enum class Reach { kPackage, kNear, kFar };
Reach reach_between(const Hardware& hardware, int from, int to);
LinkDirection peer_path(const Hardware& hardware, Reach reach);

// Latency and bytes with nothing else on its ports and one such group: the exact time on an idle machine
// where all hops are alike, never more than that otherwise. Several groups at once that meet on an uplink,
// and pool traffic, come on top. `loads_hbm`: its streams are read from and written to HBM.
Seconds collective_alone(const Collective& collective, const Hardware& hardware, int rank, bool loads_hbm);

}  // namespace hyperoffload
