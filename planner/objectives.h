// Other questions to the planner: the least HBM at which a slowdown is kept, and the curve of HBM against time.
//
// Both plan at several capacities, none above the machine's own. A plan for one capacity holds at every
// larger one, so the time of the best plan known never grows with HBM; what a search finds may, and then
// says nothing (such points are left out). Bytes are usable HBM, what `reserved` takes not among them.
// Least HBM: of a short trace (passes/schedule_guide.h) the linear program, asked for capacity, says what starts in the pool and
// the least that this takes; from there upwards in steps that double plans are sought that follow its schedule to the
// letter, with a little room for rounding, then between the last failure and the first success. Otherwise capacities are
// bisected above the cheap bound.
// Cost: some 140 small programs for the starts (three a try), then two, warm, a step, about 10 steps: 0.1-2 s of CPU for 100 ops, 1-9 s for 190;
// else about 12 searches, most of them cut short as soon as the slowdown is kept;
// `points` searches.
#pragma once

#include <vector>

#include "planner/planner.h"

namespace hyperoffload {

struct LeastHbm {
  Bytes hbm;           // capacity: what the plan takes, where it can't get stuck with just that
  Bytes proven;        // no plan keeps the slowdown in less (by the linear program, where it is asked, else the cheap bound)
  PlanOutcome outcome;
};

// `slowdown`: 0.01 allows an iteration 1 % longer than the ideal one. Found to 0.1 % of the answer.
// InfeasibleError if no plan is found that keeps it in the HBM there is.
LeastHbm least_hbm(const Graph& graph, const Hardware& hardware, const PlannerOptions& options, double slowdown);

struct FrontierPoint {
  Bytes hbm;                     // capacity
  Prediction prediction;
  Bound bound;                   // at this capacity
  Bytes pool_to_hbm, hbm_to_pool;  // what the plan moves in an iteration
};

// From the least capacity any plan needs to the one at which nothing stalls: by rising HBM, falling time.
std::vector<FrontierPoint> frontier(const Graph& graph, const Hardware& hardware, const PlannerOptions& options,
                                    int points);

}  // namespace hyperoffload
