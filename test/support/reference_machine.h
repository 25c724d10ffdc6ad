// What runs in the reference replay: ops and transfers, on one clock, sharing one HBM.
//
// An op computes for `seconds_left` while its HBM flow moves `bytes_left`; it ends at the later of
// the two. A transfer waits `seconds_left` (its latency), then moves `bytes_left`. All flows share
// the HBM bandwidth max-min fairly, each below its own cap. Times in seconds, bytes as reals: plain
// long double, so that rounding stays far below one instant (1e-12 s).
// Every event scans everything that runs: O(running^2), which is a handful.
#pragma once

#include <optional>
#include <vector>

namespace hyperoffload::reference {

using Time = long double;

struct Activity {
  bool is_op = false;
  int index = 0;  // the caller's number for it
  Time seconds_left = 0;
  long double bytes_left = 0;
  long double cap = 0;   // bytes/s its flow may have at most
  long double rate = 0;  // bytes/s it has now

  bool flows() const { return bytes_left > 0 && (is_op || seconds_left <= 0); }
  bool done() const { return seconds_left <= 0 && bytes_left <= 0; }
};

// Progressive filling: all flows grow together; whoever meets its cap stays there.
void share_bandwidth(std::vector<Activity>& running, long double bandwidth);

class Machine {
 public:
  explicit Machine(long double hbm_bandwidth) : hbm_bandwidth_(hbm_bandwidth) {}
  Time now() const { return now_; }
  const std::vector<Activity>& running() const { return running_; }

  void start(Activity activity);
  // Removes and returns one activity that has ended by now, if there is one: ops by `index` first.
  std::optional<Activity> take_ended();
  // Moves the clock to the next event. False: nothing runs, so there is none.
  bool advance();

 private:
  Time instant() const { return 1e-12L + 1e-15L * now_; }
  long double hbm_bandwidth_;
  Time now_ = 0;
  std::vector<Activity> running_;
};

}  // namespace hyperoffload::reference
