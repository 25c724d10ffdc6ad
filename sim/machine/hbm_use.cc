#include "sim/machine/hbm_use.h"

#include <algorithm>
#include <numeric>

namespace hyperoffload {
namespace {

// Far from equality by more than rounding could hide.
constexpr double kClearly = 1 - 1e-9;

double copy_cap(const Hardware& hardware, bool read) {
  double cap = pool_path(hardware, read, false).bandwidth.value;
  if (hardware.link_far) cap = std::max(cap, pool_path(hardware, read, true).bandwidth.value);
  return cap;
}

}  // namespace

HbmUse hbm_use(const Graph& graph, const std::vector<OpCost>& costs, const Hardware& hardware) {
  HbmUse use;
  use.quiet.resize(graph.ops().size());
  for (std::size_t i = 0; i < costs.size(); ++i) use.quiet[i] = costs[i].hbm_bytes == Bytes(0);
  if (hardware.priority.demand != hardware.priority.prefetch) return use;

  std::vector<double> largest(graph.engines().size());
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (over_fabric(op, hardware) && !op.hbm_bytes) return use;
    if (costs[i].hbm_bytes > Bytes(0))
      largest[op.engine.index()] = std::max(largest[op.engine.index()], costs[i].hbm_rate_cap.value);
  }
  const auto engines = std::count_if(largest.begin(), largest.end(), [](double cap) { return cap > 0; });
  const double all_engines = std::accumulate(largest.begin(), largest.end(), 0.0);
  const double h = hardware.hbm_bandwidth.value, r = copy_cap(hardware, true), w = copy_cap(hardware, false);
  const bool free = std::max(r, w) <= h / static_cast<double>(engines + 2) || all_engines + r + w <= h;
  if (!free) return use;

  std::vector<char> quiet = use.quiet;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const OpCost& cost = costs[i];
    const double own = largest[graph.ops()[i].engine.index()];
    const double left = h - r - w - (all_engines - own);
    const double bytes = static_cast<double>(cost.hbm_bytes.value);
    if (left >= cost.hbm_rate_cap.value || bytes <= left * cost.compute.value * kClearly) quiet[i] = 1;
  }
  use.idle = std::all_of(quiet.begin(), quiet.end(), [](char q) { return q != 0; });
  if (use.idle || engines <= 1) use.quiet = std::move(quiet);
  return use;
}

}  // namespace hyperoffload
