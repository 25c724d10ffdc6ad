// Busy time of one direction of the link on a guide timeline, in ticks (integers, so that sums are
// exact: cost/step_clock.h says how long a tick is).
//
// Spans are half-open, disjoint and merged. A booking takes free time as late or as early as possible
// within a window and may be split over several holes: the real queue closes the holes by moving its
// neighbours, so a split booking is as good as a whole one, and the ledger never fragments. With a
// period > 0 time is a circle (a body repeated over iterations): a window may begin before 0 or end
// behind the period, but is at most as long. cancel() is the exact inverse of a booking.
// The axis up to a horizon is divided into buckets whose busy time is summed, so that a full stretch of link is passed over
// at once: a query costs O(log buckets x log buckets + spans of a bucket), a booking as much and the holes it fills.
// Weakness: the split hides that a queue can't preempt; the walk tells.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace hyperoffload {

using Ticks = std::int64_t;
using TickSpan = std::pair<Ticks, Ticks>;  // half-open

// Whole periods from 0 to `time`, rounded down (before 0 they are negative); 0 where nothing repeats.
inline Ticks periods_before(Ticks time, Ticks period) {
  return period == 0 ? 0 : time / period - (time % period < 0 ? 1 : 0);
}

struct Booking {
  Ticks start = 0, end = 0;     // of the whole, on the caller's axis
  std::vector<TickSpan> parts;  // on the ledger's axis: within [0, period)
};

class LinkLedger {
 public:
  explicit LinkLedger(Ticks period = 0, Ticks horizon = 0, int buckets = 1);

  std::optional<Booking> book_latest(Ticks release, Ticks deadline, Ticks length);
  std::optional<Booking> book_earliest(Ticks release, Ticks deadline, Ticks length);
  // Free ticks in the window, counted up to `enough`.
  Ticks free(Ticks release, Ticks deadline, Ticks enough) const;
  // Where a booking made as late as possible would start; the lowest value if there is no room.
  Ticks latest_start(Ticks release, Ticks deadline, Ticks length) const;
  // Where a booking made as early as possible would end, had it all the time.
  Ticks earliest_end(Ticks release, Ticks length) const;
  void cancel(const Booking& booking);
  const std::map<Ticks, Ticks>& busy() const { return busy_; }  // start -> end

 private:
  Ticks origin(Ticks time) const;  // start of the period `time` lies in
  int bucket(Ticks time) const;
  void count(TickSpan span, int sign);
  Ticks busy_before(Ticks time) const;  // time: on the ledger's axis
  Ticks free_between(Ticks from, Ticks to) const;
  // The last hole before `time`, the first after it, within the window; empty when there is none.
  TickSpan hole_before(Ticks time, Ticks release) const;
  TickSpan hole_after(Ticks time, Ticks deadline) const;
  void take(Booking& booking, TickSpan span);
  void insert(TickSpan span);
  void erase(TickSpan span);

  Ticks period_;
  std::map<Ticks, Ticks> busy_;
  Ticks width_;             // of a bucket; the last one goes on for ever
  std::vector<Ticks> sums_;  // busy ticks by bucket, as a Fenwick tree from index 1 on
};

}  // namespace hyperoffload
