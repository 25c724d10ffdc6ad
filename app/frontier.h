// What `plan --frontier` and `plan --max-slowdown` read and write.
#pragma once

#include <string>
#include <vector>

#include "planner/objectives.h"

namespace hyperoffload {

// "1%" -> 0.01; InputError otherwise.
double parse_percent(const std::string& text, const std::string& where);

// The curve, one object or row a point; fields as in docs/formats.md.
std::string frontier_to_json(const std::vector<FrontierPoint>& curve, const Graph& graph, const Hardware& hardware,
                             int iterations);
std::string frontier_to_csv(const std::vector<FrontierPoint>& curve);

}  // namespace hyperoffload
