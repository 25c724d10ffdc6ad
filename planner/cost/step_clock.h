// A guide timeline: when each position of an iteration starts and ends, in ticks from its start.
//
// Positions as in memory_profile.h: 0 is the iteration's start, s + 1 is op s; P + p is p of the next
// iteration. Ticks are integers so that booked time adds up exactly; a tick is the 2^-50th part of what
// the timeline could reach at worst, at least 1e-15 s. Transfers round up, the timeline rounds down.
// With several engines starts and ends need not grow along program order; `first_start_from` and
// `last_end_by` answer for all later, or all earlier, positions. Building is O(ops), a query O(log).
#pragma once

#include <vector>

#include "planner/analysis/flat_graph.h"
#include "planner/cost/walk.h"
#include "planner/ledger/link_ledger.h"

namespace hyperoffload {

class StepClock {
 public:
  // From the ops of a walk's last iteration. `transfer_seconds`: all link time a plan may ask for.
  StepClock(const FlatGraph& graph, const Walk& walk, double transfer_seconds);

  int positions() const { return static_cast<int>(start_.size()); }
  Ticks period() const { return period_; }
  Ticks start(int position) const { return at(start_, position); }
  Ticks end(int position) const { return at(end_, position); }
  Ticks ticks(double seconds) const;  // rounded up
  double seconds(Ticks ticks) const { return static_cast<double>(ticks) * tick_; }

  // The first position from which on every position starts at or after `time`.
  int first_start_from(Ticks time) const;
  // When the position and all before it have ended.
  Ticks all_ended(int position) const { return at(end_ceiling_, position); }
  // The last position up to which every position has ended by `time`; before all of them: one less.
  int last_end_by(Ticks time) const;

  // Delays position p (and all after it) by extra[p] ticks more.
  StepClock delayed(const std::vector<Ticks>& extra) const;
  StepClock stretched(double factor) const;
  // This one with the stalls that `walked` has more than it, each spread over `window` positions.
  StepClock smoothed(const StepClock& walked, int window) const;

 private:
  StepClock() = default;
  Ticks at(const std::vector<Ticks>& times, int position) const;
  void finish();

  double tick_ = 1;
  Ticks period_ = 0;
  std::vector<Ticks> start_, end_;
  std::vector<Ticks> start_floor_;  // least start from here on
  std::vector<Ticks> end_ceiling_;  // latest end up to here
};

}  // namespace hyperoffload
