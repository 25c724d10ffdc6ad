#include "planner/ledger/link_ledger.h"

#include <algorithm>
#include <limits>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {
constexpr Ticks kFar = std::numeric_limits<Ticks>::max() / 4;
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
  for (Ticks left = length, time = deadline; time > release;) {
    const TickSpan hole = hole_before(time, release);
    if (hole.second - hole.first >= left) return hole.second - left;
    left -= hole.second - hole.first;
    time = hole.first;
  }
  return std::numeric_limits<Ticks>::min() / 4;
}

Ticks LinkLedger::free(Ticks release, Ticks deadline, Ticks enough) const {
  Ticks sum = 0;
  for (Ticks time = deadline; time > release && sum < enough;) {
    const TickSpan hole = hole_before(time, release);
    sum += hole.second - hole.first;
    time = hole.first;
  }
  return std::min(sum, enough);
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
  HYPER_CHECK(whole.first <= span.first && span.second <= whole.second,
              "link ledger: cancelled span is not booked");
  busy_.erase(it);
  if (whole.first < span.first) busy_.emplace(whole.first, span.first);
  if (span.second < whole.second) busy_.emplace(span.second, whole.second);
}

}  // namespace hyperoffload
