// Random layer traces and plans that use every feature of the formats; the same seed, the same content.
#pragma once

#include <random>

#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

GraphSpec random_spec(std::mt19937_64& random);
Plan random_plan(std::mt19937_64& random, const Graph& graph);

}  // namespace hyperoffload
