#include "planner/cost/step_clock.h"

#include <algorithm>
#include <cmath>

namespace hyperoffload {

StepClock::StepClock(const FlatGraph& graph, const Walk& walk, double transfer_seconds) {
  // 64 times the sum of all time leaves room for stretched timelines.
  tick_ = std::max(1e-15, std::ldexp(64 * (walk.last_iteration + transfer_seconds), -50));
  start_.assign(graph.ops + 1, 0);
  end_.assign(graph.ops + 1, 0);
  for (const OpWalk& op : walk.ops) {
    start_[op.op + 1] = static_cast<Ticks>((op.start - walk.last_start) / tick_);
    end_[op.op + 1] = static_cast<Ticks>((op.end - walk.last_start) / tick_);
  }
  finish();
}

void StepClock::finish() {
  period_ = *std::max_element(end_.begin(), end_.end());
  start_floor_ = start_;
  end_ceiling_ = end_;
  for (std::size_t p = start_.size() - 1; p > 0; --p)
    start_floor_[p - 1] = std::min(start_floor_[p - 1], start_floor_[p]);
  for (std::size_t p = 1; p < end_.size(); ++p)
    end_ceiling_[p] = std::max(end_ceiling_[p], end_ceiling_[p - 1]);
}

Ticks StepClock::ticks(double seconds) const { return static_cast<Ticks>(std::ceil(seconds / tick_)); }

Ticks StepClock::at(const std::vector<Ticks>& times, int position) const {
  const int count = positions();
  if (position < 0) return times[position + count] - period_;
  return position < count ? times[position] : times[position % count] + period_ * (position / count);
}

int StepClock::first_start_from(Ticks time) const {
  const int turns = static_cast<int>(periods_before(time, period_));
  const Ticks local = time - turns * period_;
  const auto it = std::lower_bound(start_floor_.begin(), start_floor_.end(), local);
  return static_cast<int>(it - start_floor_.begin()) + turns * positions();
}

int StepClock::last_end_by(Ticks time) const {
  const int turns = static_cast<int>(periods_before(time, period_));
  const Ticks local = time - turns * period_;
  const auto it = std::upper_bound(end_ceiling_.begin(), end_ceiling_.end(), local);
  return static_cast<int>(it - end_ceiling_.begin()) - 1 + turns * positions();
}

StepClock StepClock::delayed(const std::vector<Ticks>& extra) const {
  StepClock result = *this;
  Ticks sum = 0;
  for (int p = 0; p < positions(); ++p) {
    sum += extra[p];
    result.start_[p] += sum;
    result.end_[p] += sum;
  }
  result.finish();
  return result;
}

StepClock StepClock::stretched(double factor) const {
  StepClock result = *this;
  for (auto* times : {&result.start_, &result.end_})
    for (Ticks& t : *times) t = static_cast<Ticks>(static_cast<double>(t) * factor);
  result.finish();
  return result;
}

StepClock StepClock::smoothed(const StepClock& walked, int window) const {
  const int count = positions();
  std::vector<double> stall(count + 1, 0.0);
  Ticks before = 0;
  for (int p = 1; p < count; ++p) {
    const Ticks delay = walked.start(p) - start(p);
    stall[p] = static_cast<double>(std::max<Ticks>(0, delay - before));
    before = std::max(before, delay);
  }
  std::vector<Ticks> extra(count, 0);
  double sum = 0, given = 0;
  std::vector<double> prefix(count + 1, 0.0);
  for (int p = 0; p < count; ++p) prefix[p + 1] = prefix[p] + stall[p];
  for (int p = 1; p < count; ++p) {
    const int lo = std::max(1, p - window / 2), hi = std::min(count, p + window / 2 + 1);
    sum += (prefix[hi] - prefix[lo]) / window;
    extra[p] = static_cast<Ticks>(sum - given);
    given += static_cast<double>(extra[p]);
  }
  return delayed(extra);
}

}  // namespace hyperoffload
