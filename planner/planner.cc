#include "planner/planner.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "planner/addresses.h"
#include "planner/analysis/flat_graph.h"
#include "planner/analysis/liveness.h"
#include "planner/analysis/one_engine.h"
#include "planner/bound/lp_bound.h"
#include "planner/bound/window_bound.h"
#include "planner/cost/walk.h"
#include "planner/passes/check_capacity.h"
#include "planner/passes/late_loads.h"
#include "planner/pipeline.h"
#include "sim/model/check.h"
#include "sim/model/clock_noise.h"
#include "sim/model/error.h"

namespace hyperoffload {

namespace {

// Whether something must be moved or placed even if all fits.
bool pool_takes_part(const FlatGraph& graph) {
  return graph.any_in_pool || std::count(graph.bound_to_pool.begin(), graph.bound_to_pool.end(), 1) > 0;
}

// The passes add bytes in 64 bits without looking: beyond 2^62 B in all, which no machine has, they don't
// start. As allocated in the pool four times as much may be counted (each piece rounded up twice).
bool countable(const Graph& graph, const Allocation& allocation) {
  constexpr Bytes kMost(std::int64_t{1} << 62), kMostAllocated(std::int64_t{1} << 60);
  Bytes sum, allocated;  // saturate
  const auto add = [&](Bytes bytes) {
    sum += bytes;
    allocated += allocated_bytes(allocation, bytes);
  };
  for (const Tensor& tensor : graph.tensors()) add(tensor.bytes);
  for (const Op& op : graph.ops()) add(op.workspace);
  return sum < kMost && (allocated == sum || allocated < kMostAllocated);
}

bool matches(const std::string& pattern, const std::string& name) {
  return pattern == name || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool must_visit_pool(const Graph& graph, TensorId tensor) {
  if (graph.tensor(tensor).initial == Tier::kPool) return true;
  for (const Access& access : graph.accesses(tensor))
    if (graph.op(access.op).memory == Tier::kPool) return true;
  return false;
}

Bound bound_of(FlatGraph graph, const Hardware& hardware, double ideal, int iterations, BoundMethod method,
               bool known_after = false) {
  graph.machine = best_npu(hardware);
  if (method == BoundMethod::kWindow) return window_bound(graph, ideal, iterations);
  LpBoundOptions options;
  options.known_after = known_after;
  return lp_bound(graph, ideal, iterations, options);
}

// With the limit of iterations that end as they began, where there is one.
Bound with_steady(Bound bound, FlatGraph graph, const Hardware& hardware, double ideal, int iterations, bool known_after) {
  if (bound.method != "lp" || iterations == 1 || graph.engines > 1 || graph.any_in_pool) return bound;
  graph.machine = best_npu(hardware);
  LpBoundOptions options;
  options.known_after = known_after;
  options.steady = true;
  options.hbm = false;
  bound.steady_stall = std::max(bound.stall, lp_bound(graph, ideal, iterations, options).stall);
  return bound;
}

}  // namespace

std::vector<char> pinned_tensors(const Graph& graph, const std::vector<std::string>& pinned, const std::string& option) {
  std::vector<char> stays(graph.tensors().size());
  for (const std::string& pattern : pinned) {
    const auto kind = tensor_kind_from(pattern);
    bool found = false;
    for (std::size_t t = 0; t < stays.size(); ++t) {
      const Tensor& tensor = graph.tensors()[t];
      if (kind ? tensor.kind != *kind : !matches(pattern, tensor.name)) continue;
      if (must_visit_pool(graph, TensorId(t)))
        throw InputError(option, fmt::format("\"{}\", which starts in the pool or is accessed there", tensor.name),
                         "a tensor that can stay in HBM");
      stays[t] = found = true;
    }
    if (!found)
      throw InputError(option, fmt::format("\"{}\", which names no tensor of the trace", pattern),
                       "a tensor's name, a pattern with * and ?, or a kind");
  }
  return stays;
}

FlatGraph with_slack(FlatGraph graph, const PlannerOptions& options) {
  NpuMachine& machine = graph.machine;
  machine.read_bandwidth /= 1 + options.read_slack;
  machine.read_latency *= 1 + options.read_slack;
  machine.write_bandwidth /= 1 + options.write_slack;
  machine.write_latency *= 1 + options.write_slack;
  return graph;
}

PlanOutcome make_plan(const Graph& graph, const Hardware& hardware, const PlannerOptions& options) {
  if (const auto chain = on_one_engine(graph)) return make_plan(*chain, hardware, options);
  if (!countable(graph, hardware.allocation)) {
    const auto largest = std::max_element(graph.tensors().begin(), graph.tensors().end(),
                                          [](const Tensor& a, const Tensor& b) { return a.bytes < b.bytes; });
    throw InfeasibleError(
        fmt::format("the trace's tensors and workspaces take more than 2^62 B, or 2^60 B as the pool rounds them; the largest is \"{}\" ({} B)",
                    largest->name, largest->bytes.value));
  }
  FlatGraph flat(graph, hardware, options.rank);
  flat.stays = pinned_tensors(graph, options.pinned);
  const Walk ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kLastIteration, true});
  std::optional<Liveness> liveness(std::in_place, flat, LivenessOptions{options.iterations > 1, 0});
  PlanOutcome outcome;
  outcome.estimate = flat.machine.estimate;
  outcome.plan.bound = bound_of(flat, hardware, ideal.last_iteration, options.iterations, options.bound, true);
  outcome.plan.bound =
      with_steady(*outcome.plan.bound, flat, hardware, ideal.last_iteration, options.iterations, true);
  check_capacity(flat, *liveness);
  const bool exceeded = *std::max_element(liveness->resident.begin(), liveness->resident.end()) > flat.machine.hbm;
  if (!options.addresses) liveness.reset();  // the search has its own: long traces fill memory
  const auto search = [&](const FlatGraph& guide, bool late, Parts parts) {
    const double enough = std::max(options.enough_stall, outcome.plan.bound->stall.value);
    // The linear program's own schedule moves parts, too.
    constexpr std::uint32_t kLeavesParts = 1U << static_cast<int>(SearchStep::kPieces) | 1U << static_cast<int>(SearchStep::kTranscribe);
    const std::uint32_t skip = options.skip | (parts == Parts::kAny ? 0U : kLeavesParts);
    const SearchOptions limits{options.iterations, options.effort, skip, enough, options.exact, options.guided,
                               parts == Parts::kMoving && (options.skip & kLeavesParts) == 0};
    const bool slack = options.read_slack != 0 || options.write_slack != 0;
    Found found = slack ? search_plan(with_slack(guide, options), ideal, limits) : search_plan(guide, ideal, limits);
    if (late)
      found.plan =
          late_loads(slack ? with_slack(guide, options) : guide, options.iterations, std::move(found.plan));
    found.plan.bound = outcome.plan.bound;
    return std::move(found.plan);
  };
  if (pool_takes_part(flat) || exceeded) outcome.plan = search(flat, false, Parts::kAny);
  if (options.addresses)
    outcome.arena = fit_addresses(flat, outcome.plan, options.iterations, [&](const PlanRequest& wanted) {
      FlatGraph smaller = flat;
      smaller.machine.hbm = wanted.hbm;
      check_capacity(smaller, *liveness);
      return search(smaller, true, wanted.parts);
    });
  const Walk walk = walk_plan(flat, outcome.plan, {options.iterations, WalkRecord::kNothing, false});
  HYPER_CHECK(!walk.stuck, "the walk gets stuck on a plan that the checker passed");
  const Seconds best(ideal.last_iteration), last = without_noise(Seconds(walk.last_iteration), best);
  outcome.plan.prediction = Prediction{last,
                                       without_noise(Seconds(walk.first_iteration), best),
                                       options.iterations == 1 ? last : Seconds(walk.total),
                                       best,
                                       Bytes(walk.hbm_peak),
                                       Bytes(walk.pool_peak)};
  if (options.explain) outcome.log = explain_actions(graph, hardware, outcome.plan, options.iterations);
  return outcome;
}

Bound prove_bound(const Graph& graph, const Hardware& hardware, int iterations, BoundMethod method,
                  std::optional<Seconds> ideal, bool known_after) {
  if (const auto chain = on_one_engine(graph)) return prove_bound(*chain, hardware, iterations, method, ideal, known_after);
  if (!countable(graph, hardware.allocation)) return {Bytes(0), Seconds(0), "none"};
  const FlatGraph flat(graph, hardware);
  double time = walk_plan(flat, Plan{}, {1, WalkRecord::kNothing, true}).last_iteration;
  // Collectives of many ranks take longer than the walk of one knows; what is less is rounding.
  if (ideal && ideal->value > time * (1 + 1e-8)) time = ideal->value;
  const Bound bound = bound_of(flat, hardware, time, iterations, method, known_after);
  return with_steady(bound, flat, hardware, time, iterations, known_after);
}

Bound cheap_bound(const Graph& graph, const Hardware& hardware, int iterations) {
  return prove_bound(graph, hardware, iterations, BoundMethod::kWindow);
}

RankBound rank_bound(const Graph& graph, const Hardware& hardware, int iterations, int rank, BoundMethod method, Seconds time) {
  if (const auto chain = on_one_engine(graph)) return rank_bound(*chain, hardware, iterations, rank, method, time);
  if (!countable(graph, hardware.allocation)) return {{Bytes(0), Seconds(0), "none"}, Seconds(0)};
  const FlatGraph flat(graph, hardware, rank);
  const double ideal = walk_plan(flat, Plan{}, {1, WalkRecord::kNothing, true}).last_iteration;
  Bound bound = bound_of(flat, hardware, ideal, iterations, method);
  if (time.value > ideal * (1 + 1e-8))
    bound.hbm_peak = bound_of(flat, hardware, time.value, iterations, method).hbm_peak;
  return {bound, Seconds(ideal)};
}

}  // namespace hyperoffload
