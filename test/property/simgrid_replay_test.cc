// The SimGrid replay against the reference replay, which shares no code with it: thousands of random
// graphs, machines and plans, to 1e-9.
#include "test/support/catch.h"
#include "test/support/replay_property.h"
#include "test/support/simulate.h"

using namespace hyperoffload;

namespace {

constexpr int kJobs = 2;

RunRecord on_demand(const Graph& graph, const Hardware& hardware, int iterations, Evict evict) {
  return simulate_on_demand(graph, hardware, iterations,
                            evict == Evict::kLru ? OnDemandPolicy::Evict::kLru : OnDemandPolicy::Evict::kOldest);
}

}  // namespace

TEST_CASE("SimGrid and the reference agree on thousands of random plans") {
  const PropertyReport report = compare_plans(1, 3000, kJobs, simulate_plan);
  INFO(report.failures << " of " << report.cases << " differ; the smallest:\n" << report.smallest_failure);
  CHECK(report.failures == 0);
}

TEST_CASE("SimGrid and the reference agree on reactive swapping") {
  const PropertyReport report = compare_on_demand(1, 1000, kJobs, on_demand);
  INFO(report.failures << " of " << report.cases << " differ; the smallest:\n" << report.smallest_failure);
  CHECK(report.failures == 0);
}
