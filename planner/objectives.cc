#include "planner/objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/analysis/liveness.h"
#include "planner/analysis/one_engine.h"
#include "planner/bound/lp_bound.h"
#include "planner/cost/walk.h"
#include "planner/passes/choose_evictions.h"
#include "planner/passes/schedule_guide.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

constexpr double kResolution = 1e-3;  // of the answer
constexpr int kStartTries = 50;  // programs solved in search of starts that take less
// So far above what the program takes plans of all kinds are tried, too: of bodies that write what they keep, those that
// follow it stall by up to 10 % where others don't.
constexpr double kFar = 3e-3;
// Room for rounding: of what the capacity is above the start, as a share of it, but no more than.
constexpr std::pair<double, double> kRooms[] = {{0.25, 5e-4}, {0.5, 2e-3}, {0.5, 1e-2}};

struct Range {
  std::int64_t least = 0, most = 0;  // any plan takes `least`; beyond `most` nothing is won
  double ideal = 0;
};

Range hbm_range(const Graph& graph, const Hardware& hardware, const PlannerOptions& options) {
  FlatGraph flat(graph, hardware);
  flat.stays = pinned_tensors(graph, options.pinned);
  const Liveness liveness(flat, {options.iterations > 1, 0});
  Range range;
  range.least = *std::max_element(liveness.working_set.begin(), liveness.working_set.end());
  const std::int64_t resident = *std::max_element(liveness.resident.begin(), liveness.resident.end());
  range.most = std::min(hardware.hbm_usable().value, std::max(resident, range.least));
  range.ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kNothing, true}).last_iteration;
  return range;
}

Hardware with_hbm(Hardware hardware, std::int64_t usable) {
  hardware.hbm_capacity = Bytes(usable + hardware.hbm_reserved.value);
  return hardware;
}

double stall(const PlanOutcome& outcome) {
  return outcome.plan.prediction->iteration.value - outcome.plan.prediction->ideal.value;
}

// What a plan takes is what it needs: with no more room than that it runs alike, unless the checker says that it
// could get stuck in another timing. Where its times are an estimate, so is what it takes at once.
Bytes needed_by(const Graph& graph, const Hardware& hardware, const PlanOutcome& outcome, int iterations, std::int64_t made_for) {
  if (outcome.estimate) return Bytes(made_for);
  const Bytes peak = outcome.plan.prediction->hbm_peak;
  const Hardware exact = with_hbm(hardware, peak.value);
  return check_plan(graph, outcome.plan, limits_of(exact), iterations).empty() ? peak : Bytes(made_for);
}

// From the least HBM that is proven upwards: near it the linear program guides the search, and one plan found there
// says all about larger capacities, while one not found says nothing.
class LeastSearch {
 public:
  LeastSearch(const Graph& graph, const Hardware& hardware, const PlannerOptions& options, double slowdown)
      : graph_(graph),
        hardware_(hardware),
        options_(options),
        slowdown_(slowdown),
        range_(hbm_range(graph, hardware, options)),
        each_(options) {
    each_.enough_stall = slowdown * range_.ideal;
    each_.explain = false;
    each_.exact = true;
    allowed_ = each_.enough_stall + 1e-9 * range_.ideal;
  }
  LeastHbm run();

 private:
  bool proven_above(std::int64_t hbm) const {  // the cheap bound rules it out
    return cheap_bound(graph_, with_hbm(hardware_, hbm), options_.iterations).stall.value > allowed_;
  }
  static std::int64_t step(std::int64_t hbm) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(kResolution * static_cast<double>(hbm)));
  }
  void prove();
  bool search_at(std::int64_t hbm);
  bool try_at(std::int64_t hbm);
  std::int64_t climb();
  void close_in(std::int64_t low);
  void accept(PlanOutcome outcome, std::int64_t hbm);

  const Graph& graph_;
  const Hardware& hardware_;
  const PlannerOptions& options_;
  const double slowdown_;
  const Range range_;
  PlannerOptions each_;
  double allowed_ = 0;
  std::int64_t proven_ = 0, start_ = 0;  // below `start_` a plan is not to be expected
  std::optional<LeastHbm> best_;
  std::optional<ScheduleProgram> guide_;
};

void LeastSearch::prove() {
  std::int64_t low = range_.least - 1, high = range_.most;
  while (high - low > step(high)) {
    const std::int64_t middle = low + (high - low) / 2;
    (proven_above(middle) ? low : high) = middle;
  }
  proven_ = start_ = low + 1;
  FlatGraph flat(graph_, hardware_);
  const Liveness liveness(flat, {options_.iterations > 1, 0});
  if (!can_schedule(flat, liveness) || options_.addresses) return;
  FlatGraph alone = flat;
  alone.machine = best_npu(hardware_);
  LpBoundOptions lp;
  lp.stall = false;
  lp.allowed_stall = each_.enough_stall;
  const auto bound = [&] { return lp_bound(alone, range_.ideal, options_.iterations, lp).hbm_peak.value; };
  proven_ = std::max(proven_, bound());
  lp.steady = options_.iterations > 1;
  start_ = std::clamp(lp.steady ? bound() : proven_, proven_, range_.most);
  flat = with_slack(std::move(flat), options_);
  flat.machine.hbm = start_;
  guide_.emplace(flat, liveness, rank_by_name(graph_), range_.ideal);
  start_ = std::clamp(guide_->decide(each_.enough_stall, kStartTries), start_, range_.most);
}

void LeastSearch::accept(PlanOutcome outcome, std::int64_t hbm) {
  const Bytes needed = needed_by(graph_, hardware_, outcome, options_.iterations, hbm);
  if (!best_ || needed < best_->hbm) best_ = LeastHbm{needed, Bytes(proven_), std::move(outcome)};
}

bool LeastSearch::search_at(std::int64_t hbm) {
  try {
    PlanOutcome outcome = make_plan(graph_, with_hbm(hardware_, hbm), each_);
    if (stall(outcome) > allowed_) return false;
    accept(std::move(outcome), hbm);
    return true;
  } catch (const InfeasibleError&) {  // too little for any plan
    return false;
  }
}

bool LeastSearch::try_at(std::int64_t hbm) {
  if (!guide_) return search_at(hbm);
  const double above = static_cast<double>(hbm - start_) / static_cast<double>(start_);
  double before = -1;
  for (const auto& [share, most] : kRooms) {
    const double room = std::min(share * above, most);
    if (room == std::exchange(before, room)) continue;
    const ScheduleGuide schedule = guide_->at(hbm, room);
    each_.guided = &schedule;
    const bool found = search_at(hbm);
    each_.guided = nullptr;
    if (found) return true;
  }
  return false;
}

// Near the least: in steps that double, as the first plan found says all about larger capacities.
std::int64_t LeastSearch::climb() {
  std::int64_t low = start_ - 1;
  for (std::int64_t up = std::max<std::int64_t>(1, start_ / 4096); start_ + up < best_->hbm.value; up *= 2) {
    if (try_at(start_ + up)) break;
    low = start_ + up;
  }
  return low;
}

// Between a capacity that failed and the best.
void LeastSearch::close_in(std::int64_t low) {
  const auto wide = [&] {
    const std::int64_t best = best_->hbm.value;
    return best - low > (guide_ ? std::max({step(best) / 4, (best - start_) / 8, std::int64_t{1}}) : step(best));
  };
  while (wide()) {
    const std::int64_t middle = low + (best_->hbm.value - low) / 2;
    if (!try_at(middle)) low = middle;
  }
}

LeastHbm LeastSearch::run() {
  PlanOutcome all = make_plan(graph_, with_hbm(hardware_, range_.most), each_);
  if (stall(all) > allowed_)
    throw InfeasibleError(fmt::format(
        "no plan found that takes at most {:.6g}x the ideal time in {} B of HBM: the best takes {:.6g}x, and at least "
        "{:.6g}x is proven to be needed",
        1 + slowdown_, range_.most, 1 + stall(all) / range_.ideal, 1 + all.plan.bound->stall.value / range_.ideal));
  prove();
  accept(std::move(all), range_.most);
  if (guide_) close_in(climb());
  if (!guide_ || static_cast<double>(best_->hbm.value - start_) > kFar * static_cast<double>(start_)) {
    guide_.reset();
    close_in(start_ - 1);
  }
  best_->outcome.plan.bound =
      prove_bound(graph_, with_hbm(hardware_, best_->hbm.value), options_.iterations, options_.bound, {}, true);
  if (options_.explain)
    best_->outcome.log =
        explain_actions(graph_, with_hbm(hardware_, best_->hbm.value), best_->outcome.plan, options_.iterations);
  return std::move(*best_);
}

}  // namespace

LeastHbm least_hbm(const Graph& graph, const Hardware& hardware, const PlannerOptions& options, double slowdown) {
  if (const auto chain = on_one_engine(graph)) return least_hbm(*chain, hardware, options, slowdown);
  return LeastSearch(graph, hardware, options, slowdown).run();
}

std::vector<FrontierPoint> frontier(const Graph& graph, const Hardware& hardware, const PlannerOptions& options,
                                    int points) {
  if (const auto chain = on_one_engine(graph)) return frontier(*chain, hardware, options, points);
  const Range range = hbm_range(graph, hardware, options);
  if (range.least > range.most) make_plan(graph, hardware, options);  // says what is short
  std::vector<FrontierPoint> curve;
  std::optional<InfeasibleError> reason;
  for (int i = 0; i < points; ++i) {
    const double share = points == 1 ? 1 : static_cast<double>(i) / (points - 1);
    const std::int64_t hbm =
        range.least + static_cast<std::int64_t>(share * static_cast<double>(range.most - range.least));
    PlanOutcome outcome;
    try {
      outcome = make_plan(graph, with_hbm(hardware, hbm), options);
    } catch (const InfeasibleError& error) {  // the pool, or engines that overlap, may ask for more
      reason = error;
      continue;
    }
    const double time = outcome.plan.prediction->iteration.value;
    if (!curve.empty() && time >= curve.back().prediction.iteration.value * (1 - 1e-9)) continue;  // dominated
    FrontierPoint point{Bytes(hbm), *outcome.plan.prediction, *outcome.plan.bound, Bytes(0), Bytes(0)};
    for (const Action& action : outcome.plan.actions) {
      if (!action.in_iteration(options.iterations > 1 ? 1 : 0)) continue;
      if (action.kind == ActionKind::kPrefetch) point.pool_to_hbm += action.bytes();
      if (action.kind == ActionKind::kStore) point.hbm_to_pool += action.bytes();
    }
    curve.push_back(point);
    if (stall(outcome) <= 1e-9 * range.ideal) break;
  }
  if (curve.empty() && reason) throw *reason;
  return curve;
}

}  // namespace hyperoffload
