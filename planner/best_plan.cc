#include "planner/best_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/model/check.h"
#include "sim/model/check_plan.h"

namespace hyperoffload {
namespace {

// Steady behaviour shows in the third iteration: the first two differ by what is marked `first`.
constexpr int kJudgedIterations = 3;

bool faster(const Walk& a, const Walk& b) {
  return std::tie(a.last_iteration, a.total) < std::tie(b.last_iteration, b.total);
}

}  // namespace

Walk BestPlan::walked(const Plan& plan) const {
  return walk_plan(graph_, plan, {std::min(iterations_, kJudgedIterations), WalkRecord::kLastIteration, false});
}

bool BestPlan::valid(const Plan& plan) {
  const CheckLimits limits{Bytes(graph_.machine.hbm), Bytes(graph_.machine.pool), graph_.machine.allocation};
  const auto broken = check_plan(*graph_.graph, plan, limits, iterations_);
  if (broken.empty()) return true;
  if (first_fault_.empty()) first_fault_ = broken.front().message;
  return false;
}

const Walk& BestPlan::judge(Plan plan) {
  Walk walk = walked(plan);
  if (walk.stuck || (best_ && !faster(walk, best_->walk)) || !valid(plan)) return judged_ = std::move(walk);
  best_ = Judged{std::move(plan), std::move(walk)};
  return best_->walk;
}

bool BestPlan::improve(Plan plan) {
  spend(graph_.ops + static_cast<double>(plan.actions.size()));
  Walk walk = walked(plan);
  if (walk.stuck || walk.last_iteration >= seconds() * (1 - 1e-9) || !valid(plan)) return false;
  best_ = Judged{std::move(plan), std::move(walk)};
  return true;
}

}  // namespace hyperoffload
