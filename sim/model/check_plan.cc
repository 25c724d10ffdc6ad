#include "sim/model/check_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/model/check.h"
#include "sim/model/check_pieces.h"
#include "sim/model/check_rules.h"
#include "sim/model/check_stuck.h"
#include "sim/model/check_words.h"
#include "sim/model/plan_body.h"
#include "sim/model/plan_order.h"

namespace hyperoffload {
namespace {

// A plan made for another graph breaks a rule nearly everywhere; nobody reads more than this.
constexpr std::size_t kMostReported = 100;

void append(std::vector<Violation>& to, std::vector<Violation> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// What is where before the first iteration, against both capacities.
std::vector<Violation> check_start(const Graph& graph, const Plan& plan, const CheckLimits& limits) {
  std::vector<Violation> broken;
  for (TensorId t : plan.initial_pool)
    if (!graph.tensor(t).persistent)
      broken.push_back(
          {"initial-pool", 0, OpId::none(), t, -1,
           fmt::format("initial_pool names {}: only persistent tensors are there before the first op",
                       quoted(graph, t))});
  const std::vector<bool> in_pool = starts_in_pool(graph, plan);
  const std::vector<Bytes> allocated = Pieces(graph, plan).allocated(limits.allocation);
  for (Tier tier : {Tier::kHbm, Tier::kPool}) {
    std::vector<Bytes> held(graph.tensors().size());
    WideBytes sum = 0;
    for (std::size_t t = 0; t < held.size(); ++t) {
      if (!graph.tensors()[t].persistent || in_pool[t] != (tier == Tier::kPool)) continue;
      held[t] = tier == Tier::kPool ? allocated[t] : graph.tensors()[t].bytes;
      sum += held[t].value;
    }
    const Bytes capacity = tier == Tier::kHbm ? plan.room_of(limits.hbm) : limits.pool;
    if (sum <= capacity.value) continue;
    broken.push_back({tier == Tier::kHbm ? "start-hbm" : "start-pool", 0, OpId::none(), TensorId::none(), -1,
                      fmt::format("what starts in {} takes {}, {} more than its {}; {}",
                                  tier == Tier::kHbm ? "HBM" : "the pool", bytes_words(sum),
                                  bytes_words(sum - capacity.value), bytes_words(capacity.value),
                                  largest_words(graph, held))});
  }
  return broken;
}

void cut_short(std::vector<Violation>& broken) {
  std::stable_sort(broken.begin(), broken.end(), [](const Violation& a, const Violation& b) {
    return std::tuple(a.iteration, a.step, a.action) < std::tuple(b.iteration, b.step, b.action);
  });
  if (broken.size() <= kMostReported) return;
  const std::size_t more = broken.size() - kMostReported;
  broken.resize(kMostReported);
  broken.push_back(
      {"more", 0, OpId::none(), TensorId::none(), -1, fmt::format("and {} more broken rules", more)});
}

std::vector<Violation> check_in_order(const Graph& graph, const Plan& plan, const CheckLimits& limits,
                                      int iterations) {
  const PlanBody first = place_actions(graph, plan, 0);
  const PlanBody later = place_actions(graph, plan, 1);
  std::vector<Violation> broken = check_start(graph, plan, limits);
  RuleFindings findings = check_rules(graph, plan, limits, first, later, iterations);
  append(broken, std::move(findings.broken));
  if (broken.empty()) {
    std::optional<AddressCheck> addresses;
    if (plan.arena) addresses.emplace(graph, plan, limits.hbm);
    if (auto stuck = find_stuck(graph, plan, limits, first, later, findings.bodies, iterations,
                                addresses ? &addresses->residency() : nullptr, addresses ? &*addresses : nullptr))
      broken.push_back(std::move(*stuck));
  }
  cut_short(broken);
  return broken;
}

}  // namespace

void watch_program_order(const Graph& graph, const Plan& plan, const CheckLimits& limits, int iterations,
                         Residency& watch) {
  const PlanBody first = place_actions(graph, plan, 0);
  const PlanBody later = place_actions(graph, plan, 1);
  const RuleFindings findings = check_rules(graph, plan, limits, first, later, iterations);
  HYPER_CHECK(findings.broken.empty(), "watching a plan that breaks a rule");
  find_stuck(graph, plan, limits, first, later, findings.bodies, iterations, &watch);
}

CheckLimits limits_of(const Hardware& hardware) {
  return {hardware.hbm_usable(), fair_pool(hardware), hardware.allocation};
}

std::vector<Violation> check_plan(const Graph& graph, const Plan& plan, const CheckLimits& limits,
                                  int iterations) {
  HYPER_CHECK(iterations > 0, "check_plan needs at least one iteration");
  if (plan.order.empty()) return check_in_order(graph, plan, limits, iterations);
  std::vector<Violation> broken = check_order(graph, plan);
  if (!broken.empty()) {
    cut_short(broken);
    return broken;
  }
  const Reordered moved = reorder(graph, plan);
  broken = check_in_order(moved.graph, moved.plan, limits, iterations);
  for (Violation& v : broken)
    if (!v.step.is_none()) v.step = plan.order[v.step.index()];
  return broken;
}

}  // namespace hyperoffload
