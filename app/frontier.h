// What `plan --frontier` writes.
#pragma once

#include <string>
#include <vector>

#include "planner/objectives.h"

namespace hyperoffload {

// The curve, one object or row a point; fields as in docs/formats.md.
std::string frontier_to_json(const std::vector<FrontierPoint>& curve, const Graph& graph, const Hardware& hardware,
                             int iterations);
std::string frontier_to_csv(const std::vector<FrontierPoint>& curve);

}  // namespace hyperoffload
