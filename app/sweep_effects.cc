#include "app/sweep_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/report/human.h"

namespace hyperoffload {
namespace {

enum class Effect { kNone, kMemory, kTime };

using Times = std::tuple<bool, bool, double, double, double>;
using Memory = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, double>;

Times times_of(const Result& r) {
  if (!r.has_figures()) return {r.fits, false, 0, 0, 0};
  const NpuFigures& f = r.figures();
  return {r.fits, true, f.iteration.value, f.first_iteration.value, f.total.value};
}

Memory memory_of(const Result& r) {
  if (!r.has_figures()) return {};
  const NpuFigures& f = r.figures();
  return {r.hbm_peak.value, r.pool_peak.value, f.pool_to_hbm.bytes.value, f.hbm_to_pool.bytes.value,
          f.ideal.value};
}

Effect difference(const Result& a, const Result& b) {
  if (times_of(a) != times_of(b)) return Effect::kTime;
  return memory_of(a) != memory_of(b) ? Effect::kMemory : Effect::kNone;
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

std::string sentence(const std::map<std::string, Effect>& effects) {
  const std::string time = policies_with(effects, Effect::kTime);
  const std::string memory = policies_with(effects, Effect::kMemory);
  const std::string none = policies_with(effects, Effect::kNone);
  if (time.empty() && memory.empty())
    return "no effect: no time, peak or byte moved changes; it is not on the critical resource";
  std::string text = time.empty() ? "no effect on any time: it is not on the critical resource"
                                  : "changes whether or how fast it runs: " + time;
  if (!memory.empty()) text += "; changes peaks, bytes moved or the ideal time alone: " + memory;
  if (!none.empty()) text += "; no effect on " + none;
  return text;
}

}  // namespace

std::string sweep_effects(const SweepAxes& axes, const std::vector<SweepResult>& results) {
  std::string text;
  for (std::size_t i = 0; i < axes.axes().size(); ++i) {
    const SweepAxis& axis = axes.axes()[i];
    const bool picks_policies = std::any_of(axis.keys.begin(), axis.keys.end(),
                                            [](const std::string& key) { return key.starts_with("policies"); });
    if (axis.steps.size() > 1 && !picks_policies)
      text += axis.name() + ": " + sentence(effects_of(axes, i, results)) + "\n";
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
