#include "sim/policy/greedy_gap.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/model/error.h"
#include "sim/policy/hbm_profile.h"
#include "sim/policy/range_max.h"

namespace hyperoffload {
namespace {

class Greedy {
 public:
  Greedy(const Graph& graph, Bytes limit, const std::vector<Bytes>& profile)
      : graph_(graph), ops_(graph.ops().size()), limit_(limit), taken_(profile) {}

  std::vector<Absence> choose(bool wrap) {
    std::vector<Stretch> candidates = stretches(graph_);
    std::erase_if(candidates, [&](const Stretch& s) { return length(s) < 2 || (s.wraps && !wrap); });
    std::sort(candidates.begin(), candidates.end(), [&](const Stretch& a, const Stretch& b) {
      const auto key = [&](const Stretch& s) {
        return std::tuple(-length(s), -graph_.tensor(s.tensor).bytes, s.from, s.tensor);
      };
      return key(a) < key(b);
    });
    std::vector<Absence> chosen;
    for (const Stretch& s : candidates) {
      if (taken_.highest() <= limit_) break;
      const Absence absence{s.tensor, s.access, load_point(graph_, s.to)};
      const Spared spared = spared_by(graph_, s, absence);
      if (std::max(taken_.highest(spared.from, spared.to), taken_.highest(spared.again_from, spared.again_to)) <=
          limit_)
        continue;
      const Bytes bytes = -graph_.tensor(s.tensor).bytes;
      taken_.add(spared.from, spared.to, bytes);
      taken_.add(spared.again_from, spared.again_to, bytes);
      chosen.push_back(absence);
    }
    if (taken_.highest() > limit_) report_short();
    return chosen;
  }

 private:
  std::int64_t length(const Stretch& s) const {
    return s.to.value - s.from.value + (s.wraps ? static_cast<std::int64_t>(ops_) : 0);
  }
  [[noreturn]] void report_short() const {
    const std::size_t at = taken_.highest_at();
    throw InfeasibleError(fmt::format(
        "greedy_gap has no gap left to use and is short of {} B of HBM at op \"{}\": {} B are taken there, {} B are there",
        (taken_.highest() - limit_).value, graph_.ops()[at].name, taken_.highest().value, limit_.value));
  }

  const Graph& graph_;
  const std::size_t ops_;
  const Bytes limit_;
  RangeMax taken_;  // R
};

}  // namespace

StaticPlan greedy_gap(const Graph& graph, const Hardware& hardware, int iterations,
                      const GreedyGapOptions& options) {
  StaticPlan made;
  made.plan = fit_absences(graph, iterations, [&](const std::vector<Bytes>& profile) {
    return Greedy(graph, hardware.hbm_usable(), profile).choose(options.wrap);
  });
  made.one_copy_stream = options.streams == 1;
  return made;
}

}  // namespace hyperoffload
