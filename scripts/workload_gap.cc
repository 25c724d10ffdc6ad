// How far plans of given traces are from the proven limit: at 90, 75, 60 and 50 % of what everything takes, the stall
// above the bound as a share of the ideal time. scripts/workload_gap.sh runs it over the shipped workloads and G10's,
// and writes docs/planner_workloads.md.
//
// Usage: workload_gap LIST [--shares 90,75] [--only NAME] [--effort E] [--bounds FILE] [--boundaries N]
// LIST has a line a trace: NAME HARDWARE.yaml TRACE.json ITERATIONS. The bound is the larger one of those of the last
// of so many iterations and, with one engine and more than one iteration, of an iteration that ends as it began (plans
// settle); --bounds keeps them in a file: they take longer than plans.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/analysis/liveness.h"
#include "planner/analysis/one_engine.h"
#include "planner/bound/lp_bound.h"
#include "planner/planner.h"
#include "scripts/gap_figures.h"
#include "sim/model/error.h"

using namespace hyperoffload;

namespace {

struct Settings {
  std::string list, only, bounds;
  std::vector<int> shares = {90, 75, 60, 50};
  int effort = 1, boundaries = LpBoundOptions().boundaries;
};

struct Line {
  std::string name, hardware, trace;
  int iterations = 1;
};

struct Proven {
  double last = 0, steady = 0, cpu = 0;  // seconds
};

// What is known of earlier runs: "name:share last steady cpu".
class BoundCache {
 public:
  BoundCache(const std::string& path, int boundaries) : path_(path), boundaries_(boundaries) {
    std::ifstream in(path);
    std::string key;
    for (Proven p; in >> key >> p.last >> p.steady >> p.cpu;) known_[key] = p;
  }
  Proven of(const std::string& key, const FlatGraph& graph, double ideal, int iterations) {
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    const double before = cpu_seconds();
    Proven p;
    LpBoundOptions options;
    options.hbm = false;
    options.boundaries = boundaries_;
    options.known_after = true;
    p.last = lp_bound(graph, ideal, iterations, options).stall.value;
    options.steady = true;
    if (iterations > 1 && graph.engines == 1) p.steady = lp_bound(graph, ideal, iterations, options).stall.value;
    p.cpu = cpu_seconds() - before;
    if (!path_.empty()) std::ofstream(path_, std::ios::app) << fmt::format("{} {} {} {}\n", key, p.last, p.steady, p.cpu);
    return known_[key] = p;
  }

 private:
  std::string path_;
  int boundaries_;
  std::map<std::string, Proven> known_;
};

// The gap in per cent of the ideal time; none where an op's own tensors don't fit.
std::optional<double> judge(const Settings& settings, BoundCache& bounds, const Line& line, const Graph& graph,
                            Hardware hardware, std::int64_t peak, int share) {
  hardware.hbm_capacity = Bytes(peak * share / 100);
  PlannerOptions options;
  options.iterations = line.iterations;
  options.effort = settings.effort;
  const std::string start = fmt::format("| {} | {} | {} | {:.2f} |", line.name, graph.ops().size(), share,
                                        static_cast<double>(peak) * share / 100 / 1e9);
  try {
    const double before = cpu_seconds();
    const Plan plan = make_plan(graph, hardware, options).plan;
    const double cpu = cpu_seconds() - before, ideal = plan.prediction->ideal.value;
    const double stall = plan.prediction->iteration.value - ideal;
    Proven proven;
    if (stall > 1e-9 * ideal) {
      FlatGraph flat(graph, hardware);
      flat.machine = best_npu(hardware);
      proven = bounds.of(fmt::format("{}:{}", line.name, share), flat, ideal, line.iterations);
    }
    const double gap = std::max(0.0, 100 * (stall - std::max(proven.last, proven.steady)) / ideal);
    fmt::print("{} {:.3f} | {:.3f} | {:.3f} | {:.3f} | **{:.2f}** | {:.2f} | {:.2f} |\n", start, 1e3 * ideal, 1e3 * stall,
               1e3 * proven.last, 1e3 * proven.steady, gap, cpu, proven.cpu);
    std::fflush(stdout);
    return gap;
  } catch (const InfeasibleError& error) {
    fmt::print(stderr, "{} at {} %: {}\n", line.name, share, error.what());
    fmt::print("{} - | - | - | - | no plan | - | - |\n", start);
    return std::nullopt;
  }
}

Settings parse(int argc, char** argv) {
  if (argc < 2) throw InputError("workload_gap", "no LIST", "a file");
  Settings s;
  s.list = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--shares") {
      s.shares.clear();
      std::istringstream in(value);
      for (std::string share; std::getline(in, share, ',');) s.shares.push_back(std::atoi(share.c_str()));
    } else if (name == "--only") s.only = value;
    else if (name == "--effort") s.effort = std::atoi(value.c_str());
    else if (name == "--bounds") s.bounds = value;
    else if (name == "--boundaries") s.boundaries = std::atoi(value.c_str());
    else throw InputError("workload_gap", name, "--shares, --only, --effort, --bounds or --boundaries");
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const Settings settings = parse(argc, argv);
  BoundCache bounds(settings.bounds, settings.boundaries);
  std::vector<double> gaps;
  fmt::print("| workload | ops | HBM, % of the peak | GB | ideal, ms | stall, ms | proven, last iteration, ms | proven, steady, ms"
             " | gap, % of ideal | CPU s, plan | CPU s, bounds |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::ifstream list(settings.list);
  for (Line line; list >> line.name >> line.hardware >> line.trace >> line.iterations;) {
    if (!settings.only.empty() && line.name.find(settings.only) == std::string::npos) continue;
    Graph graph = load_graph(line.trace);
    if (auto chain = on_one_engine(graph)) graph = std::move(*chain);
    const Hardware hardware = load_hardware(line.hardware);
    const Liveness liveness(FlatGraph(graph, hardware), {line.iterations > 1, 0});
    const std::int64_t peak = *std::max_element(liveness.resident.begin(), liveness.resident.end());
    for (int share : settings.shares)
      if (const auto gap = judge(settings, bounds, line, graph, hardware, peak, share)) gaps.push_back(*gap);
  }
  fmt::print("\n{} cases: median {:.2f} %, 90th percentile {:.2f} %, worst {:.2f} %\n", gaps.size(), percentile(gaps, 0.5),
             percentile(gaps, 0.9), percentile(gaps, 1));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
