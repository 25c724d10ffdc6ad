// Plays random cases through a replay under test and through the reference, and compares.
//
// The replay runs in a child process per case (SimGrid allows one simulation a process); `jobs`
// workers share the cases. What the replay throws is a failure, unless the reference gets stuck:
// then it must throw InfeasibleError. Of all failing cases the one with the fewest ops and actions is
// told in full.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "test/support/coverage.h"

namespace hyperoffload {

using PlanReplay = std::function<RunRecord(const Graph&, const Plan&, const Hardware&, int iterations)>;
using OnDemandReplay = std::function<RunRecord(const Graph&, const Hardware&, int iterations, Evict)>;

struct PropertyReport {
  int cases = 0;
  int stuck = 0;
  int failures = 0;
  std::string smallest_failure;  // what differs, then the case
  Coverage coverage;
};

PropertyReport compare_plans(std::uint64_t first_seed, int cases, int jobs, const PlanReplay& replay);
PropertyReport compare_on_demand(std::uint64_t first_seed, int cases, int jobs, const OnDemandReplay& replay);

// One case, for a closer look: what differs, or "".
std::string compare_plan(const RandomCase& c, const ReferenceResult& reference, const PlanReplay& replay);

}  // namespace hyperoffload
