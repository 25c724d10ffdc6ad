// SimGrid as an event engine: a clock, timers, and flows that share links max-min fairly. The only place
// that sets SimGrid's options.
//
// A flow crosses the links between two hosts, at most at its own cap, and gets shares of contended links in
// proportion to its weight. No actors, no mailboxes: everything is driven by completions in SimGrid's own
// thread of control. Cap and weight are set on SimGrid's action right after the start (3.32 ignores
// Comm::set_rate for host-to-host transfers; latency there would weigh the sharing, so it is a timer here).
// Events closer than instant() are one instant: 1e-12 s, or 2^-50 of the horizon if that is more.
// SimGrid tells the timers of an instant before its flows, and equal dates in no useful order; on_instant()
// is called once both have been told.
#pragma once

#include <functional>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include "sim/model/units.h"

namespace hyperoffload {

// Told when what it was handed to is over. Not owned by who tells it.
class Completion {
 public:
  virtual void done() = 0;

 protected:
  ~Completion() = default;
};

// A running flow. What SimGrid holds of it is let go when the Flow is started again or destroyed, and not
// before SimGrid is done with it: never from within done().
class Flow {
 public:
  Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

 private:
  friend class EventEngine;
  simgrid::s4u::CommPtr comm_;
  simgrid::kernel::resource::Action* action_ = nullptr;  // while it runs
  Completion* over_ = nullptr;
};

class EventEngine {
 public:
  explicit EventEngine(Seconds horizon);  // one a process
  EventEngine(const EventEngine&) = delete;
  EventEngine& operator=(const EventEngine&) = delete;

  Seconds now() const { return Seconds(simgrid::s4u::Engine::get_clock()); }
  Seconds instant() const { return instant_; }

  template <class Callback>
  void after(Seconds delay, Callback callback) {
    simgrid::kernel::timer::Timer::set(now().value + delay.value, callback);
  }

  // bytes > 0. `least`: the smallest bandwidth among the links between the two hosts.
  void start(Flow& flow, simgrid::s4u::Host* from, simgrid::s4u::Host* to, double bytes, double cap,
             double least, double weight, Completion& over);
  void set_weight(Flow& flow, double weight);  // of a flow that runs

  void on_instant(std::function<void()> callback) { callback_ = std::move(callback); }
  void wake();  // asks for such a call at the present instant
  void run();   // until nothing is going on any more

 private:
  void arm(double date);

  simgrid::s4u::Engine* engine_;
  simgrid::kernel::resource::Model* network_ = nullptr;
  Seconds instant_;
  std::function<void()> callback_;
  bool due_ = false;
};

}  // namespace hyperoffload
