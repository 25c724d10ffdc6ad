// The smallest setting of a static policy that fits, for settings that move more the higher they are.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

inline CheckLimits limits_of(const Hardware& hardware) { return {hardware.hbm_usable(), fair_pool(hardware)}; }

// make(0) ... make(highest), by bisection: O(log highest) plans and checks. InfeasibleError if make(highest) does not
// fit; `what` opens its message.
template <class Make>
StaticPlan fewest_that_fit(const Graph& graph, const Hardware& hardware, int iterations, int highest, const Make& make,
                           const std::string& what) {
  std::string reason;
  const auto fits = [&](const StaticPlan& made) {
    const auto broken = check_plan(made.graph ? *made.graph : graph, made.plan, limits_of(hardware), iterations);
    if (!broken.empty()) reason = broken.front().message;
    return broken.empty();
  };
  StaticPlan least = make(0);
  if (fits(least)) return least;
  least = make(highest);
  if (!fits(least)) throw InfeasibleError(fmt::format("{}: {}", what, reason));
  for (int low = 0, high = highest; high - low > 1;) {  // low does not fit, high does
    const int middle = low + (high - low) / 2;
    StaticPlan made = make(middle);
    if (fits(made)) {
      high = middle;
      least = std::move(made);
    } else {
      low = middle;
    }
  }
  return least;
}

}  // namespace hyperoffload
