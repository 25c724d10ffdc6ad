// The planner: from a graph and a machine to a plan of transfers that keeps HBM within its capacity and
// hides what can be hidden.
//
// HBM capacity is `hardware.hbm_usable()`. The plan comes with its prediction (the planner's own exact
// walk of time, for the same number of iterations), a proven bound on any plan's stall, and a log of why
// each action is there. Where everything fits nothing moves. The same input gives the same plan,
// whatever the order of tensors in the file. How it searches: pipeline.h; what it costs: linear in ops
// times a number of passes that `effort` sets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/decision_log.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload {

enum class BoundMethod { kWindow, kLp };  // one cheap pass; a linear relaxation

struct FlatGraph;      // analysis/flat_graph.h
struct ScheduleGuide;  // passes/schedule_guide.h

struct PlannerOptions {
  int iterations = 1;
  // 0: one pass; 1: as many as a long trace affords; 2: a thorough search.
  int effort = 1;
  bool explain = false;  // one line an action in the log
  // Tensors that never leave HBM: names, patterns (* and ?) or kinds.
  std::vector<std::string> pinned = {};
  double enough_stall = 0;  // seconds: a plan that stalls no longer ends the search
  bool exact = false;       // one that stalls hardly longer does not
  const ScheduleGuide* guided = nullptr;  // look only for plans that follow it
  std::uint32_t skip = 0;   // steps of the search to leave out, bits by SearchStep (pipeline.h)
  int rank = 0;             // whose trace it is, where each NPU has its own
  BoundMethod bound = BoundMethod::kWindow;
  bool addresses = false;  // where in HBM everything lies; HBM capacity then holds for the arena's height
  // Transfers are placed as if they took (1 + slack) times as long: they come in time although kernels run faster than
  // the trace says, or others use the link. The prediction is without. Above -1; below 0 for links that are faster than
  // the share that the machine promises.
  double read_slack = 0, write_slack = 0;
};

// What a plan takes of HBM with its addresses (planner/addresses.h); bytes.
struct Arena {
  std::int64_t height = 0;             // no address reaches above it
  std::int64_t live_peak = 0;          // of the walk
  std::int64_t program_peak = 0;       // most bytes alive in either order: what no packing can beat
  std::int64_t proven = 0;             // no packing of the plan is lower: that, or more
  std::int64_t first_fit_by_size = 0;  // the height that the simplest rule reaches
  std::int64_t planned_for = 0;  // the HBM that the plan counts on, to stay below HBM with its addresses
  bool late = false;  // its loads start no earlier than they have to
  int items = 0;
};

struct PlanOutcome {
  Plan plan;
  DecisionLog log;
  std::optional<Arena> arena{};  // with addresses
  bool estimate = false;  // NPUs share a pool port: the prediction assumes an equal share at all times
};

// By tensor, whether it is pinned. InputError for a pattern that names nothing, or a tensor that has to be in
// the pool; it names the option.
std::vector<char> pinned_tensors(const Graph& graph, const std::vector<std::string>& pinned,
                                 const std::string& option = "--pin");

// InfeasibleError, naming step, tier, bytes short and the largest residents, if no plan can meet HBM or
// pool capacity. InputError for a graph this machine can't run (op_cost).
PlanOutcome make_plan(const Graph& graph, const Hardware& hardware, const PlannerOptions& options);

// With links as slow as transfers are to be placed for.
FlatGraph with_slack(FlatGraph graph, const PlannerOptions& options);

// Proven limits for any plan: least stall of the last iteration, least HBM without. `ideal`: the iteration's
// time with everything in place, where ranks that meet over the fabric make it longer than the walk of one NPU knows.
// `known_after`: of plans that load nothing for an op before it is known what it reads, as this planner's (a policy that loads
// whole layers ahead does).
Bound prove_bound(const Graph& graph, const Hardware& hardware, int iterations, BoundMethod method,
                  std::optional<Seconds> ideal = {}, bool known_after = false);
Bound cheap_bound(const Graph& graph, const Hardware& hardware, int iterations);

// The same for a rank with a trace of its own: with its links to itself, since the others may be idle. `time`: what
// the machine's iteration takes with everything in place; while a rank waits for others it may load, so that its
// least HBM without stall is for that time. `ideal`: its own, with nobody to wait for, and the stall is above that.
struct RankBound {
  Bound bound;
  Seconds ideal;
};
RankBound rank_bound(const Graph& graph, const Hardware& hardware, int iterations, int rank, BoundMethod method, Seconds time);

}  // namespace hyperoffload
