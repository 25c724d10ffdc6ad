#include "sim/machine/event_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>

#include "sim/machine/simgrid_compat.h"
#include "sim/model/check.h"

namespace hyperoffload {
namespace {

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

s4u::Engine* start_engine() {
  HYPER_CHECK(!s4u::Engine::is_initialized(), "SimGrid's engine was already used in this process");
  static int argc = 3;
  static char name[] = "hyperoffload", quiet1[] = "--log=root.thres:error",
              quiet2[] = "--log=xbt_cfg.thres:error";
  static char* argv[] = {name, quiet1, quiet2, nullptr};
  static char** args = argv;
  return new s4u::Engine(&argc, args);  // lives as long as the process
}

// The defaults model TCP over Ethernet: a bandwidth factor of 0.97, 5 % of cross-traffic, a TCP window, a
// clock precision of 1e-5 s.
void set_options(Seconds instant) {
  for (const std::string& option :
       {std::string("network/model:CM02"), std::string("network/crosstraffic:0"),
        std::string("network/TCP-gamma:0"), fmt::format("{}:{:g}", compat::kTimePrecision, instant.value),
        fmt::format("{}:1e-12", compat::kWorkPrecision)})
    s4u::Engine::set_config(option);
}

simgrid::kernel::resource::Model* network_of(const s4u::Engine& engine) {
  for (auto* model : engine.get_all_models())
    if (model->get_name().find("etwork") != std::string::npos) return model;
  check_failed(__FILE__, __LINE__, "SimGrid has no network model");
}

}  // namespace

EventEngine::EventEngine(Seconds horizon)
    : engine_(start_engine()), instant_(std::max(1e-12, std::ldexp(horizon.value, -50))) {
  set_options(instant_);
  compat::on_flow_over([this](const s4u::Activity& activity) {
    Flow& flow = *activity.get_data<Flow>();
    flow.action_ = nullptr;
    flow.over_->done();
    wake();
  });
}

void EventEngine::start(Flow& flow, s4u::Host* from, s4u::Host* to, double bytes, double cap, double least,
                        double weight, Completion& over) {
  if (!network_) network_ = network_of(*engine_);
  flow.over_ = &over;
  flow.comm_ = s4u::Comm::sendto_init();
  const double whole = std::max(1.0, std::floor(bytes));
  flow.comm_->set_payload_size(static_cast<std::uint64_t>(whole));
  flow.comm_->set_data(&flow);
  flow.comm_->set_source(from);
  flow.comm_->set_destination(to);  // this starts it
  auto& action = network_->get_started_action_set()->back();
  HYPER_CHECK(action.get_activity() == flow.comm_->get_impl(), "a flow that is not SimGrid's latest action");
  flow.action_ = &action;
  if (whole != bytes) action.set_remains(bytes);  // parts of a byte count, too
  if (cap < least) action.set_bound(cap);
  if (weight != 1) action.set_sharing_penalty(1 / weight);
}

void EventEngine::set_weight(Flow& flow, double weight) {
  if (flow.action_) flow.action_->set_sharing_penalty(1 / weight);
}

void EventEngine::wake() {
  if (due_) return;
  due_ = true;
  arm(now().value);
}

void EventEngine::arm(double date) {
  Timer::set(date, [this] {
    // Flows that ended now are told behind the timers; their end asks again.
    if (network_ && !network_->get_finished_action_set()->empty()) {
      due_ = false;
      return;
    }
    const double next = Timer::next();
    if (next >= 0 && next <= now().value + instant_.value)
      return arm(std::nextafter(std::max(next, now().value), std::numeric_limits<double>::infinity()));
    due_ = false;
    callback_();
  });
}

void EventEngine::run() { engine_->run(); }

}  // namespace hyperoffload
