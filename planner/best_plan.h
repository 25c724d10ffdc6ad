// The judge of a search: walks each plan, checks it against every rule, and keeps the best. It also counts the work,
// so that the same input ends a search at the same plan on every machine.
//
// O((ops + actions) log) a plan, and check_plan for those that are faster than the best so far.
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "planner/analysis/flat_graph.h"
#include "planner/cost/walk.h"
#include "sim/model/plan.h"

namespace hyperoffload {

class BestPlan {
 public:
  // `work`: ops and units (or actions) by pass, summed over passes, before no_work_left().
  BestPlan(const FlatGraph& graph, int iterations, double work)
      : graph_(graph), iterations_(iterations), work_left_(work) {}

  // Keeps a plan that is faster than the best and breaks no rule. The walk, stuck or not, holds until the next call.
  const Walk& judge(Plan plan);
  // The same for a change of the best plan that must be worth more than rounding. What it took is counted.
  bool improve(Plan plan);

  void spend(double work) { work_left_ -= work; }
  double work_left() const { return work_left_; }
  bool no_work_left() const { return work_left_ <= 0; }

  bool found() const { return best_.has_value(); }
  double seconds() const {  // of the judged iteration; infinite if there is no plan
    return best_ ? best_->walk.last_iteration : std::numeric_limits<double>::infinity();
  }
  const Plan& plan() const { return best_->plan; }
  const Walk& walk() const { return best_->walk; }
  Plan take() { return std::move(best_->plan); }
  Walk take_walk() { return std::move(best_->walk); }
  const std::string& first_fault() const { return first_fault_; }  // the first rule that a faster plan broke

 private:
  struct Judged {
    Plan plan;
    Walk walk;
  };
  Walk walked(const Plan& plan) const;
  bool valid(const Plan& plan);

  const FlatGraph& graph_;
  const int iterations_;
  double work_left_;
  std::optional<Judged> best_;
  Walk judged_;  // the last one that was not the best
  std::string first_fault_;
};

}  // namespace hyperoffload
