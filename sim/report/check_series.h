// Are levels over time (POLICY.series.json) whole, and of the run whose result stands beside them?
//
// Whole: every key that series_json.h writes is there, a level for each point of time, an amount for each
// step. Of that run: same trace, hardware, policy, NPU and capacities, and the first and last iteration take
// as long and fill as much as the result says. InputError with the place of the first thing that is not so.
// O(file).
#pragma once

#include "sim/report/json_node.h"
#include "sim/report/result.h"

namespace hyperoffload {

void check_series(const JsonNode& series, const Result& result);

}  // namespace hyperoffload
