#include "planner/cost/transfer_queue.h"

#include <cmath>

namespace hyperoffload {

bool alike(const QueueState& a, const QueueState& b, double tolerance) {
  return a.next == b.next && a.lag == b.lag && a.busy == b.busy && a.flowing == b.flowing &&
         std::abs(a.left - b.left) <= tolerance;
}

TransferQueue::TransferQueue(const std::vector<std::int32_t>& actions, const Plan& plan, int share_slot,
                             double bytes_per_second, double seconds)
    : list(&actions), slot(share_slot), bandwidth(bytes_per_second), latency(seconds) {
  for (std::int32_t a : actions) any_later |= plan.actions[a].in_iteration(1);
}

void TransferQueue::settle(const Plan& plan, int iterations) {
  while (iteration < iterations) {
    for (; next < list->size(); ++next)
      if (plan.actions[head()].in_iteration(iteration)) return;
    if (iteration > 0 && !any_later) break;
    next = 0;
    ++iteration;
  }
  iteration = INT_MAX;
}

QueueState TransferQueue::state(const FairShare& share, int of_iteration, double now) const {
  return {next, exhausted() ? INT_MAX : iteration - of_iteration, busy, flowing, busy ? next_event(share) - now : 0};
}

void TransferQueue::skip(int iterations, double seconds) {
  if (!exhausted()) iteration += iterations;
  transfer.iteration += iterations;
  for (double* t : {&transfer.queued, &transfer.start, &transfer.flow_start}) *t += seconds;
}

}  // namespace hyperoffload
