// `graph` where NPUs share links with each other or with collectives: plan, replay, and plan again for what transfers
// really got.
//
// A plan counts on an equal share of what the NPUs share, and on nothing of what collectives take. The replay says how
// long transfers took instead; as much slack (planner.h) is given to the next plan, then twice as much, and so on while
// that helps: transfers start earlier, and collectives are met by fewer of them. The plan whose slowest NPU is fastest
// is kept. One replay where nothing is shared, where no more than 0.1 % of the time is stall, or where a replay is a
// large one (kReplayedOps); else at most kReplays. Cost: a search and a replay each.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "app/policy_spec.h"
#include "planner/planner.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "sim/report/result.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

inline constexpr int kReplays = 5;  // Llama training gets no faster with more (docs/machine.md)
inline constexpr double kReplayedOps = 400'000;  // of all replays of a run, NPUs and iterations: some 5 s

struct LinkSlack {
  double read = 0, write = 0;
};

struct ReplayedPlans {
  std::vector<Plan> plans;  // one for all NPUs, or one each
  RunRecord record;
  PlannerUse use;
};

// What `graph` was asked for; none: auto.
std::optional<double> slack_of(const PolicySpec& graph);
Plan plan_with(const Graph& graph, const Hardware& hardware, int iterations, int rank, const LinkSlack& slack);

// `graphs`: one for all NPUs, or one each. `slack`: what the user asked for; none: found as said above.
using PlanRank = std::function<Plan(int rank, const LinkSlack& slack)>;
using ReplayPlans = std::function<RunRecord(const std::vector<Plan>&)>;
ReplayedPlans plan_and_replay(const std::vector<const Graph*>& graphs, const Hardware& hardware, int iterations,
                              std::optional<double> slack, const PlanRank& plan, const ReplayPlans& replay);

}  // namespace hyperoffload
