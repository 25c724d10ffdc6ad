#include "app/sweep_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/report/human.h"

namespace hyperoffload {
namespace {

enum class Effect { kNone, kMemory, kTime };

bool same(double a, double b) {
  constexpr double kRounding = 1e-9;  // what two replays of the same may differ by
  return std::abs(a - b) <= kRounding * std::max(a, b);
}
bool same(Seconds a, Seconds b) { return same(a.value, b.value); }
bool same(Bytes a, Bytes b) { return same(static_cast<double>(a.value), static_cast<double>(b.value)); }

// What doesn't fit has no time of its own: its figures are those of a device big enough.
Effect difference(const Result& a, const Result& b) {
  if (a.fits != b.fits) return Effect::kTime;
  if (!a.has_figures() || !b.has_figures()) return a.has_figures() == b.has_figures() ? Effect::kNone : Effect::kMemory;
  const NpuFigures &f = a.figures(), &g = b.figures();
  if (a.fits && !(same(f.iteration, g.iteration) && same(f.first_iteration, g.first_iteration) && same(f.total, g.total)))
    return Effect::kTime;
  const bool alike = a.hbm_peak == b.hbm_peak && a.pool_peak == b.pool_peak && same(f.pool_to_hbm.bytes, g.pool_to_hbm.bytes) &&
                     same(f.hbm_to_pool.bytes, g.hbm_to_pool.bytes) && same(f.ideal, g.ideal);
  return alike ? Effect::kNone : Effect::kMemory;
}

// By policy, the strongest effect of stepping along one axis.
std::map<std::string, Effect> effects_of(const SweepAxes& axes, std::size_t axis,
                                         const std::vector<SweepResult>& results) {
  std::map<std::string, Effect> effects;
  std::map<std::pair<std::string, std::vector<std::size_t>>, const Result*> first;
  for (const SweepResult& result : results) {
    std::vector<std::size_t> others = axes.steps(result.point);
    others[axis] = 0;
    const auto [it, fresh] = first.emplace(std::pair(result.result.policy, others), &result.result);
    Effect& effect = effects[result.result.policy];
    if (!fresh) effect = std::max(effect, difference(*it->second, result.result));
  }
  return effects;
}

std::string policies_with(const std::map<std::string, Effect>& effects, Effect wanted) {
  std::string names;
  for (const auto& [policy, effect] : effects)
    if (effect == wanted) names += (names.empty() ? "" : ", ") + policy;
  return names;
}

std::string sentence(const std::map<std::string, Effect>& effects, bool anything_fits) {
  const std::string why = anything_fits ? "it is not on the critical resource" : "nothing fits at any point";
  const std::string time = policies_with(effects, Effect::kTime);
  const std::string memory = policies_with(effects, Effect::kMemory);
  const std::string none = policies_with(effects, Effect::kNone);
  if (time.empty() && memory.empty())
    return "no effect: no time, peak or byte moved changes; " + why;
  std::string text = time.empty() ? "no effect on any time: " + why
                                  : "changes whether or how fast it runs: " + time;
  if (!memory.empty()) text += "; changes peaks, bytes moved or the ideal time alone: " + memory;
  if (!none.empty()) text += "; no effect on " + none;
  return text;
}

}  // namespace

std::string sweep_effects(const SweepAxes& axes, const std::vector<SweepResult>& results) {
  const bool anything_fits = std::any_of(results.begin(), results.end(), [](const SweepResult& r) { return r.result.fits; });
  std::string text;
  for (std::size_t i = 0; i < axes.axes().size(); ++i) {
    const SweepAxis& axis = axes.axes()[i];
    const bool picks_policies = std::any_of(axis.keys.begin(), axis.keys.end(),
                                            [](const std::string& key) { return key.starts_with("policies"); });
    if (axis.steps.size() > 1 && !picks_policies)
      text += axis.name() + ": " + sentence(effects_of(axes, i, results), anything_fits) + "\n";
  }
  return text;
}

std::string sweep_table(const std::vector<SweepResult>& results) {
  struct Row {
    std::size_t points = 0, fits = 0;
    Seconds shortest = Seconds::max(), longest;
  };
  std::vector<std::string> order;
  std::map<std::string, Row> rows;
  std::size_t width = 6;
  for (const SweepResult& each : results) {
    const Result& result = each.result;
    if (!rows.contains(result.policy)) order.push_back(result.policy);
    width = std::max(width, result.policy.size());
    Row& row = rows[result.policy];
    ++row.points;
    if (!result.fits || !result.has_figures()) continue;
    ++row.fits;
    row.shortest = std::min(row.shortest, result.figures().iteration);
    row.longest = std::max(row.longest, result.figures().iteration);
  }
  std::string text = fmt::format("{:<{}}  {:>13}  {:>10}  {:>10}\n", "policy", width, "fits", "shortest", "longest");
  for (const std::string& policy : order) {
    const Row& row = rows[policy];
    text += fmt::format("{:<{}}  {:>13}  {:>10}  {:>10}\n", policy, width,
                        fmt::format("{} of {}", row.fits, row.points),
                        row.fits ? human_time(row.shortest) : "-", row.fits ? human_time(row.longest) : "-");
  }
  return text;
}

}  // namespace hyperoffload
