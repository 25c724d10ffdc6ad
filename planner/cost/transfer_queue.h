// One direction's queue of transfers in a walk, and where it stands.
//
// Its actions go in file order, an iteration's before the next one's; the head alone is looked at. Iterations count
// from 0, times are seconds. O(1), but for passing over actions of other iterations.
#pragma once

#include <climits>
#include <cstdint>
#include <vector>

#include "planner/cost/fair_share.h"
#include "planner/cost/walk.h"
#include "sim/model/plan.h"

namespace hyperoffload {

// Where a queue stands at an iteration's start, for finding that two iterations are alike.
struct QueueState {
  std::size_t next = 0;
  int lag = 0;  // iterations behind
  bool busy = false, flowing = false;
  double left = 0;  // seconds to its next event
};
bool alike(const QueueState& a, const QueueState& b, double tolerance);  // of `left`

struct TransferQueue {
  TransferQueue(const std::vector<std::int32_t>& actions, const Plan& plan, int share_slot, double bytes_per_second,
                double seconds);

  // Moves on to the next action of an iteration below `iterations`, from the head on.
  void settle(const Plan& plan, int iterations);
  bool exhausted() const { return iteration == INT_MAX; }
  int head() const { return (*list)[next]; }
  double next_event(const FairShare& share) const { return flowing ? share.end(slot) : transfer.flow_start; }

  QueueState state(const FairShare& share, int of_iteration, double now) const;
  void skip(int iterations, double seconds);  // as if so many, which take so long, had gone by

  const std::vector<std::int32_t>* list;
  int slot;                   // in FairShare
  double bandwidth, latency;  // of its link
  bool any_later = false;     // has actions after the first iteration
  std::size_t next = 0;
  int iteration = 0;  // body the head belongs to; INT_MAX: exhausted
  bool busy = false, queued = false, flowing = false;
  TransferWalk transfer;
};

}  // namespace hyperoffload
