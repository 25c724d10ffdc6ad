#include "planner/ledger/link_ledger.h"

#include <algorithm>
#include <limits>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {
constexpr Ticks kFar = std::numeric_limits<Ticks>::max() / 4;
}

LinkLedger::LinkLedger(Ticks period, Ticks horizon, int buckets)
    : period_(period), width_(std::max<Ticks>(1, horizon / buckets + 1)), sums_(buckets + 1) {}

int LinkLedger::bucket(Ticks time) const {
  return static_cast<int>(std::clamp<Ticks>(time / width_, 0, static_cast<Ticks>(sums_.size()) - 2));
}

void LinkLedger::count(TickSpan span, int sign) {
  const int last = bucket(span.second - 1);
  for (int b = bucket(span.first); b <= last; ++b) {
    const Ticks to = b == last ? span.second : std::min(span.second, (b + 1) * width_);
    for (std::size_t i = b + 1; i < sums_.size(); i += i & -i) sums_[i] += sign * (to - span.first);
    span.first = to;
  }
}

Ticks LinkLedger::busy_before(Ticks time) const {
  const int whole = bucket(time);
  Ticks sum = 0;
  for (std::size_t i = whole; i > 0; i -= i & -i) sum += sums_[i];
  const Ticks from = whole * width_;
  auto it = busy_.upper_bound(from);
  if (it != busy_.begin() && std::prev(it)->second > from) --it;
  for (; it != busy_.end() && it->first < time; ++it) sum += std::min(it->second, time) - std::max(it->first, from);
  return sum;
}

Ticks LinkLedger::free_between(Ticks from, Ticks to) const {
  if (to <= from) return 0;
  const Ticks first = origin(from), last = origin(to);
  Ticks busy = busy_before(to - last) - busy_before(from - first);
  if (last > first) busy += (last - first) / period_ * busy_before(period_);
  return to - from - busy;
}

Ticks LinkLedger::origin(Ticks time) const {
  return periods_before(time, period_) * period_;
}

TickSpan LinkLedger::hole_before(Ticks time, Ticks release) const {
  while (time > release) {
    const Ticks base = origin(time - 1);
    const auto next = busy_.lower_bound(time - base);
    if (next == busy_.begin()) {
      const Ticks start = period_ == 0 ? release : std::max(base, release);
      return {start, time};
    }
    const auto& [start, end] = *std::prev(next);
    if (base + end < time) return {std::max(base + end, release), time};
    time = base + start;
  }
  return {release, release};
}

TickSpan LinkLedger::hole_after(Ticks time, Ticks deadline) const {
  while (time < deadline) {
    const Ticks base = origin(time);
    const auto next = busy_.upper_bound(time - base);
    if (next != busy_.begin() && base + std::prev(next)->second > time) {
      time = base + std::prev(next)->second;
      continue;
    }
    Ticks end = deadline;
    if (next != busy_.end()) end = std::min(end, base + next->first);
    if (period_ > 0) end = std::min(end, base + period_);
    return {time, end};
  }
  return {deadline, deadline};
}

std::optional<Booking> LinkLedger::book_latest(Ticks release, Ticks deadline, Ticks length) {
  if (free(release, deadline, length) < length) return std::nullopt;
  Booking booking{deadline - length, deadline, {}};
  for (Ticks left = length, time = deadline; left > 0;) {
    TickSpan hole = hole_before(time, release);
    hole.first = std::max(hole.first, hole.second - left);
    if (left == length) booking.end = hole.second;
    booking.start = time = hole.first;
    left -= hole.second - hole.first;
    take(booking, hole);
  }
  return booking;
}

std::optional<Booking> LinkLedger::book_earliest(Ticks release, Ticks deadline, Ticks length) {
  if (free(release, deadline, length) < length) return std::nullopt;
  Booking booking{release, release + length, {}};
  for (Ticks left = length, time = release; left > 0;) {
    TickSpan hole = hole_after(time, deadline);
    hole.second = std::min(hole.second, hole.first + left);
    if (left == length) booking.start = hole.first;
    booking.end = time = hole.second;
    left -= hole.second - hole.first;
    take(booking, hole);
  }
  return booking;
}

Ticks LinkLedger::latest_start(Ticks release, Ticks deadline, Ticks length) const {
  Ticks end = deadline;  // the start lies before it
  for (Ticks begin = release; end - begin > width_;) {
    const Ticks middle = begin + (end - begin) / 2;
    (free_between(middle, deadline) >= length ? begin : end) = middle;
  }
  for (Ticks left = length - free_between(end, deadline), time = end; time > release;) {
    const TickSpan hole = hole_before(time, release);
    if (hole.second - hole.first >= left) return hole.second - left;
    left -= hole.second - hole.first;
    time = hole.first;
  }
  return std::numeric_limits<Ticks>::min() / 4;
}

Ticks LinkLedger::free(Ticks release, Ticks deadline, Ticks enough) const {
  return std::min(free_between(release, deadline), enough);
}

Ticks LinkLedger::earliest_end(Ticks release, Ticks length) const {
  const Ticks deadline = period_ > 0 ? release + period_ : kFar;
  Ticks time = release;
  for (Ticks left = length; left > 0;) {
    const TickSpan hole = hole_after(time, deadline);
    if (hole.first >= deadline) return time + left;
    time = std::min(hole.second, hole.first + left);
    left -= time - hole.first;
  }
  return time;
}

void LinkLedger::cancel(const Booking& booking) {
  for (const TickSpan& span : booking.parts) erase(span);
}

// A hole never crosses a period's border upwards of its start, so one shift puts it on the axis.
void LinkLedger::take(Booking& booking, TickSpan span) {
  const Ticks base = origin(span.first);
  span.first -= base;
  span.second -= base;
  booking.parts.push_back(span);
  insert(span);
}

void LinkLedger::insert(TickSpan span) {
  count(span, 1);
  auto next = busy_.lower_bound(span.first);
  if (next != busy_.begin() && std::prev(next)->second == span.first) {
    --next;
    span.first = next->first;
    next = busy_.erase(next);
  }
  if (next != busy_.end() && next->first == span.second) {
    span.second = next->second;
    next = busy_.erase(next);
  }
  busy_.emplace_hint(next, span.first, span.second);
}

void LinkLedger::erase(TickSpan span) {
  auto it = busy_.upper_bound(span.first);
  HYPER_CHECK(it != busy_.begin(), "link ledger: cancelled span is not booked");
  --it;
  const TickSpan whole = *it;
  count(span, -1);
  HYPER_CHECK(whole.first <= span.first && span.second <= whole.second,
              "link ledger: cancelled span is not booked");
  busy_.erase(it);
  if (whole.first < span.first) busy_.emplace(whole.first, span.first);
  if (span.second < whole.second) busy_.emplace(span.second, whole.second);
}

}  // namespace hyperoffload
