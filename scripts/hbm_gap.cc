// How far the least HBM that a plan needs for no stall is from the least proven: over the seeded traces of planner_gap.
// scripts/planner_gap.sh has its table in docs/planner.md.
//
// Usage: hbm_gap [--seeds N] [--from SEED] [--families a,b] [--load X] [--slowdown X] [--worst N | --cases]
// --slowdown 0.0001: a stall of 0.01 % counts as none, for plan and bound. --worst adds the N worst cases to the
// percentiles, --cases prints one line a case (CSV) instead.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "planner/bound/lp_bound.h"
#include "planner/cost/walk.h"
#include "planner/objectives.h"
#include "planner/passes/choose_evictions.h"
#include "planner/passes/schedule_guide.h"
#include "scripts/gap_figures.h"
#include "sim/model/error.h"
#include "test/planner/families.h"

using namespace hyperoffload;

namespace {

struct Settings {
  int seeds = 3, first_seed = 1, worst = 0;
  double slowdown = 0;
  std::string families;
  double load = 0;  // 0: each
  bool cases = false;
};

struct Case {
  Family family = Family::kMixture;
  int seed = 0, ops = 0;
  double load = 0;
  std::int64_t proven = 0, hbm = 0, largest = 0;
  double cpu = 0;
  std::string why{};
  double percent() const { return 100 * static_cast<double>(hbm - proven) / static_cast<double>(proven); }
  double tensors() const { return static_cast<double>(hbm - proven) / static_cast<double>(largest); }
};

// Does the program, too, need more than half of the gap if it is to be what the planner's plans are (passes/schedule_guide.h;
// as far as the starts that were decided are the best)? Then their form is at fault, else the search.
std::string blame(const FamilyCase& c, const Case& o, double ideal, double allowed) {
  Hardware least = c.hardware;
  least.hbm_capacity = Bytes(o.proven);
  const FlatGraph flat(c.graph, least);
  ScheduleProgram schedule(flat, Liveness(flat, {c.repeats, 0}), rank_by_name(c.graph), ideal);
  return schedule.decide(allowed, 60) > o.proven + (o.hbm - o.proven) / 2 ? "form" : "search";
}

Case judge(const Settings& settings, Family family, int seed, double load) {
  Case o;
  o.family = family;
  o.seed = seed;
  o.ops = 40 + seed * 37 % 161;
  o.load = load;
  const FamilyCase c = family_case(family, static_cast<std::uint64_t>(seed), o.ops, load);
  PlannerOptions options;
  options.iterations = c.repeats ? 40 : 1;
  const double before = cpu_seconds();
  const LeastHbm least = least_hbm(c.graph, c.hardware, options, settings.slowdown);
  o.cpu = cpu_seconds() - before;
  const double ideal = least.outcome.plan.prediction->ideal.value;
  const FlatGraph flat(c.graph, c.hardware);
  LpBoundOptions lp;
  lp.stall = false;
  lp.steady = true;
  lp.allowed_stall = settings.slowdown * ideal;
  o.proven = lp_bound(flat, ideal, options.iterations, lp).hbm_peak.value;
  o.hbm = least.hbm.value;
  o.largest = *std::max_element(flat.bytes.begin(), flat.bytes.end());
  if (o.percent() > 0.3) {
    lp.branches = 60;
    o.proven = lp_bound(flat, ideal, options.iterations, lp).hbm_peak.value;
  }
  if (o.percent() > 2) o.why = blame(c, o, ideal, lp.allowed_stall);
  return o;
}

void print_row(const std::string& name, const std::vector<Case>& all) {
  std::vector<double> percent, tensors;
  double cpu = 0;
  for (const Case& o : all) {
    percent.push_back(o.percent());
    tensors.push_back(o.tensors());
    cpu += o.cpu;
  }
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.1f} |\n", name, all.size(),
             percentile(percent, 0.5), percentile(percent, 0.9), percentile(percent, 1), percentile(tensors, 0.5),
             percentile(tensors, 0.9), percentile(tensors, 1), cpu);
}

void print_cases(const std::vector<Case>& all) {
  for (const Case& o : all)
    fmt::print("{},{},{},{},{},{},{:.3f},{:.2f},{},{:.2f}\n", to_string(o.family), o.seed, o.ops, o.load, o.proven, o.hbm,
               o.percent(), o.tensors(), o.why, o.cpu);
}

constexpr const char* kHead = "family,seed,ops,load,proven_bytes,hbm_bytes,above_percent,above_largest_tensors,at_fault,cpu_s\n";

void print_tables(std::vector<Case> all, int worst) {
  fmt::print("| cases | number | above the bound, %: median | 90th percentile | worst | in largest tensors: median | 90th percentile | worst | CPU s |\n"
             "|---|---|---|---|---|---|---|---|---|\n");
  print_row("all", all);
  std::map<std::string, std::vector<Case>> groups;
  for (const Case& o : all) {
    groups[to_string(o.family)].push_back(o);
    groups[fmt::format("link load {:.1f}", o.load)].push_back(o);
  }
  for (const auto& [name, group] : groups) print_row(name, group);
  if (worst == 0) return;
  std::stable_sort(all.begin(), all.end(), [](const Case& a, const Case& b) { return a.percent() > b.percent(); });
  if (static_cast<int>(all.size()) > worst) all.resize(worst);
  fmt::print("\nThe {} worst:\n\n```\n{}", worst, kHead);
  print_cases(all);
  fmt::print("```\n");
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--cases") {
      s.cases = true;
      continue;
    }
    if (i + 1 == argc) throw InputError(name, "no value", "one");
    const std::string value = argv[++i];
    if (name == "--seeds") s.seeds = std::atoi(value.c_str());
    else if (name == "--from") s.first_seed = std::atoi(value.c_str());
    else if (name == "--families") s.families = value;
    else if (name == "--load") s.load = std::atof(value.c_str());
    else if (name == "--slowdown") s.slowdown = std::atof(value.c_str());
    else if (name == "--worst") s.worst = std::atoi(value.c_str());
    else throw InputError("hbm_gap", name, "--seeds, --from, --families, --load, --slowdown, --worst or --cases");
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings settings = parse(argc, argv);
  if (settings.cases) fmt::print("{}", kHead);
  std::vector<Case> cases;
  for (int seed = settings.first_seed; seed < settings.first_seed + settings.seeds; ++seed)
    for (Family family : kAllFamilies)
      for (double load : {0.5, 1.0, 2.0})
        if ((settings.families.empty() || lists(settings.families, to_string(family))) &&
            (settings.load == 0 || load == settings.load))
          cases.push_back({family, seed, 0, load});
  const auto all = measure_all(
      cases, [&](const Case& c) { return judge(settings, c.family, c.seed, c.load); },
      [&](const Case& c) {
        if (!settings.cases) return;
        print_cases({c});
        std::fflush(stdout);
      });
  if (!settings.cases) print_tables(all, settings.worst);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
