// What each step of the search is worth on small random graphs, such as the property tests draw: with one engine and
// with several, with ops in the pool, `known_after`, scarce HBM bandwidth, one pass and repeated bodies. Each case is
// planned with all steps and without each one; scripts/planner_gap.sh puts the tables into docs/planner.md.
// Usage: step_gap CASES (about 0.03 s of CPU each)
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "planner/pipeline.h"
#include "planner/planner.h"
#include "sim/model/error.h"
#include "test/support/random_plan.h"

using namespace hyperoffload;

namespace {

constexpr double kSame = 1e-6;  // a share of the iteration's time

struct Worth {
  int slower = 0, faster = 0, no_plan = 0;
  double sum = 0, worst = 0, best = 0;  // of the iteration's time more, as a share
};

std::optional<double> seconds(const RandomCase& c, std::uint32_t skip) {
  PlannerOptions options;
  options.iterations = c.iterations;
  options.skip = skip;
  try {
    return make_plan(c.graph, c.hardware, options).plan.prediction->iteration.value;
  } catch (const InfeasibleError&) {
    return std::nullopt;
  }
}

void add(Worth& worth, double all, std::optional<double> without) {
  if (!without) {
    ++worth.no_plan;
    return;
  }
  const double more = all > 0 ? *without / all - 1 : 0;
  worth.slower += more > kSame;
  worth.faster += more < -kSame;
  worth.sum += more;
  worth.worst = std::max(worth.worst, more);
  worth.best = std::min(worth.best, more);
}

}  // namespace

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 1000;
  Worth worth[2][kSearchSteps];
  int planned[2] = {};
  for (int seed = 1; seed <= cases; ++seed) {
    const RandomCase c = random_case(static_cast<std::uint64_t>(seed));
    const std::optional<double> all = seconds(c, 0);
    if (!all) continue;
    const bool several = c.graph.engines().size() > 1;
    ++planned[several];
    for (int step = 0; step < kSearchSteps; ++step) add(worth[several][step], *all, seconds(c, 1U << step));
  }
  fmt::print("| engines | without | cases | slower | faster | no plan | mean, % of the time | worst | best |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|\n");
  for (const bool several : {false, true})
    for (int step = 0; step < kSearchSteps; ++step) {
      const Worth& w = worth[several][step];
      fmt::print("| {} | {} | {} | {} | {} | {} | {:.3f} | {:.2f} | {:.2f} |\n", several ? "several" : "one",
                 to_string(static_cast<SearchStep>(step)), planned[several], w.slower, w.faster, w.no_plan,
                 100 * w.sum / std::max(1, planned[several]), 100 * w.worst, 100 * w.best);
    }
}
