// How far the least HBM that a plan needs for no stall is from the least proven: over the seeded traces of planner_gap.
// One line a case (CSV), then the percentiles; scripts/planner_gap.sh has them in docs/planner.md.
// Usage: hbm_gap [SEEDS [FIRST_SEED [SLOWDOWN]]]   (0.0001: a stall of 0.01 % counts as none)
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "planner/bound/lp_bound.h"
#include "planner/objectives.h"
#include "sim/model/error.h"
#include "test/planner/families.h"

using namespace hyperoffload;

namespace {

double percentile(std::vector<double> values, double share) {  // nearest rank
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size()) + 0.999999);
  return values[std::min(values.size(), std::max<std::size_t>(rank, 1)) - 1];
}

struct Gaps {
  std::vector<double> percent, tensors;  // above the bound: of it, and in largest tensors
};

void judge(Family family, int seed, double load, double slowdown, Gaps& gaps) {
  const int ops = 40 + seed * 37 % 161;
  const FamilyCase c = family_case(family, static_cast<std::uint64_t>(seed), ops, load);
  PlannerOptions options;
  options.iterations = c.repeats ? 40 : 1;
  const LeastHbm least = least_hbm(c.graph, c.hardware, options, slowdown);
  LpBoundOptions lp;
  lp.stall = false;
  const FlatGraph flat(c.graph, c.hardware);
  const auto bound = static_cast<double>(
      lp_bound(flat, least.outcome.plan.prediction->ideal.value, options.iterations, lp).hbm_peak.value);
  const auto above = static_cast<double>(least.hbm.value) - bound;
  gaps.percent.push_back(100 * above / bound);
  gaps.tensors.push_back(above / static_cast<double>(*std::max_element(flat.bytes.begin(), flat.bytes.end())));
  fmt::print("{},{},{},{},{},{:.0f},{:.3f},{:.3f}\n", to_string(family), seed, ops, load, least.hbm.value, bound,
             gaps.percent.back(), gaps.tensors.back());
}

}  // namespace

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 3, first = argc > 2 ? std::atoi(argv[2]) : 1;
  const double slowdown = argc > 3 ? std::atof(argv[3]) : 0;
  Gaps gaps;
  fmt::print("family,seed,ops,load,least_hbm_bytes,bound_bytes,above_percent,above_in_largest_tensors\n");
  for (Family family : kAllFamilies)
    for (int seed = first; seed < first + seeds; ++seed)
      for (double load : {0.5, 1.0, 2.0}) judge(family, seed, load, slowdown, gaps);
  fmt::print("# {} cases: above the bound median {:.2f} %, 90th percentile {:.2f} %, worst {:.2f} %; in largest tensors "
             "median {:.2f}, 90th percentile {:.2f}, worst {:.2f}\n",
             gaps.percent.size(), percentile(gaps.percent, 0.5), percentile(gaps.percent, 0.9), percentile(gaps.percent, 1),
             percentile(gaps.tensors, 0.5), percentile(gaps.tensors, 0.9), percentile(gaps.tensors, 1));
}
