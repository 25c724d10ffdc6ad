#include "sim/machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

namespace s4u = simgrid::s4u;

// The only place that sets SimGrid's options. The defaults model TCP over Ethernet: a bandwidth factor
// of 0.97, 5 % of cross-traffic, a TCP window, a clock precision of 1e-5 s.
void set_options(Seconds horizon) {
  const double precision = std::max(1e-12, std::ldexp(horizon.value, -50));
  for (const std::string& option :
       {std::string("network/model:CM02"), std::string("network/crosstraffic:0"),
        std::string("network/TCP-gamma:0"), fmt::format("surf/precision:{:g}", precision),
        std::string("maxmin/precision:1e-12")})
    s4u::Engine::set_config(option);
}

s4u::Engine& start_engine() {
  static int argc = 3;
  static char name[] = "hyperoffload", quiet1[] = "--log=root.thres:error",
              quiet2[] = "--log=xbt_cfg.thres:error";
  static char* argv[] = {name, quiet1, quiet2, nullptr};
  static char** args = argv;
  return *new s4u::Engine(&argc, args);  // lives as long as the process
}

// One thing in progress; told by SimGrid's completion signal through the activity's user data.
struct Running {
  s4u::ActivityPtr compute, flow;
  int pending = 0;
  Completion* over = nullptr;
};

struct EngineSlot : Running {
  s4u::Host* host = nullptr;
  s4u::Link* cap = nullptr;
  double cap_bandwidth = 0;
};

struct CopySlot : Running {
  s4u::Host *from = nullptr, *to = nullptr;
};

struct Npu {
  s4u::Host* hbm = nullptr;
  std::vector<EngineSlot> engines;
  CopySlot copies[2];
};

void part_is_over(Running& running) {
  // The activities are let go when the slot is used again: SimGrid is not done with them here.
  if (--running.pending == 0) running.over->done();
}

void start_flow(Running& running, s4u::Host* from, s4u::Host* to, Bytes bytes) {
  auto comm = s4u::Comm::sendto_init();
  comm->set_payload_size(static_cast<std::uint64_t>(bytes.value));
  comm->set_data(&running);
  comm->set_source(from);
  running.flow = comm;
  comm->set_destination(to);  // this starts it
}

}  // namespace

struct Machine::Impl {
  Hardware hardware;
  s4u::Engine* engine = nullptr;
  std::vector<Npu> npus;
  std::function<void()> instant;
  bool instant_due = false;

  s4u::Link* link(s4u::NetZone* zone, const std::string& name, BytesPerSecond bandwidth) const {
    auto* made = zone->create_link(name, bandwidth.value);
    made->set_latency(0);
    made->seal();
    return made;
  }

  void build_npu(int index, s4u::NetZone* root, const std::vector<std::string>& engine_names,
                 const std::vector<s4u::LinkInRoute>& read_port,
                 const std::vector<s4u::LinkInRoute>& write_port) {
    const std::string prefix = fmt::format("npu{}.", index);
    auto* zone = s4u::create_full_zone(prefix + "zone");
    zone->set_parent(root);
    const auto make_host = [&](const std::string& name, double speed) {
      auto* host = zone->create_host(prefix + name, speed);
      host->seal();
      return host;
    };
    Npu& npu = npus[static_cast<std::size_t>(index)];
    npu.hbm = make_host("hbm", 1);
    auto* pool = make_host("pool", 1);
    auto* hbm_link = link(zone, prefix + "hbm.bandwidth", hardware.hbm_bandwidth);
    npu.engines.resize(engine_names.size());
    for (std::size_t e = 0; e < engine_names.size(); ++e) {
      EngineSlot& slot = npu.engines[e];
      // Speed 1: an exec's amount is its time.
      slot.host = make_host("engine." + engine_names[e], 1);
      slot.cap_bandwidth = hardware.hbm_bandwidth.value;
      slot.cap = zone->create_link(prefix + "cap." + engine_names[e], slot.cap_bandwidth);
      slot.cap->set_latency(0);
      slot.cap->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
      slot.cap->seal();
      zone->add_route(slot.host->get_netpoint(), npu.hbm->get_netpoint(), nullptr, nullptr,
                      {s4u::LinkInRoute(hbm_link), s4u::LinkInRoute(slot.cap)}, false);
    }
    const auto add_copy_route = [&](Direction direction, s4u::Host* from, s4u::Host* to,
                                    const LinkDirection& declared, std::vector<s4u::LinkInRoute> links,
                                    const char* name) {
      links.emplace_back(link(zone, prefix + name, declared.bandwidth));
      links.emplace_back(hbm_link);
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
      CopySlot& slot = npu.copies[static_cast<int>(direction)];
      slot.from = from;
      slot.to = to;
    };
    add_copy_route(Direction::kPoolToHbm, pool, npu.hbm, hardware.link_read, read_port, "link.read");
    add_copy_route(Direction::kHbmToPool, npu.hbm, pool, hardware.link_write, write_port, "link.write");
    zone->seal();
  }

  const LinkDirection& declared(Direction direction) const {
    return direction == Direction::kPoolToHbm ? hardware.link_read : hardware.link_write;
  }
};

Machine::Machine(const Hardware& hardware, const std::vector<std::string>& engines, Seconds horizon)
    : impl_(std::make_unique<Impl>()) {
  HYPER_CHECK(!s4u::Engine::is_initialized(), "SimGrid's engine was already used in this process");
  impl_->hardware = hardware;
  impl_->engine = &start_engine();
  set_options(horizon);
  auto* root = s4u::create_full_zone("supernode");
  std::vector<s4u::LinkInRoute> read_port, write_port;
  if (hardware.pool_read_port)
    read_port.emplace_back(impl_->link(root, "pool.read_port", *hardware.pool_read_port));
  if (hardware.pool_write_port)
    write_port.emplace_back(impl_->link(root, "pool.write_port", *hardware.pool_write_port));
  impl_->npus.resize(static_cast<std::size_t>(hardware.npu_count));
  for (int n = 0; n < hardware.npu_count; ++n) impl_->build_npu(n, root, engines, read_port, write_port);
  root->seal();
  s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
    part_is_over(*activity.get_data<Running>());
    wake();
  });
}

Machine::~Machine() = default;

Seconds Machine::now() const { return Seconds(s4u::Engine::get_clock()); }

void Machine::run_op(int npu, EngineId engine, const OpCost& cost, Completion& over) {
  EngineSlot& slot = impl_->npus[static_cast<std::size_t>(npu)].engines[engine.index()];
  HYPER_CHECK(slot.pending == 0 && cost.alone.value > 0, "an op needs an idle engine and time");
  slot.over = &over;
  slot.pending = (cost.compute.value > 0 ? 1 : 0) + (cost.hbm_bytes.value > 0 ? 1 : 0);
  if (cost.compute.value > 0) {
    auto exec = s4u::Exec::init();
    exec->set_flops_amount(cost.compute.value);
    exec->set_data(static_cast<Running*>(&slot));
    exec->set_host(slot.host);
    slot.compute = exec;
    exec->start();
  }
  if (cost.hbm_bytes.value > 0) {
    if (slot.cap_bandwidth != cost.hbm_rate_cap.value) {
      slot.cap_bandwidth = cost.hbm_rate_cap.value;
      slot.cap->set_bandwidth(slot.cap_bandwidth);
    }
    start_flow(slot, slot.host, impl_->npus[static_cast<std::size_t>(npu)].hbm, cost.hbm_bytes);
  }
}

void Machine::copy(int npu, Direction direction, Bytes bytes, Completion& flowing, Completion& over) {
  CopySlot& slot = impl_->npus[static_cast<std::size_t>(npu)].copies[static_cast<int>(direction)];
  HYPER_CHECK(slot.pending == 0, "one transfer a direction at a time");
  slot.pending = 1;
  slot.over = &over;
  const auto flow = [this, &slot, bytes, &flowing] {
    flowing.done();
    if (bytes.value > 0) {
      start_flow(slot, slot.from, slot.to, bytes);
    } else {
      part_is_over(slot);
      wake();
    }
  };
  const Seconds latency = impl_->declared(direction).latency;
  if (latency.value > 0)
    simgrid::kernel::timer::Timer::set(now().value + latency.value, flow);
  else
    flow();
}

Seconds Machine::copy_alone(Direction direction, Bytes bytes) const {
  const LinkDirection& declared = impl_->declared(direction);
  return declared.latency + bytes / declared.bandwidth;
}

void Machine::on_instant(std::function<void()> callback) { impl_->instant = std::move(callback); }

void Machine::wake() {
  if (impl_->instant_due) return;
  impl_->instant_due = true;
  // SimGrid tells all completions of an instant before it looks at its timers again.
  simgrid::kernel::timer::Timer::set(now().value, [this] {
    impl_->instant_due = false;
    impl_->instant();
  });
}

void Machine::run() { impl_->engine->run(); }

}  // namespace hyperoffload
