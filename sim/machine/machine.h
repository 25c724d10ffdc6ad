// The machine on SimGrid: per NPU one host an engine, HBM as a link that kernels and copies share, a
// link each way to the pool, and optionally one port of the pool per direction that all NPUs share.
//
// Everything is driven by completions in SimGrid's own thread of control: no actors, no mailboxes.
// Latency is a timer before the flow, not SimGrid's latency, which would weigh the sharing of
// bandwidth (a flow's share falls with its round-trip time there). Bandwidth is shared max-min fairly.
// An op's flow rate is capped by a link of its own (SimGrid 3.32 ignores Comm::set_rate for
// host-to-host transfers). Only this room and sim/replay know SimGrid; options are set in machine.cc.
//
// One Machine a process: SimGrid's engine can't be had twice (sim/replay forks).
// Events closer than `precision` are one instant: 1e-12 s, or 2^-50 of the horizon if that is more.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/model/hardware.h"
#include "sim/model/ids.h"
#include "sim/model/op_cost.h"
#include "sim/report/run_record.h"

namespace hyperoffload {

// Told when what it was handed to is over. Not owned by the machine.
class Completion {
 public:
  virtual void done() = 0;

 protected:
  ~Completion() = default;
};

class Machine {
 public:
  // `engines`: names, the same on every NPU. `horizon`: an upper estimate of the simulated time.
  Machine(const Hardware& hardware, const std::vector<std::string>& engines, Seconds horizon);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Seconds now() const;

  // Runs an op on an idle engine: its compute time and its HBM flow at once, over at the later of the two.
  // `cost.alone` must be more than 0 (what takes no time needs no machine).
  void run_op(int npu, EngineId engine, const OpCost& cost, Completion& over);

  // A copy between pool and HBM on an idle direction: latency, then the bytes. Must take time.
  // `flowing` is told when the bandwidth part begins (at once if there is no latency).
  void copy(int npu, Direction direction, Bytes bytes, Completion& flowing, Completion& over);

  // Latency and bytes alone on its links; 0 if the copy takes no time.
  Seconds copy_alone(Direction direction, Bytes bytes) const;

  // Called once an instant, after every completion of that instant was told.
  void on_instant(std::function<void()> callback);
  // Asks for such a call at the present instant.
  void wake();

  // Runs until nothing is going on any more.
  void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hyperoffload
