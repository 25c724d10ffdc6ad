// Max-min fair sharing of one rate among a handful of flows, each with a cap of its own: HBM bandwidth
// between the ops and the two copies of an NPU. Small and exact: rates are recomputed from scratch when
// a flow comes or goes, and a flow whose rate stays keeps its end time to the last bit.
// Bytes and bytes/s as double, seconds. A change is O(flows^2) at worst, O(flows) while nobody is
// squeezed. Weakness: meant for tens of flows, not for thousands.
#pragma once

#include <limits>
#include <vector>

namespace hyperoffload {

class FairShare {
 public:
  FairShare(double rate, int slots) : total_rate_(rate), flows_(slots) {}

  void start(int slot, double bytes, double cap, double now);
  void stop(int slot, double now);
  bool active(int slot) const { return flows_[slot].active; }
  // When the flow will end if nothing changes; infinity if there is none.
  double end(int slot) const { return flows_[slot].end; }
  void shift(double seconds);  // moves the clock under all flows

 private:
  struct Flow {
    double remaining = 0;  // bytes, at `since`
    double cap = 0, rate = 0, since = 0;
    double end = std::numeric_limits<double>::infinity();
    bool active = false;
  };
  void share(double now);
  void set_rate(Flow& flow, double rate, double now);

  double total_rate_;
  int active_count_ = 0;
  std::vector<Flow> flows_;
};

}  // namespace hyperoffload
