#include "test/support/simulate.h"

#include "sim/policy/planned.h"
#include "sim/replay/replay.h"

namespace hyperoffload {
namespace {

ReplayOptions options_for(int iterations) {
  ReplayOptions options;
  options.iterations = iterations;
  options.full_record = true;
  return options;
}

}  // namespace

RunRecord simulate_plan(const Graph& graph, const Plan& plan, const Hardware& hardware, int iterations) {
  return replay(
      graph, hardware, [&] { return std::make_unique<PlannedPolicy>(graph, plan); }, options_for(iterations));
}

RunRecord simulate_on_demand(const Graph& graph, const Hardware& hardware, int iterations,
                             OnDemandPolicy::Evict evict) {
  return replay(
      graph, hardware, [&] { return std::make_unique<OnDemandPolicy>(evict); }, options_for(iterations));
}

RunRecord simulate_ideal(const Graph& graph, const Hardware& hardware, int iterations) {
  ReplayOptions options = options_for(iterations);
  options.everything_in_place = true;
  return replay(
      graph, hardware, [&] { return std::make_unique<Policy>(); }, options);
}

}  // namespace hyperoffload
