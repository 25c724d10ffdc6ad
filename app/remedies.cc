#include "app/remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/ask.h"
#include "planner/decision_log.h"
#include "planner/objectives.h"
#include "sim/model/error.h"
#include "sim/report/human.h"

namespace hyperoffload {
namespace {

constexpr double kHidden = 1e-3, kMostSpeed = 1024, kNarrow = 1.02;

bool hides(const Prediction& p) { return p.iteration.value <= p.ideal.value * (1 + kHidden); }

}  // namespace

Remedies find_remedies(const Graph& graph, const Hardware& hardware, const PlannerOptions& options) {
  PlannerOptions each = options;
  each.explain = each.addresses = false;
  each.bound = BoundMethod::kWindow;
  const auto does = [&](double speed) {
    try {
      return hides(*make_plan(graph, with_pool_speed(hardware, speed), each).plan.prediction);
    } catch (const InfeasibleError&) {
      return false;
    }
  };
  Remedies found;
  double bad = 1, good = 2;
  while (good < kMostSpeed && !does(good)) bad = std::exchange(good, 2 * good);
  if (good < kMostSpeed || does(good)) {
    while (good > kNarrow * bad) {
      const double middle = (good + bad) / 2;
      (does(middle) ? good : bad) = middle;
    }
    found.link = good;
  }
  try {
    Hardware roomy = hardware;
    Bytes all;  // saturates
    for (const Tensor& tensor : graph.tensors()) all += tensor.bytes;
    for (const Op& op : graph.ops()) all += op.workspace;
    roomy.hbm_capacity = std::max(hardware.hbm_capacity, hardware.hbm_reserved + all);
    found.hbm = least_hbm(graph, roomy, each, kHidden).hbm + hardware.hbm_reserved;
  } catch (const InfeasibleError&) {
  }
  return found;
}

std::string remedy_words(const Graph& graph, const Hardware& hardware, const PlannerOptions& options, const Plan& plan) {
  if (!plan.prediction || hides(*plan.prediction) || graph.ops().size() > kRemedyOps) return "";
  const Remedies found = find_remedies(graph, hardware, options);
  const auto rate = [](double speed, BytesPerSecond declared) { return human_rate(BytesPerSecond(speed * declared.value)); };
  const std::string link =
      found.link ? fmt::format("{} from the pool and {} to it ({:.3g} times the link)", rate(*found.link, hardware.link_read.bandwidth),
                               rate(*found.link, hardware.link_write.bandwidth), *found.link)
                 : fmt::format("no bandwidth (not even {} times the link's)", kMostSpeed);
  const std::string hbm = found.hbm ? fmt::format("{} of HBM (`--max-slowdown 0.1%` makes that plan)", show_bytes(found.hbm->value))
                                    : "no room in HBM";
  return fmt::format("what would hide it, by planning again: {}{} {}\n", link,
                     found.link && found.hbm ? "; or" : ";", hbm);
}

}  // namespace hyperoffload
