// How far the least HBM that a plan needs for no stall is from the least proven: over the seeded traces of planner_gap.
// scripts/planner_gap.sh has its table in docs/planner.md. Usage: hbm_gap [SEEDS [SLOWDOWN]]   (0.0001: a stall of
// 0.01 % counts as none)
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
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
}

void print_row(const std::string& name, const Gaps& gaps) {
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", name, gaps.percent.size(),
             percentile(gaps.percent, 0.5), percentile(gaps.percent, 0.9), percentile(gaps.percent, 1),
             percentile(gaps.tensors, 0.5), percentile(gaps.tensors, 0.9), percentile(gaps.tensors, 1));
}

}  // namespace

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 3;
  const double slowdown = argc > 2 ? std::atof(argv[2]) : 0;
  fmt::print("| cases | number | above the bound, %: median | 90th percentile | worst | in largest tensors: median | 90th percentile | worst |\n"
             "|---|---|---|---|---|---|---|---|\n");
  std::map<std::string, Gaps> groups;
  Gaps all;
  for (Family family : kAllFamilies)
    for (int seed = 1; seed <= seeds; ++seed)
      for (double load : {0.5, 1.0, 2.0}) {
        Gaps one;
        judge(family, seed, load, slowdown, one);
        for (Gaps* gaps : {&all, &groups[to_string(family)], &groups[fmt::format("link load {:.1f}", load)]}) {
          gaps->percent.push_back(one.percent[0]);
          gaps->tensors.push_back(one.tensors[0]);
        }
      }
  print_row("all", all);
  for (const auto& [name, gaps] : groups) print_row(name, gaps);
}
