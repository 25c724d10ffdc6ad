#include "planner/bound/branch_starts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>
#include <vector>

namespace hyperoffload {
namespace {

constexpr double kWhole = 1e-4;  // what the solver's tolerance may leave of a tensor on the other side

struct Decision {
  int unit;
  bool in_pool;
};

struct Leaf {
  double lower = 0;
  int number = 0;  // of equals the youngest first: it is deeper
  LpStarts starts;
  std::vector<Decision> decided;
  double count = 0;  // of starts in the pool
  int part_at = -1;  // unit; -1: all are whole
  bool operator<(const Leaf& other) const { return std::tuple(-lower, number) < std::tuple(-other.lower, other.number); }
};

class Tree {
 public:
  Tree(OffloadSolver& solver, const LpLimits& limits, const BranchLimits& branches)
      : solver_(solver), limits_(limits), branches_(branches), state_(solver.lp().units.size(), kOpen) {
    result_.best.upper = std::numeric_limits<double>::infinity();
  }
  Branched run();

 private:
  enum State : char { kOpen, kHbm, kPool };
  LpOutcome solve(const Leaf& leaf);
  void look_at(const LpOutcome& outcome, Leaf& leaf) const;
  void add(Leaf leaf);

  OffloadSolver& solver_;
  const LpLimits limits_;
  const BranchLimits branches_;
  std::vector<State> state_;
  std::priority_queue<Leaf> leaves_;
  Branched result_;
  int leaves_made_ = 0;
};

LpOutcome Tree::solve(const Leaf& leaf) {
  std::vector<State> wanted(state_.size(), kOpen);
  for (const Decision& d : leaf.decided) wanted[d.unit] = d.in_pool ? kPool : kHbm;
  for (std::size_t u = 0; u < wanted.size(); ++u) {
    if (wanted[u] == state_[u]) continue;
    if (wanted[u] == kOpen)
      solver_.free_start(static_cast<int>(u));
    else
      solver_.fix_start(static_cast<int>(u), wanted[u] == kPool);
  }
  state_ = std::move(wanted);
  solver_.set_starts(leaf.starts);
  return solver_.solve(limits_);
}

void Tree::look_at(const LpOutcome& outcome, Leaf& leaf) const {
  std::vector<double> pool(state_.size());
  for (const LpShare& share : outcome.shares)
    if (solver_.lp().counts(share.unit, share.pattern)) pool[share.unit] += share.share;
  double bytes = 0;
  for (std::size_t u = 0; u < pool.size(); ++u) {
    leaf.count += pool[u];
    const double part = std::min(pool[u], 1 - pool[u]);
    if (state_[u] != kOpen || part < kWhole || part * solver_.lp().units[u].bytes <= bytes) continue;
    leaf.part_at = static_cast<int>(u);
    bytes = part * solver_.lp().units[u].bytes;
  }
}

void Tree::add(Leaf leaf) {
  LpOutcome outcome = solve(leaf);
  look_at(outcome, leaf);
  leaf.lower = std::max(leaf.lower, outcome.lower);
  leaf.number = leaves_made_++;
  if (leaf.part_at < 0 && outcome.upper < result_.best.upper) result_.best = std::move(outcome);
  leaves_.push(std::move(leaf));
}

Branched Tree::run() {
  add({});
  for (;;) {
    const Leaf leaf = leaves_.top();
    result_.lower = leaf.lower;
    result_.programs = leaves_made_ - 1;
    const bool close = leaf.lower + std::max(limits_.tolerance * leaf.lower, limits_.seconds) >= result_.best.upper;
    if (leaf.part_at < 0 || close || leaf.lower >= branches_.enough || result_.programs + 2 > branches_.programs)
      return result_;
    leaves_.pop();
    const double low = std::floor(leaf.count);
    Leaf left{leaf.lower, 0, leaf.starts, leaf.decided}, right = left;
    if (const double part = leaf.count - low; part > kWhole && part < 1 - kWhole) {
      left.starts.most = low;
      right.starts.least = low + 1;
    } else {
      left.decided.push_back({leaf.part_at, false});
      right.decided.push_back({leaf.part_at, true});
    }
    add(std::move(left));
    add(std::move(right));
  }
}

}  // namespace

Branched branch_starts(OffloadSolver& solver, const LpLimits& limits, const BranchLimits& branches) {
  return Tree(solver, limits, branches).run();
}

}  // namespace hyperoffload
