// `graph` where it may also drop what a layer's forward ops leave to its backward ops and compute it again.
//
// Keep, move, or compute again: how many layers compute again is chosen here (sim/policy/recompute.h says what that
// means), and which: the first ones, whose tensors would wait longest, or evenly spread ones, so that the link has time
// between those that move. For each choice the planner decides what stays and what moves. More layers cost compute and
// spare the link, so the iteration's time falls, then rises: a search by thirds, about 4 log1.5(layers) plans; all of
// up to kFewLayers. None where a plan without stays within 0.1 % of the ideal time, or where the trace has nothing that
// can be computed again. Weakness: whole layers only, and just these two choices of them.
#pragma once

#include <functional>
#include <optional>

#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

inline constexpr int kFewLayers = 8;

struct RecomputeChoice {
  int layers = 0;              // that compute again
  std::optional<Graph> graph;  // the program then; none: the trace as it is
};

// `layers`: how many (0: none); nothing: as many as pay. `plan` throws InfeasibleError where there is none; so does this
// where no choice has one. A given number of layers is the better of the two choices. InputError for more layers than can be computed again.
using PlanProgram = std::function<Plan(const Graph&)>;
RecomputeChoice choose_recompute(const Graph& graph, std::optional<int> layers, const PlanProgram& plan);

}  // namespace hyperoffload
