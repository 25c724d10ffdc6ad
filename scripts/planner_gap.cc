// How far plans are from the proven limit: over seeded random traces of each family, at several HBM sizes
// and bandwidths, the stall above the bound as a share of the ideal time. scripts/planner_gap.sh runs it
// and writes docs/planner.md.
//
// Usage: planner_gap [--seeds N] [--from SEED] [--effort E] [--skip STEP,...] [--families a,b] [--load X]
// [--share PERCENT] [--ops N] [--bounds FILE] [--branches N] [--whole] [--worst N | --cases | --summary NAME | --times]
// --worst adds the N worst cases to the percentiles, --cases prints one line a case (CSV) instead, --summary one row
// over all, --times the CPU time of long traces. --bounds keeps the bounds in a file: they take longer than the plans.
// --whole: plans without pieces, against a bound that knows that tensors are whole
// --branches: where the gap is above kSplitAbove, the bound with so many programs that decide starts, and the best of them
// with every start decided: what a plan is above that is the planner's, the rest may be the bound's.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/bound/lp_bound.h"
#include "planner/cost/walk.h"
#include "planner/pipeline.h"
#include "planner/planner.h"
#include "scripts/gap_figures.h"
#include "sim/model/error.h"
#include "test/planner/families.h"

using namespace hyperoffload;

namespace {

constexpr double kSplitAbove = 0.01;

struct Settings {
  int branches = 0;
  int seeds = 3, first_seed = 1, effort = 1, ops = 0, share = 0, worst = 0;
  double load = 0;
  std::uint32_t skip = 0;  // bits by SearchStep
  std::string families, bounds;
  std::string summary;
  bool cases = false, times = false, whole = false;
};

struct Outcome {
  Family family;
  int seed = 0, ops = 0, share = 0;
  double load = 0;
  double gap = 0, stall = 0, bound = 0;  // shares of the ideal time
  double planner = 0;                    // of the gap, what a better plan is known to save
  double cpu = 0;
};

// Enough for a repeated body to settle: plan and bound are of an iteration that ends as it began.
int iterations(const FamilyCase& c) { return c.repeats ? 40 : 1; }

// Bounds take longer than plans and don't change with the planner: kept in a file between runs.
class BoundCache {
 public:
  explicit BoundCache(const std::string& path) : path_(path) {
    std::ifstream in(path);
    std::string key;
    for (Limits l; in >> key >> l.proven >> l.reached;) known_[key] = l;
  }
  struct Limits {
    double proven = 0, reached = 0;  // seconds; reached by the program, with every start decided
  };
  Limits stall(std::string key, const FamilyCase& c, double ideal, bool whole, int branches = 0) {
    if (whole) key += ":whole";
    if (branches > 0) key += fmt::format(":{}", branches);
    {
      const std::lock_guard lock(mutex_);
      const auto found = known_.find(key);
      if (found != known_.end()) return found->second;
    }
    LpBoundOptions options;
    options.hbm = false;
    options.steady = true;
    options.whole_tensors = whole;
    options.branches = branches;
    LpBoundStats stats;
    const double proven = lp_bound(FlatGraph(c.graph, c.hardware), ideal, iterations(c), options, &stats).stall.value;
    const double reached = std::isfinite(stats.stall_upper) ? stats.stall_upper : kNever;
    const std::lock_guard lock(mutex_);
    if (!path_.empty()) std::ofstream(path_, std::ios::app) << fmt::format("{} {} {}\n", key, proven, reached);
    return known_[key] = {proven, reached};
  }

 private:
  static constexpr double kNever = 1e9;
  std::string path_;
  std::mutex mutex_;
  std::map<std::string, Limits> known_;
};

Outcome judge(const Settings& settings, BoundCache& bounds, Family family, int seed, double load, int share) {
  Outcome o{family, seed, 0, share, load};
  o.ops = settings.ops > 0 ? settings.ops : 40 + seed * 37 % 161;
  FamilyCase c = family_case(family, static_cast<std::uint64_t>(seed), o.ops, load);
  c.hardware.hbm_capacity = Bytes(c.peak * share / 100);
  PlannerOptions options;
  options.iterations = iterations(c);
  options.effort = settings.effort;
  options.skip = settings.skip;
  const double before = cpu_seconds();
  const Plan plan = make_plan(c.graph, c.hardware, options).plan;
  o.cpu = cpu_seconds() - before;
  const double ideal = plan.prediction->ideal.value;
  o.stall = (plan.prediction->iteration.value - ideal) / ideal;
  // A plan without stall needs no bound.
  const std::string key = fmt::format("{}:{}:{}:{}:{}", to_string(family), seed, o.ops, load, share);
  if (o.stall > 1e-9) o.bound = bounds.stall(key, c, ideal, settings.whole).proven / ideal;
  if (settings.branches > 0 && o.stall - o.bound > kSplitAbove) {
    const auto [proven, reached] = bounds.stall(key, c, ideal, settings.whole, settings.branches);
    o.bound = std::max(o.bound, proven / ideal);
    o.planner = std::max(0.0, o.stall - std::max(o.bound, reached / ideal));
  }
  o.gap = std::max(0.0, o.stall - o.bound);
  return o;
}

void print_row(const std::string& name, const std::vector<Outcome>& all) {
  std::vector<double> gaps;
  double sum = 0, cpu = 0;
  for (const Outcome& o : all) {
    gaps.push_back(100 * o.gap);
    sum += 100 * o.gap;
    cpu += o.cpu;
  }
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", name, all.size(),
             percentile(gaps, 0.5), percentile(gaps, 0.9), percentile(gaps, 1),
             sum / static_cast<double>(std::max<std::size_t>(1, all.size())), cpu);
}

void print_tables(const std::vector<Outcome>& all) {
  fmt::print("| cases | number | median | 90th percentile | worst | mean | CPU s |\n|---|---|---|---|---|---|---|\n");
  print_row("all", all);
  const auto rows = [&](auto key) {
    std::map<std::string, std::vector<Outcome>> groups;
    for (const Outcome& o : all) groups[key(o)].push_back(o);
    for (const auto& [name, group] : groups) print_row(name, group);
  };
  rows([](const Outcome& o) { return std::string(to_string(o.family)); });
  rows([](const Outcome& o) { return fmt::format("link load {:.1f}", o.load); });
  rows([](const Outcome& o) { return fmt::format("HBM {} %", o.share); });
}

void print_cases(const std::vector<Outcome>& all) {
  fmt::print("family,seed,ops,load,hbm_percent,gap_percent,planner_percent,stall_percent,bound_percent,cpu_s\n");
  for (const Outcome& o : all)
    fmt::print("{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f}\n", to_string(o.family), o.seed, o.ops, o.load, o.share,
               100 * o.gap, 100 * o.planner, 100 * o.stall, 100 * o.bound, o.cpu);
}

void print_worst(std::vector<Outcome> all, int count) {
  std::stable_sort(all.begin(), all.end(), [](const Outcome& a, const Outcome& b) { return a.gap > b.gap; });
  if (static_cast<int>(all.size()) > count) all.resize(count);
  fmt::print("\n## The {} worst\n\n```\n", count);
  print_cases(all);
  fmt::print("```\n");
}

std::uint32_t steps(const std::string& names) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kSearchSteps; ++i)
    if (lists(names, to_string(static_cast<SearchStep>(i)))) bits |= 1U << i;
  return bits;
}

long peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

// One row: a process of its own, whose peak memory is this trace's.
// Ops up to which a table of times has the bound.
constexpr int kProven = 100'000;

void print_time(Family family, int ops, int effort, double load) {
  const long before = peak_bytes();
  FamilyCase c = family_case(family, 1, ops, load);
  c.hardware.hbm_capacity = Bytes(c.peak * 6 / 10);
  PlannerOptions options;
  options.iterations = iterations(c);
  options.effort = effort;
  const long trace = peak_bytes() - before;
  const double start = cpu_seconds();
  const Plan plan = make_plan(c.graph, c.hardware, options).plan;
  const double seconds = cpu_seconds() - start;
  const long planned = peak_bytes() - before;  // the bound takes some, too
  const double ideal = plan.prediction->ideal.value, stall = plan.prediction->iteration.value - ideal;
  std::string proven = "-";
  if (stall <= 1e-9 * ideal)
    proven = "0.00";
  else if (ops <= kProven)
    proven = fmt::format("{:.2f}", 100 * BoundCache("").stall("", c, ideal, false).proven / ideal);
  fmt::print("| {} | {} | {} | {} | {:.2f} | {:.2f} | {} | {} | {} |\n", to_string(family), load, ops, effort, seconds,
             100 * stall / ideal, proven, trace / ops, planned / ops);
  std::fflush(stdout);
}

// CPU time and memory of planning long traces, what their plans stall and what is proven: one row a size and effort.
void print_times() {
  struct Way {
    int effort;
    double load;
  };
  constexpr Way kWays[] = {{0, 1}, {0, 2}, {1, 2}};  // where one pass does; where the link is short
  fmt::print("| trace | link load | ops | effort | CPU s | stall, % of ideal | proven | peak memory to build the trace, B an op"
             " | trace and plan |\n|---|---|---|---|---|---|---|---|---|\n");
  std::fflush(stdout);
  for (const int ops : {400, 1'000, 10'000, 100'000, 1'000'000})
    for (Family family : {Family::kEvenChain, Family::kWeightStream})
      for (const auto& [effort, load] : kWays) {
        if (ops == 1'000'000 && load > 1) continue;
        const pid_t child = fork();
        if (child == 0) {
          print_time(family, ops, effort, load);
          _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) throw std::runtime_error("a measurement failed");
      }
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--whole") {
      s.whole = true;
      s.skip |= steps("pieces,transcribe");
      continue;
    }
    if (name == "--cases" || name == "--times") {
      (name == "--cases" ? s.cases : s.times) = true;
      continue;
    }
    if (i + 1 == argc) throw InputError(name, "no value", "one");
    const std::string value = argv[++i];
    if (name == "--seeds") s.seeds = std::atoi(value.c_str());
    else if (name == "--from") s.first_seed = std::atoi(value.c_str());
    else if (name == "--effort") s.effort = std::atoi(value.c_str());
    else if (name == "--ops") s.ops = std::atoi(value.c_str());
    else if (name == "--families") s.families = value;
    else if (name == "--skip") s.skip |= steps(value);
    else if (name == "--bounds") s.bounds = value;
    else if (name == "--summary") s.summary = value;
    else if (name == "--load") s.load = std::atof(value.c_str());
    else if (name == "--branches") s.branches = std::atoi(value.c_str());
    else if (name == "--worst") s.worst = std::atoi(value.c_str());
    else if (name == "--share") s.share = std::atoi(value.c_str());
    else throw InputError("planner_gap", name, "--seeds, --from, --effort, --ops, --families, --load, --share, --skip, --bounds or --cases");
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings settings = parse(argc, argv);
  if (settings.times) {
    print_times();
    return 0;
  }
  BoundCache bounds(settings.bounds);
  std::vector<Outcome> cases, all;
  for (Family family : kAllFamilies)
    for (int seed = settings.first_seed; seed < settings.first_seed + settings.seeds; ++seed)
      for (double load : {0.5, 1.0, 2.0})
        for (int share : {90, 75, 60, 50})
          if ((settings.families.empty() || lists(settings.families, to_string(family))) &&
              (settings.load == 0 || load == settings.load) && (settings.share == 0 || share == settings.share))
            cases.push_back({family, seed, 0, share, load});
  const auto judged = [&](const Outcome& c) -> std::optional<Outcome> {
    try {
      return judge(settings, bounds, c.family, c.seed, c.load, c.share);
    } catch (const InfeasibleError&) {  // an op's own tensors don't fit
      return std::nullopt;
    }
  };
  for (const auto& outcome : measure_all(cases, judged, [](const auto&) {}))
    if (outcome) all.push_back(*outcome);
  if (settings.cases) {
    print_cases(all);
  } else if (!settings.summary.empty()) {
    print_row(settings.summary, all);
  } else {
    print_tables(all);
    if (settings.worst > 0) print_worst(std::move(all), settings.worst);
  }
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
