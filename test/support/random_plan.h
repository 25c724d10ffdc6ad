// Seeded random valid plans, made without any planner, and whole random cases.
//
// Every tensor walks the ops in program order on its own: at each gap between two accesses its
// pieces are stored, detached and prefetched by chance, as far as the rules allow (detach only with a
// valid copy and after an access, what an op needs is there). The walk of later iterations starts
// where the first one ends and must come back there, or is drawn again. Where the two walks differ,
// the actions are marked `first` or `later`. Queue order, anchors and capacity are then drawn so that
// most plans run and some get stuck.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "test/support/rng.h"

namespace hyperoffload {

// Valid but for getting stuck. None: some op in the pool asks for what no action can do.
std::optional<Plan> random_plan(const Graph& graph, bool tied, Rng& rng);

// Lowers HBM and pool capacity below what the plan would use with room to spare: to somewhere the
// reference replay still gets through, seldom to where it gets stuck.
void tighten(const Graph& graph, const Plan& plan, bool tied, Hardware& hardware, int iterations, Rng& rng);

struct RandomCase {
  std::uint64_t seed = 0;
  bool tied = false;
  Graph graph;
  Plan plan;
  Hardware hardware;
  int iterations = 1;
};

RandomCase random_case(std::uint64_t seed);

// No plan and no op in the pool; HBM too small for all the graph has, large enough for its largest op.
RandomCase random_on_demand_case(std::uint64_t seed);

std::string describe(const Plan& plan, const Graph& graph);
std::string describe(const RandomCase& c);

}  // namespace hyperoffload
