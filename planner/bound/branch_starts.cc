#include "planner/bound/branch_starts.h"

#include <algorithm>
#include <cmath>
#include <limits>
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
  double share = 0;  // of it in the pool
  bool solved = false;  // else `lower` is that of the leaf it was parted from
  bool operator<(const Leaf& other) const { return std::tuple(lower, -number) < std::tuple(other.lower, -other.number); }
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
  void solve_leaf(Leaf& leaf);
  void part(const Leaf& leaf);
  bool settled(const Leaf& leaf) const;

  OffloadSolver& solver_;
  const LpLimits limits_;
  const BranchLimits branches_;
  std::vector<State> state_;
  std::vector<Leaf> leaves_;
  Branched result_;
  int solved_ = 0;
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
    leaf.share = pool[u];
    bytes = part * solver_.lp().units[u].bytes;
  }
}

void Tree::solve_leaf(Leaf& leaf) {
  LpOutcome outcome = solve(leaf);
  look_at(outcome, leaf);
  leaf.lower = std::max(leaf.lower, outcome.lower);
  leaf.number = solved_++;
  leaf.solved = true;
  if (leaf.part_at < 0 && outcome.upper < result_.best.upper) result_.best = std::move(outcome);
}

bool Tree::settled(const Leaf& leaf) const {
  const double close = std::max(limits_.tolerance * leaf.lower, limits_.seconds);
  return leaf.lower >= std::min(branches_.enough, result_.best.upper - close);
}

// In place of the leaf: its two parts, the likelier one last.
void Tree::part(const Leaf& leaf) {
  Leaf left{leaf.lower, solved_, leaf.starts, leaf.decided}, right = left;
  const double low = std::floor(leaf.count), rest = leaf.count - low;
  bool likelier_right = rest >= 0.5;
  if (rest > kWhole && rest < 1 - kWhole) {
    left.starts.most = low;
    right.starts.least = low + 1;
  } else {
    left.decided.push_back({leaf.part_at, false});
    right.decided.push_back({leaf.part_at, true});
    likelier_right = leaf.share >= 0.5;
  }
  leaves_.push_back(likelier_right ? left : right);
  leaves_.push_back(likelier_right ? std::move(right) : std::move(left));
}

Branched Tree::run() {
  leaves_.push_back({});
  for (bool down = false;;) {  // down: on from the leaf that came last
    const auto best = std::min_element(leaves_.begin(), leaves_.end());
    result_.lower = best->lower;
    result_.programs = std::max(0, solved_ - 1);
    if (settled(*best) || (best->solved && best->part_at < 0) || solved_ > branches_.programs) return result_;
    if (!down) std::iter_swap(best, leaves_.end() - 1);
    Leaf leaf = std::move(leaves_.back());
    leaves_.pop_back();
    if (leaf.solved) {
      part(leaf);
      down = branches_.dive;
      continue;
    }
    solve_leaf(leaf);
    down = branches_.dive && leaf.part_at >= 0 && !settled(leaf);
    leaves_.push_back(std::move(leaf));
  }
}

}  // namespace

Branched branch_starts(OffloadSolver& solver, const LpLimits& limits, const BranchLimits& branches) {
  return Tree(solver, limits, branches).run();
}

}  // namespace hyperoffload
