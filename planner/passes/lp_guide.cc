#include "planner/passes/lp_guide.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "planner/bound/engine_view.h"
#include "planner/bound/offload_program.h"

namespace hyperoffload {
namespace {

// Rounds x columns that a try may take of the linear program: a few hundredths of a second.
constexpr double kWorkATry = 1e4;

// Of several solutions the solver takes one by the order of units: that must not be the file's.
EngineView in_time(EngineView view, const std::vector<std::int32_t>& rank) {
  const auto key = [&](const Stay& stay) {
    return std::tuple(stay.gaps.front().until, stay.gaps.front().after, rank[stay.tensor]);
  };
  std::stable_sort(view.stays.begin(), view.stays.end(),
                   [&](const Stay& a, const Stay& b) { return key(a) < key(b); });
  return view;
}

class Guide {
 public:
  Guide(const FlatGraph& graph, const std::vector<std::int32_t>& rank, double ideal, bool repeats, int tries)
      : view_(in_time(EngineView(graph, 0, repeats ? 2 : 1, repeats), rank)),
        program_(graph, view_, excess(graph), {ideal, 2 * view_.places, repeats}),
        solver_(program_.lp),
        limits_{60, 1e-4, 1e-5 * ideal},
        most_tries_(tries) {}
  LpGuide run();

 private:
  std::vector<std::int64_t> excess(const FlatGraph& graph) const {
    std::vector<std::int64_t> excess = view_.resident;
    for (std::int64_t& bytes : excess) bytes -= graph.machine.hbm;
    return excess;
  }
  LpOutcome decide_starts(LpOutcome outcome);
  LpOutcome improve_starts(LpOutcome outcome, double least);
  std::vector<double> shares_from_pool(const LpOutcome& outcome) const;
  LpGuide written(const LpOutcome& outcome) const;

  const EngineView view_;
  const OffloadProgram program_;
  OffloadSolver solver_;
  const LpLimits limits_;
  const int most_tries_;
  std::vector<int> decided_;  // units, the surest first
};

std::vector<double> Guide::shares_from_pool(const LpOutcome& outcome) const {
  std::vector<double> shares(program_.lp.units.size());
  for (const LpShare& share : outcome.shares)
    if (share.pattern.store < 0) shares[share.unit] += share.share;
  return shares;
}

// A fifth of what is open at a time, the surest first.
LpOutcome Guide::decide_starts(LpOutcome outcome) {
  std::vector<int> open;
  for (std::size_t u = 0; u < program_.lp.units.size(); ++u)
    if (program_.lp.units[u].pool_start && !program_.lp.units[u].pool_only) open.push_back(static_cast<int>(u));
  while (!open.empty()) {
    const std::vector<double> pool = shares_from_pool(outcome);
    const auto sure = [&](int u) { return std::abs(pool[u] - 0.5); };
    std::stable_sort(open.begin(), open.end(), [&](int a, int b) { return sure(a) < sure(b); });
    for (std::size_t count = (open.size() + 4) / 5; !open.empty() && (count > 0 || sure(open.back()) > 0.499);
         count -= count > 0) {
      solver_.fix_start(open.back(), pool[open.back()] >= 0.5);
      decided_.push_back(open.back());
      open.pop_back();
    }
    outcome = solver_.solve(limits_);
  }
  return outcome;
}

// Takes decisions back one by one, the least sure first, and keeps what is better that way.
LpOutcome Guide::improve_starts(LpOutcome outcome, double least) {
  int tries = 0;
  double work = 0;
  for (bool better = true; better;) {
    better = false;
    for (auto u = decided_.rbegin(); u != decided_.rend(); ++u) {
      if (outcome.upper <= least + limits_.seconds || tries++ == most_tries_ || work > kWorkATry * most_tries_)
        return outcome;
      const bool in_pool = solver_.lp().units[*u].pool_only;
      solver_.fix_start(*u, !in_pool);
      LpOutcome other = solver_.solve(limits_);
      work += static_cast<double>(other.rounds) * other.columns;
      if (other.upper < outcome.upper * (1 - limits_.tolerance)) {
        outcome = std::move(other);
        better = true;
      } else {
        solver_.fix_start(*u, in_pool);
      }
    }
  }
  return outcome;
}

// One engine's places are the ops, all positions of the view are boundaries: 2k and 2k + 1 are start and end of
// the op at position k + 1, from where on something is away.
LpGuide Guide::written(const LpOutcome& outcome) const {
  LpGuide guide;
  guide.waits.assign(view_.places + 1, 0);
  const auto next = [&](int boundary) { return (boundary + 1) / 2 + 1 + (boundary >= 2 * view_.places ? 1 : 0); };
  for (int s = 0; s < static_cast<int>(outcome.waits.size()); ++s)
    guide.waits[std::min(next(s), view_.places)] += outcome.waits[s];
  for (const LpShare& share : outcome.shares)
    for (const Pattern::Away& away : share.pattern.away) {
      const std::vector<LpGap>& gaps = program_.lp.units[share.unit].gaps;
      std::size_t g = 0;
      while (g + 1 < gaps.size() && gaps[g + 1].first <= away.from) ++g;
      for (const OffloadProgram::Member& member : program_.members[share.unit]) {
        const int after = member.gaps[g].after;
        if (after < 0 && share.pattern.store >= 0) continue;  // what starts in HBM stays for its first use
        guide.away.push_back({member.tensor, after < 0 ? -1 : after / 2 + 1, next(away.from), share.share});
      }
    }
  return guide;
}

LpGuide Guide::run() {
  const LpOutcome relaxed = solver_.solve(limits_);
  LpGuide guide = written(improve_starts(decide_starts(relaxed), relaxed.upper));
  guide.least_stall = relaxed.lower;
  return guide;
}

}  // namespace

std::optional<LpGuide> lp_guide(const FlatGraph& graph, const Liveness& liveness,
                                const std::vector<std::int32_t>& rank, double ideal, int tries) {
  const auto in_pool = std::count(graph.in_pool.begin(), graph.in_pool.end(), 0) != graph.ops;
  if (graph.engines > 1 || in_pool || liveness.reads_known_late || graph.ops > kGuidedOps) return std::nullopt;
  return Guide(graph, rank, ideal, liveness.repeats, tries).run();
}

Filled round_guide(const LpGuide& guide, const Liveness& liveness, const StepClock& ideal) {
  std::vector<std::vector<LpGuide::Away>> by_gap(liveness.gaps.size());
  for (const LpGuide::Away& away : guide.away)
    for (int g = liveness.gap_begin[away.tensor]; g < liveness.gap_begin[away.tensor + 1]; ++g)
      if (liveness.gaps[g].open == away.open) by_gap[g].push_back(away);
  std::vector<Eviction> evictions;
  for (std::size_t g = 0; g < by_gap.size(); ++g) {
    const Gap& gap = liveness.gaps[g];
    const int pieces = liveness.pieces[gap.tensor];
    std::stable_sort(by_gap[g].begin(), by_gap[g].end(), [](const auto& a, const auto& b) { return a.from < b.from; });
    double sum = 0;
    int given = 0;
    for (const LpGuide::Away& away : by_gap[g]) {
      sum += away.share;
      const int count = gap.open < 0 ? (sum >= 0.5 ? 1 : 0) : std::min(pieces, static_cast<int>(sum * pieces + 0.5));
      for (; given < count; ++given)
        evictions.push_back({gap.first_unit + given, std::max(gap.open + 1, away.from)});
    }
  }
  std::stable_sort(evictions.begin(), evictions.end(),
                   [](const Eviction& a, const Eviction& b) { return a.position < b.position; });
  std::vector<Ticks> extra;
  for (double wait : guide.waits) extra.push_back(ideal.ticks(wait));
  return {std::move(evictions), ideal.delayed(extra)};
}

}  // namespace hyperoffload
