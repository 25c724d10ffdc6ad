#include "planner/passes/lp_guide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "planner/bound/branch_starts.h"
#include "planner/bound/engine_view.h"
#include "planner/bound/offload_program.h"

namespace hyperoffload {
namespace {

// Columns of all programs that are tried to find better starts: about a second.
constexpr int kColumnsTried = 500'000;

// HBM that further guides leave to whole pieces, which take a little more than their share. With 2 % plans get worse.
constexpr double kMargins[] = {0.0005, 0.002, 0.005};

// What a longer trace's guide sees of it (docs/planner.md): with 400 or 800, traces of 300 and 450 ops took two to ten times
// as long and gained nothing. With one gap a unit it sees all, up to kDecidedOps.
constexpr int kBoundaries = 200, kCoarse = 100, kAll = 2 * 1000;
constexpr int kManyUnits = 3000;
// Up to here it is decided which tensors start in the pool; of longer traces' there are so many that rounding does.
constexpr int kDecidedOps = 1000;
// Gaps of a tensor from which on they are taken one by one, in longer traces.
constexpr int kMostGaps = 3;

// Boundaries that a program can afford: many where every unit has one gap, few where there are many units.
int affordable(const OffloadProgram& program, int ops, int most) {
  if (program.lp.units.size() > kManyUnits) return kCoarse;
  return program.plain() && ops <= kDecidedOps ? most : kBoundaries;
}

class Guide {
 public:
  Guide(const FlatGraph& graph, const Liveness& liveness, const std::vector<std::int32_t>& rank, double ideal,
        const GuideEffort& effort, int boundaries)
      : view_(in_time(EngineView(graph, 0, liveness.repeats ? 2 : 1, liveness.repeats, true), rank)),
        hbm_(graph.machine.hbm),
        exact_(graph.ops <= kGuidedOps),
        known_late_(liveness.reads_known_late),
        program_(made(graph, ideal, liveness.repeats, boundaries)),
        solver_(program_.lp),
        limits_{exact_ ? kManyRounds : kFewRounds, 1e-4, 1e-5 * ideal, exact_ ? std::numeric_limits<double>::infinity() : effort.work},
        most_tries_(exact_ ? effort.tries : 0) {}
  std::optional<LpGuide> run();
  int boundaries() const { return static_cast<int>(program_.positions.size()); }

 private:
  OffloadProgram made(const FlatGraph& graph, double ideal, bool repeats, int boundaries) const;
  std::int64_t without(double margin) const { return hbm_ - static_cast<std::int64_t>(margin * static_cast<double>(hbm_)); }
  std::vector<std::int64_t> excess(double margin) const { return view_.excess(without(margin)); }
  void leave(double margin) {
    const std::vector<std::int64_t> bytes = excess(margin);
    solver_.set_excess({bytes.begin(), bytes.end()});
  }
  LpOutcome decide_starts(LpOutcome outcome);
  void branch(const LpOutcome& decided, double& least);
  void add_flows(std::vector<LpShare> shares, LpGuide& guide) const;
  LpGuide written(const LpOutcome& outcome) const;

  const EngineView view_;
  const std::int64_t hbm_;
  const bool exact_;  // of the trace as it is
  const bool known_late_;
  const OffloadProgram program_;
  OffloadSolver solver_;
  const LpLimits limits_;
  const int most_tries_;
  std::vector<int> decided_;  // units, the surest first
};

OffloadProgram Guide::made(const FlatGraph& graph, double ideal, bool repeats, int boundaries) const {
  ProgramOptions options{ideal, 2 * view_.places, repeats};
  options.starts_apart = graph.ops <= kDecidedOps;
  if (exact_) return OffloadProgram(graph, view_, excess(std::end(kMargins)[-1]), options);
  options.most_gaps = kMostGaps;
  options.boundaries = kBoundaries;
  OffloadProgram program(graph, view_, excess(0), options);
  options.boundaries = affordable(program, graph.ops, boundaries);
  return options.boundaries == kBoundaries ? program : OffloadProgram(graph, view_, excess(0), options);
}

// A fifth of what is open at a time, the surest first; of a longer trace's half.
LpOutcome Guide::decide_starts(LpOutcome outcome) {
  const std::size_t part = exact_ ? 5 : 2;
  std::vector<int> open;
  for (std::size_t u = 0; u < program_.lp.units.size(); ++u)
    if (program_.lp.units[u].pool_start && !program_.lp.units[u].pool_only) open.push_back(static_cast<int>(u));
  while (!open.empty() && outcome.complete) {
    const std::vector<double> pool = shares_not_stored(program_.lp, outcome);
    const auto sure = [&](int u) { return std::abs(pool[u] - 0.5); };
    std::stable_sort(open.begin(), open.end(), [&](int a, int b) { return sure(a) < sure(b); });
    for (std::size_t count = (open.size() + part - 1) / part; !open.empty() && (count > 0 || sure(open.back()) > 0.499);
         count -= count > 0) {
      solver_.fix_start(open.back(), pool[open.back()] >= 0.5);
      decided_.push_back(open.back());
      open.pop_back();
    }
    outcome = solver_.solve(limits_);
  }
  return outcome;
}

// Looks for better decisions in the tree of all of them, and proves a little more on the way.
void Guide::branch(const LpOutcome& decided, double& least) {
  if (decided.upper <= least + limits_.seconds) return;
  std::vector<char> in_pool;
  for (int u : decided_) {
    in_pool.push_back(solver_.lp().units[u].pool_only);
    solver_.free_start(u);
  }
  const int programs = std::min(most_tries_, kColumnsTried / std::max(1, decided.columns));
  const Branched tree = branch_starts(solver_, limits_, {programs, decided.upper, true});
  least = std::max(least, tree.lower);
  if (tree.best.upper < decided.upper) {
    const std::vector<double> pool = shares_not_stored(program_.lp, tree.best);
    for (std::size_t k = 0; k < decided_.size(); ++k) in_pool[k] = pool[decided_[k]] >= 0.5;
  }
  solver_.set_starts({});
  for (std::size_t k = 0; k < decided_.size(); ++k) solver_.fix_start(decided_[k], in_pool[k]);
}

// A unit's patterns take its tensors' bytes one behind another, those that are stored first first.
void Guide::add_flows(std::vector<LpShare> shares, LpGuide& guide) const {
  const auto key = [](const LpShare& s) {
    const Pattern::Away& away = s.pattern.away.front();
    return std::tuple(s.unit, s.pattern.store, away.from, away.load);
  };
  std::stable_sort(shares.begin(), shares.end(), [&](const LpShare& a, const LpShare& b) { return key(a) < key(b); });
  double from = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto& [u, share, pattern] = shares[i];
    const LpUnit& unit = program_.lp.units[u];
    if (i == 0 || shares[i - 1].unit != u) from = 0;
    const bool in_pool = unit.pool_start && pattern.store < 0, last = i + 1 == shares.size() || shares[i + 1].unit != u;
    const bool all = last && (in_pool || from + share > 1 - 1e-5);  // but for the solver's tolerance
    const double to = all ? 1 : std::min(1.0, from + share);
    for (const OffloadProgram::Member& member : program_.members[u]) {
      LpGuide::Flow flow{member.tensor, from, to, pattern.store, {}};
      for (const Pattern::Away& away : pattern.away)
        flow.away.push_back(
            {away.from, away.load, unit.gaps[unit.gap_at(away.from)].close, in_pool && flow.away.empty()});
      guide.flows.push_back(std::move(flow));
      if (in_pool && from == 0) guide.from_pool.push_back(member.tensor);
    }
    from = to;
  }
}

// One engine's places are the ops: the view's positions 2k and 2k + 1 are start and end of the op at position k + 1,
// from where on something is away.
LpGuide Guide::written(const LpOutcome& outcome) const {
  LpGuide guide;
  guide.waits.assign(view_.places + 1, 0);
  const int count = static_cast<int>(program_.positions.size());
  const auto next = [&](int boundary) {
    if (boundary >= count && !program_.lp.circle) return view_.places + 1;
    return (program_.positions[boundary % count] + 1) / 2 + 1 + (boundary >= count ? view_.places + 1 : 0);
  };
  for (int s = 0; s < static_cast<int>(outcome.waits.size()); ++s)
    guide.waits[std::min(next(s), view_.places)] += outcome.waits[s];
  if (exact_ && !known_late_) add_flows(outcome.shares, guide);
  std::map<std::pair<int, int>, std::map<int, double>> shares;  // by unit and gap: by boundary from which
  for (const LpShare& share : outcome.shares)
    for (const Pattern::Away& away : share.pattern.away) {
      const int g = program_.lp.units[share.unit].gap_at(away.from);
      // what starts in HBM stays for its first use
      if (program_.members[share.unit][0].gaps[g].after < 0 && share.pattern.store >= 0) continue;
      shares[{share.unit, g}][away.from] += share.share;
    }
  int group = 0;
  for (const auto& [gap, by_start] : shares) {
    for (const OffloadProgram::Member& member : program_.members[gap.first]) {
      const int after = member.gaps[gap.second].after, turns = after >= 2 * view_.places ? 1 : 0;
      const int open = after < 0 ? -1 : after / 2 + 1 - turns * view_.places;
      for (const auto& [from, share] : by_start)
        guide.away.push_back({member.tensor, open, next(from) - turns * (view_.places + 1), share, group});
    }
    ++group;
  }
  return guide;
}

std::optional<LpGuide> Guide::run() {
  if (exact_) leave(0);
  const LpOutcome relaxed = solver_.solve(limits_);
  double least = relaxed.lower;
  LpOutcome decided = relaxed;
  if (view_.places <= kDecidedOps) decided = decide_starts(std::move(decided));
  if (!decided.complete) return std::nullopt;
  if (exact_) {
    branch(decided, least);
    decided = solver_.solve(limits_);
  }
  LpGuide guide = written(decided);
  guide.least_stall = least;
  if (relaxed.upper <= 0 || guide.flows.empty() || program_.lp.circle) return guide;
  const std::int64_t working = *std::max_element(view_.working_set.begin(), view_.working_set.end());
  for (double margin : kMargins) {
    if (working > without(margin)) break;
    leave(margin);
    guide.with_margin.push_back(written(solver_.solve(limits_)));
  }
  return guide;
}

}  // namespace

std::optional<LpGuide> lp_guide(const FlatGraph& graph, const Liveness& liveness,
                                const std::vector<std::int32_t>& rank, double ideal,
                                const GuideEffort& effort) {
  if (graph.engines > 1 || graph.any_in_pool) return std::nullopt;
  Guide fine(graph, liveness, rank, ideal, effort, kAll);
  auto guide = fine.run();
  if (guide || fine.boundaries() <= kBoundaries) return guide;
  return Guide(graph, liveness, rank, ideal, effort, kBoundaries).run();
}

Filled round_guide(const LpGuide& guide, const Liveness& liveness, const StepClock& ideal) {
  struct Given {
    Eviction eviction;
    int open, tensor;
  };
  std::vector<Given> given;
  std::vector<double> error;  // by row of the group: bytes that those before got too little
  double carry = 0;           // round a circle to the next group, too: a stream's are all alike
  int group = -1;
  for (std::size_t i = 0; i < guide.away.size();) {
    std::size_t end = i;
    const LpGuide::Away& first = guide.away[i];
    while (end < guide.away.size() && guide.away[end].group == first.group && guide.away[end].tensor == first.tensor) ++end;
    if (std::exchange(group, first.group) != first.group) error.assign(end - i, carry);
    int g = liveness.gap_begin[first.tensor];
    while (g < liveness.gap_begin[first.tensor + 1] && liveness.gaps[g].open != first.open) ++g;
    if (g == liveness.gap_begin[first.tensor + 1]) {
      i = end;
      continue;
    }
    const Gap& gap = liveness.gaps[g];
    const int pieces = gap.open < 0 ? 1 : liveness.pieces[gap.tensor];
    const double bytes = liveness.piece_from(gap.tensor, liveness.pieces[gap.tensor]);
    double sum = 0;
    int done = 0;
    for (std::size_t k = 0; i < end; ++i, ++k) {
      sum += guide.away[i].share;
      const double want = sum * bytes + error[k];
      const int count = std::clamp(static_cast<int>(std::floor(want / bytes * pieces + 0.5)), done, pieces);
      error[k] = want - bytes * count / pieces;
      for (; done < count; ++done)
        given.push_back({{gap.first_unit + done, std::max(gap.open + 1, guide.away[i].from)}, gap.open, gap.tensor});
    }
    if (liveness.repeats) carry = error.back();
  }
  std::stable_sort(given.begin(), given.end(),
                   [](const Given& a, const Given& b) { return std::tuple(a.eviction.position, a.open) < std::tuple(b.eviction.position, b.open); });
  std::vector<Eviction> evictions;
  for (const Given& g : given) evictions.push_back(g.eviction);
  std::vector<Ticks> extra;
  for (double wait : guide.waits) extra.push_back(ideal.ticks(wait));
  return {std::move(evictions), ideal.delayed(extra)};
}

}  // namespace hyperoffload
