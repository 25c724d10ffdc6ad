#include "planner/objectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "planner/analysis/liveness.h"
#include "planner/cost/walk.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

constexpr double kResolution = 1e-3;  // of the answer

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

}  // namespace

LeastHbm least_hbm(const Graph& graph, const Hardware& hardware, const PlannerOptions& options, double slowdown) {
  const Range range = hbm_range(graph, hardware, options);
  PlannerOptions each = options;
  each.enough_stall = slowdown * range.ideal;
  each.explain = false;
  const double allowed = each.enough_stall + 1e-9 * range.ideal;
  const auto proven_above = [&](std::int64_t hbm) {  // the bound rules it out
    return cheap_bound(graph, with_hbm(hardware, hbm), options.iterations).stall.value > allowed;
  };
  LeastHbm best{Bytes(range.most), Bytes(range.least), make_plan(graph, with_hbm(hardware, range.most), each)};
  if (stall(best.outcome) > allowed)
    throw InfeasibleError(fmt::format(
        "no plan found that takes at most {:.6g}x the ideal time in {} B of HBM: the best takes {:.6g}x, and at least "
        "{:.6g}x is proven to be needed",
        1 + slowdown, range.most, 1 + stall(best.outcome) / range.ideal,
        1 + best.outcome.plan.bound->stall.value / range.ideal));
  const auto narrow = [](std::int64_t low, std::int64_t high) {
    return static_cast<double>(high - low) <= std::max(1.0, kResolution * static_cast<double>(high));
  };
  std::int64_t low = range.least - 1, high = range.most;
  while (!narrow(low, high)) {  // the cheap bound first: it takes no search
    const std::int64_t middle = low + (high - low) / 2;
    (proven_above(middle) ? low : high) = middle;
  }
  best.proven = Bytes(low + 1);
  best.hbm = needed_by(graph, hardware, best.outcome, options.iterations, range.most);
  for (high = best.hbm.value; !narrow(low, high);) {
    const std::int64_t middle = low + (high - low) / 2;
    std::optional<PlanOutcome> outcome;
    try {
      outcome = make_plan(graph, with_hbm(hardware, middle), each);
    } catch (const InfeasibleError&) {  // too little for any plan
    }
    if (!outcome || stall(*outcome) > allowed) {
      low = middle;
      continue;
    }
    best.outcome = std::move(*outcome);
    best.hbm = needed_by(graph, hardware, best.outcome, options.iterations, middle);
    high = best.hbm.value;
  }
  best.outcome.plan.bound = prove_bound(graph, with_hbm(hardware, best.hbm.value), options.iterations, options.bound);
  if (options.explain)
    best.outcome.log = explain_actions(graph, with_hbm(hardware, best.hbm.value), best.outcome.plan, options.iterations);
  return best;
}

std::vector<FrontierPoint> frontier(const Graph& graph, const Hardware& hardware, const PlannerOptions& options,
                                    int points) {
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
