#include "test/support/reference_machine.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/model/check.h"

namespace hyperoffload::reference {

void share_bandwidth(std::vector<Activity>& running, long double bandwidth) {
  std::vector<Activity*> open;
  for (Activity& a : running) {
    a.rate = 0;
    if (a.flows()) open.push_back(&a);
  }
  while (!open.empty()) {
    const long double fair = bandwidth / static_cast<long double>(open.size());
    const auto capped =
        std::partition(open.begin(), open.end(), [&](const Activity* a) { return a->cap > fair; });
    if (capped == open.end()) {  // nobody is held back by its own cap: equal shares
      for (Activity* a : open) a->rate = fair;
      return;
    }
    for (auto a = capped; a != open.end(); ++a) {
      (*a)->rate = (*a)->cap;
      bandwidth -= (*a)->cap;
    }
    open.erase(capped, open.end());
  }
}

void Machine::start(Activity activity) {
  if (activity.seconds_left <= instant()) activity.seconds_left = 0;
  if (activity.bytes_left <= activity.cap * instant()) activity.bytes_left = 0;
  running_.push_back(activity);
}

std::optional<Activity> Machine::take_ended() {
  auto first = running_.end();
  for (auto a = running_.begin(); a != running_.end(); ++a)
    if (a->done() && (first == running_.end() ||
                      std::tuple(!a->is_op, a->index) < std::tuple(!first->is_op, first->index)))
      first = a;
  if (first == running_.end()) return std::nullopt;
  const Activity ended = *first;
  running_.erase(first);
  return ended;
}

bool Machine::advance() {
  if (running_.empty()) return false;
  share_bandwidth(running_, hbm_bandwidth_);
  Time step = std::numeric_limits<Time>::infinity();
  for (const Activity& a : running_) {
    if (a.seconds_left > 0) step = std::min(step, a.seconds_left);
    if (a.flows()) step = std::min(step, a.bytes_left / a.rate);
  }
  HYPER_CHECK(step < std::numeric_limits<Time>::infinity(), "something runs but nothing will end");
  now_ += step;
  for (Activity& a : running_) {
    const bool flowed = a.flows();  // before the latency is cut
    if (a.seconds_left > 0) a.seconds_left -= step;
    if (a.seconds_left <= instant()) a.seconds_left = 0;
    if (flowed) a.bytes_left -= a.rate * step;
    if (flowed && a.bytes_left <= a.rate * instant()) a.bytes_left = 0;
  }
  return true;
}

}  // namespace hyperoffload::reference
