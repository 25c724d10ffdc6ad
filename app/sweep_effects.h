// What each axis of a sweep does to the figures, in a sentence; one that does nothing is named.
//
// Two runs of one policy are compared where all other axes are the same. Compared are whether it fits and, where
// it does, times (but for rounding: 1e-9 of them); then peaks, bytes moved and the ideal time. O(results).
#pragma once

#include <string>
#include <vector>

#include "app/sweep_axes.h"
#include "sim/report/result.h"

namespace hyperoffload {

struct SweepResult {
  std::size_t point = 0;
  Result result;
};

// A line an axis.
std::string sweep_effects(const SweepAxes& axes, const std::vector<SweepResult>& results);

// A line a policy: at how many points it fits, and its shortest and longest time there.
std::string sweep_table(const std::vector<SweepResult>& results);

}  // namespace hyperoffload
