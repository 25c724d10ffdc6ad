#include "sim/report/intervals.h"

#include <algorithm>

namespace hyperoffload {

Seconds overlap(Interval a, Interval b) {
  return std::max(Seconds(0), std::min(a.to, b.to) - std::max(a.from, b.from));
}

IntervalSet::IntervalSet(std::vector<Interval> parts) {
  std::erase_if(parts, [](const Interval& p) { return p.to <= p.from; });
  std::sort(parts.begin(), parts.end(), [](const Interval& a, const Interval& b) { return a.from < b.from; });
  for (const Interval& part : parts) {
    if (!parts_.empty() && part.from <= parts_.back().to)
      parts_.back().to = std::max(parts_.back().to, part.to);
    else
      parts_.push_back(part);
  }
  before_.reserve(parts_.size() + 1);
  before_.push_back(Seconds(0));
  for (const Interval& part : parts_) before_.push_back(before_.back() + (part.to - part.from));
}

Seconds IntervalSet::covered_before(Seconds time) const {
  const auto after = std::upper_bound(parts_.begin(), parts_.end(), time,
                                      [](Seconds t, const Interval& p) { return t < p.from; });
  if (after == parts_.begin()) return Seconds(0);
  const auto last = static_cast<std::size_t>(after - parts_.begin()) - 1;
  return before_[last] + (std::min(time, parts_[last].to) - parts_[last].from);
}

Seconds IntervalSet::covered(Interval window) const {
  if (window.to <= window.from) return Seconds(0);
  return std::max(Seconds(0), covered_before(window.to) - covered_before(window.from));
}

}  // namespace hyperoffload
