// Results side by side for a terminal, and what they come down to in a few sentences.
//
//   policy     fits  time      slowdown  stall     peak HBM   moved in   moved out
//   graph      yes   1.234 s   1.003x    3.702 ms  47.10 GiB  141.1 GiB  0 B
//   on_demand  no    -         ...
//              reason: ...
//
// Units suit each number; ASCII beside the names themselves; columns are aligned by code points.
#pragma once

#include <string>
#include <vector>

#include "sim/report/result.h"

namespace hyperoffload {

// The caption, a row a result, the reasons and the bound.
std::string results_table(const std::vector<Result>& results);

// One sentence on whether and how fast it runs (`graph` where it is among the results, else the
// fastest that fits), what the bound says and how the others compare; one on what binds.
std::string results_answer(const std::vector<Result>& results);

}  // namespace hyperoffload
