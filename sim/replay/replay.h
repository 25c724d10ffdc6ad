// A replay: graph + policy + machine -> RunRecord. Rules: docs/semantics.md.
//
// Each call is one simulation in a process of its own (a fork): SimGrid allows one engine a process.
// What the policy factory builds lives in the child. InfeasibleError when the run gets stuck or its
// start doesn't fit: who waits for what, the tier, the bytes short, the largest residents.
// O(events x (engines + pieces of the tensors involved)).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/policy/policy.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

struct ReplayOptions {
  int iterations = 1;
  bool full_record = false;          // keep ops, transfers and memory of all iterations (timeline)
  bool series = false;               // keep levels over time of the first and last iteration (a report)
  Seconds host_overhead;             // what a policy that decides while time runs needs for each op
  bool everything_in_place = false;  // the ideal run: all tensors where needed, no capacity, no transfers
  bool shortcuts = true;             // false: no exact shortcuts, every flow and socket on its own (tests)
};

using PolicyFactory = std::function<std::unique_ptr<Policy>()>;  // called once an NPU

RunRecord replay(const Graph& graph, const Hardware& hardware, const PolicyFactory& make_policy,
                 const ReplayOptions& options);

// Each NPU its own trace: *graphs[n] is replayed by NPU n; as many as take part, some may be the same.
using RankPolicyFactory = std::function<std::unique_ptr<Policy>(int npu)>;
RunRecord replay_ranks(const std::vector<const Graph*>& graphs, const Hardware& hardware,
                       const RankPolicyFactory& make_policy, const ReplayOptions& options);

}  // namespace hyperoffload
