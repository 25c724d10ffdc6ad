#include "sim/policy/fixed_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/model/error.h"
#include "sim/policy/hbm_profile.h"
#include "sim/policy/range_max.h"

namespace hyperoffload {
namespace {

class ByDistance {
 public:
  ByDistance(const Graph& graph, const FixedDistanceOptions& options) : graph_(graph), options_(options) {
    const auto ops = static_cast<std::int64_t>(graph.ops().size());
    const int away = options.distance + options.release + 2;  // one op at least
    for (const Stretch& s : stretches(graph)) {
      const std::int64_t length = s.to.value - s.from.value + (s.wraps ? ops : 0);
      if (length >= std::max(away, options.select)) candidates_.push_back({s, length});
    }
    std::sort(candidates_.begin(), candidates_.end(), [&](const Candidate& a, const Candidate& b) {
      const auto key = [&](const Candidate& c) {
        return std::tuple(-c.length, -graph.tensor(c.stretch.tensor).bytes, c.stretch.from, c.stretch.tensor);
      };
      return key(a) < key(b);
    });
  }

  std::vector<Absence> choose(Bytes limit, const std::vector<Bytes>& profile) const {
    RangeMax taken(profile);
    std::vector<Absence> chosen;
    for (const Candidate& c : candidates_) {
      if (options_.count > 0 ? static_cast<int>(chosen.size()) == options_.count : taken.highest() <= limit) break;
      const Absence absence = absence_of(c.stretch);
      const Spared spared = spared_by(graph_, c.stretch, absence);
      if (options_.count == 0 && std::max(taken.highest(spared.from, spared.to),
                                          taken.highest(spared.again_from, spared.again_to)) <= limit)
        continue;
      const Bytes bytes = -graph_.tensor(c.stretch.tensor).bytes;
      taken.add(spared.from, spared.to, bytes);
      taken.add(spared.again_from, spared.again_to, bytes);
      chosen.push_back(absence);
    }
    if (options_.count == 0 && taken.highest() > limit)
      throw InfeasibleError(fmt::format(
          "fixed_distance has no idle tensor left and is short of {} B of HBM at op \"{}\": {} B are taken there, {} B "
          "are there",
          (taken.highest() - limit).value, graph_.ops()[taken.highest_at()].name, taken.highest().value, limit.value));
    return chosen;
  }

 private:
  struct Candidate {
    Stretch stretch;
    std::int64_t length;
  };

  Absence absence_of(const Stretch& s) const {
    Absence absence{s.tensor, s.access, OpId::none()};
    absence.leave_after = OpId(std::min(s.from.value + options_.release, static_cast<std::int32_t>(graph_.ops().size()) - 1));
    const std::int32_t after = s.to.value - options_.distance - 1;
    if (after >= 0) {
      absence.load_after = OpId(after);
    } else if (s.wraps && after < -1) {
      absence.ahead = true;
      absence.load_after = OpId(static_cast<std::int32_t>(graph_.ops().size()) + after);
    }
    return absence;
  }

  const Graph& graph_;
  const FixedDistanceOptions& options_;
  std::vector<Candidate> candidates_;
};

}  // namespace

StaticPlan fixed_distance(const Graph& graph, const Hardware& hardware, int iterations,
                          const FixedDistanceOptions& options) {
  const ByDistance rule(graph, options);
  return {fit_absences(graph, iterations,
                       [&](const std::vector<Bytes>& profile) { return rule.choose(hardware.hbm_usable(), profile); }),
          {},
          false};
}

}  // namespace hyperoffload
