#include "planner/bound/lp_bound.h"

#include <algorithm>
#include <cmath>

#include "planner/bound/branch_starts.h"
#include "planner/bound/engine_view.h"
#include "planner/bound/offload_program.h"
#include "planner/bound/reload_bound.h"
#include "planner/bound/subset_sum.h"
#include "planner/bound/window_bound.h"

namespace hyperoffload {
namespace {

// A program of more units than this takes minutes; asked for less (ProgramOptions::most_gaps) it takes a second.
constexpr int kManyUnits = 2500;

constexpr int kBoundaries = 400;
constexpr int kAllUpToOps = 1000;

class LpBound {
 public:
  LpBound(const FlatGraph& graph, double ideal, int iterations, const LpBoundOptions& options)
      : graph_(graph),
        ideal_(ideal),
        iterations_(iterations),
        options_(options),
        steady_(options.steady && iterations > 1 && graph.engines == 1 && !graph.any_in_pool) {}
  Bound run(LpBoundStats& stats);

 private:
  std::vector<std::int64_t> excess_over(const EngineView& view, std::int64_t hbm) const;
  std::vector<std::int64_t> whole_capacity(const EngineView& view, std::int64_t hbm) const;
  OffloadProgram made(const EngineView& view, const std::vector<std::int64_t>& excess, ProgramOptions options) const;
  LpOutcome solve_program(const OffloadLp& lp, const LpLimits& limits, LpBoundStats& stats) const;
  OffloadProgram program_of(const EngineView& view, bool branch) const;
  bool cheap(const OffloadProgram& program) const {
    return program.plain() && graph_.ops <= kAllUpToOps && static_cast<int>(program.lp.units.size()) <= kManyUnits;
  }
  int rounds() const { return graph_.ops <= kAllUpToOps ? kManyRounds : kFewRounds; }
  int boundaries() const { return options_.boundaries > 0 ? options_.boundaries : kBoundaries; }
  double least_end(const EngineView& view, LpBoundStats& stats) const;
  std::int64_t least_hbm_of_starts(const EngineView& view, std::int64_t known, double slack, LpBoundStats& stats) const;
  std::int64_t least_hbm(const EngineView& view, std::int64_t known, LpBoundStats& stats) const;

  const FlatGraph& graph_;
  const double ideal_;
  const int iterations_;
  const LpBoundOptions& options_;
  const bool steady_;
};

std::vector<std::int64_t> LpBound::excess_over(const EngineView& view, std::int64_t hbm) const {
  std::vector<std::int64_t> excess = view.excess(hbm);
  if (options_.whole_tensors && graph_.engines == 1) {
    const auto capacity = whole_capacity(view, hbm);
    for (std::size_t p = 0; p < excess.size(); ++p) excess[p] += hbm - capacity[p];
  }
  return excess;
}

// By position: the working set and the most that whole idle tensors can take beside it.
std::vector<std::int64_t> LpBound::whole_capacity(const EngineView& view, std::int64_t hbm) const {
  std::vector<std::vector<std::int64_t>> enter(view.resident.size() + 1), leave(view.resident.size() + 1);
  const int end = 2 * view.places;
  const auto idles = [&](int from, int until, std::int64_t bytes) {
    if (from >= until) return;
    enter[from].push_back(bytes);
    leave[until].push_back(bytes);
  };
  for (const Stay& stay : view.stays)
    for (const IdleGap& gap : stay.gaps) {
      idles(gap.after + 1, std::min(gap.until, end), graph_.bytes[stay.tensor]);
      idles(std::max(0, gap.after + 1 - end), gap.until - end, graph_.bytes[stay.tensor]);  // round the circle
    }
  std::vector<std::int64_t> capacity(view.resident.size(), hbm), idle;
  SubsetSums sums;
  for (std::size_t p = 0; p < view.resident.size(); ++p) {
    for (std::int64_t bytes : leave[p]) idle.erase(std::find(idle.begin(), idle.end(), bytes));
    idle.insert(idle.end(), enter[p].begin(), enter[p].end());
    if (view.resident[p] <= hbm) continue;
    const std::int64_t room = hbm - view.working_set[p / 2];
    capacity[p] = view.working_set[p / 2] + sums.largest_up_to(idle, room);
  }
  return capacity;
}

OffloadProgram LpBound::made(const EngineView& view, const std::vector<std::int64_t>& excess,
                             ProgramOptions options) const {
  OffloadProgram program(graph_, view, excess, options);
  if (program.plain() || static_cast<int>(program.lp.units.size()) <= kManyUnits) return program;
  options.most_gaps = 1;
  return OffloadProgram(graph_, view, excess, options);
}

LpOutcome LpBound::solve_program(const OffloadLp& lp, const LpLimits& limits, LpBoundStats& stats) const {
  const LpOutcome outcome = solve(lp, limits);
  ++stats.programs;
  if (outcome.columns >= stats.columns) {
    stats.boundaries = static_cast<int>(lp.excess.size());
    stats.units = static_cast<int>(lp.units.size());
    stats.rows = outcome.rows;
    stats.columns = outcome.columns;
    stats.rounds = outcome.rounds;
  }
  return outcome;
}

// On all boundaries, where those are cheap.
OffloadProgram LpBound::program_of(const EngineView& view, bool branch) const {
  const auto excess = excess_over(view, graph_.machine.hbm);
  ProgramOptions options{ideal_, std::max(2, boundaries()), steady_, false, branch};
  OffloadProgram program = made(view, excess, options);
  if (options_.boundaries > 0 || !cheap(program)) return program;
  options.boundaries = 2 * kAllUpToOps;
  return made(view, excess, options);
}

double LpBound::least_end(const EngineView& view, LpBoundStats& stats) const {
  const bool branch = options_.branches > 0 && iterations_ == 1;
  const OffloadProgram program = program_of(view, branch);
  const LpLimits limits{rounds(), 1e-4, 1e-5 * ideal_};
  if (branch) {
    OffloadSolver solver(program.lp);
    const Branched tree = branch_starts(solver, limits, {options_.branches});
    stats.programs += 1 + tree.programs;
    stats.stall_upper = std::max(stats.stall_upper, view.alone + tree.best.upper - ideal_);
    return view.alone + tree.lower;
  }
  const LpOutcome outcome = solve_program(program.lp, limits, stats);
  stats.stall_upper = std::max(stats.stall_upper, view.alone + outcome.upper - ideal_);
  return view.alone + outcome.lower;
}

// The least stall falls with the capacity, ever less steeply: from a capacity known to be too small, the
// prices that prove a stall there also prove that zero stall takes so many bytes more. Again from there; on
// coarse boundaries first, where it costs little.
std::int64_t LpBound::least_hbm(const EngineView& view, std::int64_t known, LpBoundStats& stats) const {
  const double slack = std::max(0.0, ideal_ - view.alone) + options_.allowed_stall + 1e-11 * ideal_;
  for (int part : {4, 1}) {
    for (int step = 0; step < 40; ++step) {
      const OffloadProgram program =
          made(view, view.excess(known), {ideal_, std::max(8, boundaries() / part), steady_, true});
      const LpOutcome outcome = solve_program(program.lp, {rounds(), 0.05, 2e-5 * ideal_}, stats);
      if (outcome.lower <= slack || outcome.seconds_per_byte <= 0) break;
      const double more = (outcome.lower - slack) / outcome.seconds_per_byte;
      // Bytes are whole; a thousand-millionth for what rounding may have added.
      known += static_cast<std::int64_t>(std::ceil(more - 1e-9 * (static_cast<double>(known) + more)));
      if (more < 1e-5 * static_cast<double>(known)) break;
    }
    if (static_cast<int>(view.resident.size()) <= boundaries() / 4) break;
  }
  return options_.branches > 0 && iterations_ == 1 ? least_hbm_of_starts(view, known, slack, stats) : known;
}

// More, where each tensor starts as a whole.
std::int64_t LpBound::least_hbm_of_starts(const EngineView& view, std::int64_t known, double slack, LpBoundStats& stats) const {
  OffloadLp lp = made(view, view.excess(known), {ideal_, std::max(8, boundaries()), false, true, true}).lp;
  lp.capacity = true;
  OffloadSolver solver(std::move(lp));
  const double close = 2e-5 * static_cast<double>(known);
  solver.solve({rounds(), 0.05, 2e-5 * ideal_});
  solver.ask({true, slack});
  const Branched tree = branch_starts(solver, {rounds(), 1e-4, close}, {options_.branches});
  stats.programs += 1 + tree.programs;
  return known + std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(tree.lower - 1e-9 * (static_cast<double>(known) + tree.lower))));
}

Bound LpBound::run(LpBoundStats& stats) {
  Bound bound = window_bound(graph_, ideal_, iterations_);
  bound.method = "lp";
  if (options_.allowed_stall > 0) bound.hbm_peak = Bytes(0);  // the window's is for none
  double end = options_.stall ? reload_bound(graph_, iterations_) : 0;
  for (int e = 0; e < graph_.engines; ++e) {
    const EngineView view(graph_, e, iterations_, steady_, options_.known_after);
    if (view.places == 0) continue;
    const std::int64_t working = *std::max_element(view.working_set.begin(), view.working_set.end());
    bound.hbm_peak = std::max(bound.hbm_peak, Bytes(working));
    if (view.stays.empty()) continue;
    if (options_.stall && working <= graph_.machine.hbm) end = std::max(end, least_end(view, stats));
    if (options_.hbm) bound.hbm_peak = Bytes(least_hbm(view, bound.hbm_peak.value, stats));
  }
  // Rounded in the bound's disfavour: a proof must survive the last bits.
  const double stall = end * (1 - 1e-12) - ideal_;
  if (stall > 2e-12 * ideal_) bound.stall = std::max(bound.stall, Seconds(stall));
  return bound;
}

}  // namespace

Bound lp_bound(const FlatGraph& graph, double ideal, int iterations, const LpBoundOptions& options,
               LpBoundStats* stats) {
  LpBoundStats ignored;
  return LpBound(graph, ideal, iterations, options).run(stats ? *stats : ignored);
}

}  // namespace hyperoffload
