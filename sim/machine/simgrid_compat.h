// All that differs between SimGrid 3.32 (Debian 12) and 4.0 (Debian 13).
#pragma once

#include <simgrid/version.h>

#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace hyperoffload::compat {

namespace s4u = simgrid::s4u;

#if SIMGRID_VERSION >= 40000
inline const char* const kTimePrecision = "precision/timing";
inline const char* const kWorkPrecision = "precision/work-amount";

template <class Callback>
void on_flow_over(Callback callback) {
  s4u::Comm::on_completion_cb([callback](const s4u::Comm& comm) { callback(comm); });
}
inline s4u::NetZone* root_star() {
  return s4u::Engine::get_instance()->get_netzone_root()->add_netzone_star("supernode");
}
inline s4u::NetZone* child_full(s4u::NetZone* parent, const std::string& name) {
  return parent->add_netzone_full(name);
}
inline s4u::Host* host(s4u::NetZone* zone, const std::string& name) { return zone->add_host(name, 1.0); }
inline s4u::Link* link(s4u::NetZone* zone, const std::string& name, double bandwidth) {
  return zone->add_link(name, bandwidth);
}
// Links from a host of a star to its centre, and back.
inline void star_route(s4u::NetZone* zone, const s4u::Host* host, const std::vector<s4u::LinkInRoute>& up,
                       const std::vector<s4u::LinkInRoute>& down) {
  // Without gateways 4.0 follows the null pointer that stands for the centre.
  zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, up, false);
  zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, down, false);
}
inline void route(s4u::NetZone* zone, const s4u::Host* from, const s4u::Host* to,
                  const std::vector<s4u::LinkInRoute>& links) {
  zone->add_route(from, to, links, false);
}
#else
inline const char* const kTimePrecision = "surf/precision";
inline const char* const kWorkPrecision = "maxmin/precision";

template <class Callback>
void on_flow_over(Callback callback) {
  s4u::Activity::on_completion_cb(callback);
}
inline s4u::NetZone* root_star() { return s4u::create_star_zone("supernode"); }
inline s4u::NetZone* child_full(s4u::NetZone* parent, const std::string& name) {
  s4u::NetZone* zone = s4u::create_full_zone(name);
  zone->set_parent(parent);
  return zone;
}
inline s4u::Host* host(s4u::NetZone* zone, const std::string& name) { return zone->create_host(name, 1.0); }
inline s4u::Link* link(s4u::NetZone* zone, const std::string& name, double bandwidth) {
  return zone->create_link(name, bandwidth);
}
inline void star_route(s4u::NetZone* zone, const s4u::Host* host, const std::vector<s4u::LinkInRoute>& up,
                       const std::vector<s4u::LinkInRoute>& down) {
  zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, up, false);
  zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, down, false);
}
inline void route(s4u::NetZone* zone, const s4u::Host* from, const s4u::Host* to,
                  const std::vector<s4u::LinkInRoute>& links) {
  zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
}
#endif

}  // namespace hyperoffload::compat
