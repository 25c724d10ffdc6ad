#include "planner/cost/fair_share.h"

#include <algorithm>

namespace hyperoffload {

void FairShare::start(int slot, double bytes, double cap, double now) {
  Flow& flow = flows_[slot];
  flow = Flow{bytes, std::min(cap, total_rate_), 0, now, 0, true};
  ++active_count_;
  share(now);
}

void FairShare::stop(int slot, double now) {
  flows_[slot] = Flow{};
  --active_count_;
  if (active_count_ > 0) share(now);
}

void FairShare::shift(double seconds) {
  for (Flow& flow : flows_) {
    flow.since += seconds;
    flow.end += seconds;
  }
}

void FairShare::set_rate(Flow& flow, double rate, double now) {
  if (rate == flow.rate) return;
  flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now - flow.since));
  flow.since = now;
  flow.rate = rate;
  flow.end = now + flow.remaining / rate;
}

// Water-filling: whoever asks for less than an equal share of what is left gets what it asks for.
void FairShare::share(double now) {
  double asked = 0;
  for (const Flow& flow : flows_)
    if (flow.active) asked += flow.cap;
  if (asked <= total_rate_) {
    for (Flow& flow : flows_)
      if (flow.active) set_rate(flow, flow.cap, now);
    return;
  }
  double left = total_rate_;
  int open = active_count_;
  double level = 0;  // caps up to here are served in full
  while (open > 0) {
    const double equal = left / open;
    double served = 0;
    int count = 0;
    for (const Flow& flow : flows_)
      if (flow.active && flow.cap > level && flow.cap <= equal) {
        served += flow.cap;
        ++count;
      }
    if (count == 0) break;
    left -= served;
    open -= count;
    level = equal;
  }
  for (Flow& flow : flows_)
    if (flow.active) set_rate(flow, flow.cap <= level ? flow.cap : left / open, now);
}

}  // namespace hyperoffload
