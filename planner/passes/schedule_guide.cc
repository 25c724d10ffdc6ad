#include "planner/passes/schedule_guide.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "planner/bound/branch_starts.h"
#include "planner/bound/engine_view.h"
#include "planner/bound/offload_program.h"

namespace hyperoffload {
namespace {

// Columns of all programs that are tried to find better starts.
constexpr int kColumnsTried = 300'000;
constexpr double kWhole = 0.01;  // what a tensor may lack of its bytes
// Capacities so close are one, as a share of them.
constexpr double kClose = 2e-5;
// Starts that take so little more than the program would like to are not improved.
constexpr double kNear = 1e-3;

}  // namespace

class ScheduleProgram::Scheduler {
 public:
  Scheduler(const FlatGraph& graph, const std::vector<std::int32_t>& rank, double ideal, bool repeats)
      : hbm_(graph.machine.hbm),
        view_(in_time(EngineView(graph, 0, repeats ? 2 : 1, repeats), rank)),
        program_(graph, view_, view_.excess(graph.machine.hbm), {ideal, 2 * view_.places, repeats, false, true}),
        solver_(as_planned()),
        limits_{kManyRounds, 1e-4, 1e-5 * ideal} {
    for (std::size_t u = 0; u < program_.lp.units.size(); ++u)
      if (program_.lp.units[u].pool_start && !program_.lp.units[u].pool_only) decided_.push_back(static_cast<int>(u));
  }
  std::int64_t decide(double seconds, int tries);
  ScheduleGuide at(std::int64_t hbm, double room);

 private:
  OffloadLp as_planned() const;
  void fix(const std::vector<char>& in_pool) {
    for (std::size_t k = 0; k < decided_.size(); ++k) solver_.fix_start(decided_[k], in_pool[k] != 0);
  }
  LpOutcome round_down(const LpOutcome& outcome, std::size_t from, std::size_t to, const LpLimits& limits,
                       std::vector<char>& in_pool);
  LpOutcome rounded(LpOutcome outcome, std::size_t parts, const LpLimits& limits, std::vector<char>& in_pool);
  void improve(std::vector<char>& best, double& least, double enough, const LpLimits& limits, int tries);
  std::vector<char> mostly_in_pool(const LpOutcome& outcome) const;
  ScheduleGuide written(const LpOutcome& outcome) const;

  const std::int64_t hbm_;
  const EngineView view_;
  const OffloadProgram program_;
  OffloadSolver solver_;
  const LpLimits limits_;
  std::vector<int> decided_;  // units
};

OffloadLp ScheduleProgram::Scheduler::as_planned() const {
  OffloadLp lp = program_.lp;
  lp.capacity = true;
  for (std::size_t u = 0; u < lp.units.size(); ++u) {
    LpGap& first = lp.units[u].gaps.front();
    lp.units[u].first_stays = lp.units[u].pool_start;
    const bool input = !lp.units[u].pool_start && program_.members[u].front().gaps.front().after < 0;
    if (input) first.first = std::max(first.first, 2);
  }
  return lp;
}

std::vector<char> ScheduleProgram::Scheduler::mostly_in_pool(const LpOutcome& outcome) const {
  const std::vector<double> shares = shares_not_stored(program_.lp, outcome);
  std::vector<char> in_pool;
  for (int u : decided_) in_pool.push_back(shares[u] >= 0.5);
  return in_pool;
}

// Decides [from, to) of them, which are open, in the order of use: in the pool starts what, with those before it, is no more
// than their shares. So the link has time for it.
LpOutcome ScheduleProgram::Scheduler::round_down(const LpOutcome& outcome, std::size_t from, std::size_t to, const LpLimits& limits,
                                std::vector<char>& in_pool) {
  const std::vector<double> shares = shares_not_stored(program_.lp, outcome);
  double more = 0;  // of bytes that shares have in the pool
  for (std::size_t k = from; k < to; ++k) {
    const int u = decided_[k];
    const double bytes = program_.lp.units[u].bytes;
    more += shares[u] * bytes;
    in_pool[k] = bytes <= more + kWhole * bytes;
    if (in_pool[k]) more -= bytes;
    solver_.fix_start(u, in_pool[k] != 0);
  }
  return solver_.solve(limits);
}

// In so many parts, each by the program with those before decided.
LpOutcome ScheduleProgram::Scheduler::rounded(LpOutcome outcome, std::size_t parts, const LpLimits& limits, std::vector<char>& in_pool) {
  in_pool.assign(decided_.size(), 0);
  for (int u : decided_) solver_.free_start(u);
  for (std::size_t part = 0; part < parts; ++part)
    outcome = round_down(outcome, in_pool.size() * part / parts, in_pool.size() * (part + 1) / parts, limits, in_pool);
  return outcome;
}

// Opens some that follow one another, halves, then quarters and so on, and decides them anew where that may gain.
void ScheduleProgram::Scheduler::improve(std::vector<char>& best, double& least, double enough, const LpLimits& limits, int tries) {
  fix(best);
  for (std::size_t size = best.size() / 2; size >= 2; size /= 2)
    for (std::size_t from = 0; from + size <= best.size(); from += (size + 1) / 2) {
      if (least <= enough || (tries -= 2) < 0) return;
      for (std::size_t k = from; k < from + size; ++k) solver_.free_start(decided_[k]);
      std::vector<char> in_pool = best;
      const LpOutcome open = solver_.solve(limits);
      if (open.upper < least - limits.seconds) {
        const LpOutcome outcome = round_down(open, from, from + size, limits, in_pool);
        if (outcome.upper < least - limits.seconds) {
          least = outcome.upper;
          best = in_pool;
          continue;
        }
      }
      fix(best);
    }
}

// By three roundings, by the tree, and by opening a part again.
std::int64_t ScheduleProgram::Scheduler::decide(double seconds, int tries) {
  solver_.solve(limits_);  // its patterns: among few that no capacity suffices for, prices lead nowhere
  solver_.ask({true, seconds});
  const LpLimits limits{kManyRounds, 1e-4, kClose * static_cast<double>(hbm_)};
  const LpOutcome relaxed = solver_.solve(limits);
  const double enough = relaxed.upper + kNear * static_cast<double>(hbm_);
  std::vector<char> best;
  double least = std::numeric_limits<double>::infinity();
  int columns = 1;
  for (std::size_t parts : {1, 3, 10}) {
    if (least <= enough) break;
    std::vector<char> in_pool;
    const LpOutcome outcome = rounded(relaxed, parts, limits, in_pool);
    columns = outcome.columns;
    if (outcome.upper >= least) continue;
    least = outcome.upper;
    best = std::move(in_pool);
  }
  if (least > enough) {
    for (int u : decided_) solver_.free_start(u);
    const int programs = std::min(tries, kColumnsTried / columns) / 2;
    const Branched tree = branch_starts(solver_, limits, {programs, least - limits.seconds, true});
    if (tree.best.upper < least) {
      least = tree.best.upper;
      best = mostly_in_pool(tree.best);
    }
    solver_.set_starts({});
    improve(best, least, std::max(enough, tree.lower + limits.seconds), limits, 2 * tries);
  }
  fix(best);
  return hbm_ + static_cast<std::int64_t>(least);
}

ScheduleGuide ScheduleProgram::Scheduler::at(std::int64_t hbm, double room) {
  const double less = room * static_cast<double>(hbm);
  solver_.ask({false, 0, static_cast<double>(hbm - hbm_) - less, 1 - room});
  const LpOutcome outcome = solver_.solve(limits_);
  return written(outcome);
}

// One engine's places are the ops, all positions of the view are boundaries: 2k and 2k + 1 are start and end of
// the op at position k + 1, from where on something is away. Slot 2k is the wait before op k, 2k + 1 its run: both begin
// when the op before it has ended.
ScheduleGuide ScheduleProgram::Scheduler::written(const LpOutcome& outcome) const {
  ScheduleGuide guide;
  guide.waits.assign(view_.places + 1, 0);
  const auto turn = [&](int at) { return at >= 2 * view_.places ? 1 : 0; };
  const auto next = [&](int boundary) { return (boundary + 1) / 2 + 1 + turn(boundary); };
  for (int s = 0; s < static_cast<int>(outcome.waits.size()); ++s)
    guide.waits[std::min(next(s), view_.places)] += outcome.waits[s];
  for (const LpShare& share : outcome.shares)
    for (const Pattern::Away& away : share.pattern.away) {
      const LpUnit& unit = program_.lp.units[share.unit];
      const int g = unit.gap_at(away.from);
      const int back = away.load < 0 ? -1 : away.load / 2 + 1 + turn(away.load);
      for (const OffloadProgram::Member& member : program_.members[share.unit]) {
        const int after = member.gaps[g].after, turns = turn(after), positions = turns * (view_.places + 1);
        // an input comes at position 0
        const int open = after >= 0 ? after / 2 + 1 - turns * view_.places : unit.pool_start ? -1 : 0;
        guide.away.push_back({member.tensor, open, next(away.from) - positions, back < 0 ? -1 : back - positions, share.share});
      }
    }
  std::stable_sort(guide.away.begin(), guide.away.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.tensor, a.open, a.from, a.back) < std::tuple(b.tensor, b.open, b.from, b.back);
  });
  return guide;
}

namespace {

// Calls visit(first, last) for the shares of each gap.
template <typename Visit>
void for_each_gap(const ScheduleGuide& guide, Visit visit) {
  for (auto first = guide.away.begin(); first != guide.away.end();) {
    const auto last = std::find_if(first, guide.away.end(),
                                   [&](const auto& a) { return a.tensor != first->tensor || a.open != first->open; });
    visit(first, last);
    first = last;
  }
}

}  // namespace

bool can_schedule(const FlatGraph& graph, const Liveness& liveness) {
  return graph.engines == 1 && !graph.any_in_pool && !liveness.reads_known_late && graph.ops <= kScheduledOps;
}

ScheduleProgram::ScheduleProgram(const FlatGraph& graph, const Liveness& liveness, const std::vector<std::int32_t>& rank,
                                 double ideal)
    : scheduler_(std::make_unique<Scheduler>(graph, rank, ideal, liveness.repeats)) {}
ScheduleProgram::~ScheduleProgram() = default;
std::int64_t ScheduleProgram::decide(double enough, int tries) { return scheduler_->decide(enough, tries); }
ScheduleGuide ScheduleProgram::at(std::int64_t hbm, double room) { return scheduler_->at(hbm, room); }

std::vector<std::vector<std::int64_t>> cuts(const ScheduleGuide& guide, const FlatGraph& graph, std::int64_t grain) {
  std::vector<std::vector<std::int64_t>> cuts(graph.tensors);
  for_each_gap(guide, [&](auto first, auto last) {
    double sum = 0;
    for (auto away = first; away != last; ++away) {
      sum += away->share;
      const double bytes = sum * static_cast<double>(graph.bytes[away->tensor]);
      cuts[away->tensor].push_back(std::llround(bytes / static_cast<double>(grain)) * grain);
    }
  });
  for (int t = 0; t < graph.tensors; ++t) {
    std::sort(cuts[t].begin(), cuts[t].end());
    cuts[t].erase(std::unique(cuts[t].begin(), cuts[t].end()), cuts[t].end());
    std::erase_if(cuts[t], [&](std::int64_t cut) { return cut <= 0 || cut >= graph.bytes[t]; });
  }
  return cuts;
}

Filled evictions_of(const ScheduleGuide& guide, const Liveness& liveness, const StepClock& ideal) {
  std::vector<Eviction> evictions;
  for_each_gap(guide, [&](auto first, auto last) {
    int g = liveness.gap_begin[first->tensor];
    const int end = liveness.gap_begin[first->tensor + 1];
    while (g < end && liveness.gaps[g].open != first->open) ++g;
    if (g == end) return;
    const Gap& gap = liveness.gaps[g];
    const int pieces = liveness.pieces[gap.tensor];
    const double bytes = static_cast<double>(liveness.piece_from(gap.tensor, pieces));
    double sum = 0;
    int given = 0;
    for (auto away = first; away != last; ++away) {
      sum += away->share;
      const auto covered = [&](int piece) {  // by more than half
        const auto ends = liveness.piece_from(gap.tensor, piece) + liveness.piece_from(gap.tensor, piece + 1);
        return static_cast<double>(ends) <= 2 * sum * bytes;
      };
      for (; given < pieces && covered(given); ++given)
        evictions.push_back({gap.first_unit + given, std::max(gap.open + 1, away->from), away->back});
    }
  });
  std::stable_sort(evictions.begin(), evictions.end(),
                   [](const Eviction& a, const Eviction& b) { return a.position < b.position; });
  std::vector<Ticks> extra;
  for (double wait : guide.waits) extra.push_back(ideal.ticks(wait));
  return {std::move(evictions), ideal.delayed(extra)};
}

}  // namespace hyperoffload
