// A run's levels over time as JSON: `POLICY.series.json` of `run`, what a report's charts are drawn from.
// docs/results.md, "Series". No wall-clock times: the same run gives the same bytes.
#pragma once

#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/report/result.h"
#include "sim/report/series.h"

namespace hyperoffload {

std::string series_to_json(const Graph& graph, const Hardware& hardware, const Result& result,
                           const std::vector<IterationSeries>& iterations);

}  // namespace hyperoffload
