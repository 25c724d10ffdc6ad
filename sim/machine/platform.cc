#include "sim/machine/platform.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/machine/simgrid_compat.h"
#include "sim/model/check.h"

namespace hyperoffload {
namespace {

namespace s4u = simgrid::s4u;

std::vector<s4u::LinkInRoute> in_route(const std::vector<const s4u::Link*>& links) {
  std::vector<s4u::LinkInRoute> route;
  for (const s4u::Link* link : links) route.emplace_back(link);
  return route;
}

double least(const std::vector<const s4u::Link*>& links) {
  double least = std::numeric_limits<double>::infinity();
  for (const s4u::Link* link : links) least = std::min(least, link->get_bandwidth());
  return least;
}

constexpr double kAnyDemand = std::numeric_limits<double>::infinity();

}  // namespace

Platform::Platform(const Hardware& hardware, const std::vector<Bin>& bins, const PlatformUse& use)
    : hardware_(hardware), pool_(bins), use_(use), root_(compat::root_star()) {
  nowhere_ = make_end("nowhere", {}, {});
  build_nodes();
  build_bins();
  for (int n = 0; n < hardware_.npu_count; ++n) build_npu(n);
  root_->seal();
}

const End& Platform::npu(int npu, Reach reach, bool hbm) const {
  const auto& ends = npus_[static_cast<int>(reach)][hbm ? 1 : 0];
  HYPER_CHECK(static_cast<std::size_t>(npu) < ends.size(), "an NPU's end that was not foreseen");
  return ends[static_cast<std::size_t>(npu)];
}

const Platform::Self& Platform::self(int npu, Reach reach, bool hbm) const {
  const auto& selves = self_[static_cast<int>(reach)][hbm ? 1 : 0];
  HYPER_CHECK(static_cast<std::size_t>(npu) < selves.size(), "an NPU's way to itself that was not foreseen");
  return selves[static_cast<std::size_t>(npu)];
}

// Null where the link can't bind.
const s4u::Link* Platform::link(const std::string& name, double bandwidth, double demand) {
  if (use_.leave_out && demand <= bandwidth) return nullptr;
  s4u::Link* made = compat::link(root_, name, bandwidth);
  made->set_latency(0);
  made->seal();
  return made;
}

void Platform::add(Links& links, const s4u::Link* link) const {
  if (link) links.push_back(link);
}

End Platform::make_end(const std::string& name, const Links& up, const Links& down) {
  s4u::Host* host = compat::host(root_, name);
  host->seal();
  compat::star_route(root_, host, in_route(up), in_route(down));
  return {host, least(up), least(down)};
}

// The most that one NPU's copies of a direction may ask for at once.
double Platform::copies_cap(bool read) const {
  double cap = pool_path(hardware_, read, false).bandwidth.value;
  if (hardware_.link_far) cap = std::max(cap, pool_path(hardware_, read, true).bandwidth.value);
  return hardware_.npu_port ? std::min(cap, hardware_.npu_port->value) : cap;
}

void Platform::build_nodes() {
  const int count = hardware_.nodes ? std::max(nodes_in_use(hardware_), pool_.back().node + 1) : 1;
  nodes_.resize(static_cast<std::size_t>(count));
  if (!hardware_.nodes) return;
  for (int n = 0; n < count; ++n) {
    NodeLinks& node = nodes_[static_cast<std::size_t>(n)];
    if (hardware_.nodes->first_level)
      node.first =
          link(fmt::format("node{}.first_level", n), hardware_.nodes->first_level->value, kAnyDemand);
    if (!hardware_.nodes->second_level) continue;
    node.out = link(fmt::format("node{}.out", n), hardware_.nodes->second_level->value, kAnyDemand);
    node.in = link(fmt::format("node{}.in", n), hardware_.nodes->second_level->value, kAnyDemand);
  }
}

void Platform::build_bins() {
  const Hardware& h = hardware_;
  const double read_cap = copies_cap(true), write_cap = copies_cap(false);
  const s4u::Link *read_port = nullptr, *write_port = nullptr;
  if (h.pool_read_port) read_port = link("pool.read_port", h.pool_read_port->value, read_cap * h.npu_count);
  if (h.pool_write_port)
    write_port = link("pool.write_port", h.pool_write_port->value, write_cap * h.npu_count);
  const bool one_node = h.placement.spread == Spread::kLocal || !h.placement.supernode;
  for (std::size_t b = 0; b < pool_.size(); ++b) {
    const Bin& bin = pool_[b];
    const bool of_node = bin.node >= 0 && one_node && h.nodes;
    const int users = of_node ? npus_in_node(h, bin.node) : h.npu_count;
    Links up, down;
    const auto socket_link = [&](const char* name, const std::optional<BytesPerSecond>& each, double demand) {
      return each ? link(fmt::format("bin{}.{}", b, name), each->value * bin.sockets, demand) : nullptr;
    };
    const s4u::Link* memory = socket_link("memory", h.socket_memory, (read_cap + write_cap) * users);
    add(up, memory);
    add(up, socket_link("out", h.socket_port, read_cap * users));
    add(down, socket_link("in", h.socket_port, write_cap * users));
    add(down, memory);
    add(up, read_port);
    add(down, write_port);
    for (int far = 0; far < 2; ++far) {
      if (far && (one_node || !h.nodes)) continue;
      Links out = up, in = down;
      if (bin.node >= 0 && h.nodes) {
        const NodeLinks& node = nodes_[static_cast<std::size_t>(bin.node)];
        add(out, node.first);
        add(in, node.first);
        if (far) add(out, node.out), add(in, node.in);
      }
      bins_[far].push_back(make_end(fmt::format("bin{}{}", b, far ? ".far" : ""), out, in));
    }
  }
}

void Platform::build_npu(int npu) {
  const Hardware& h = hardware_;
  const std::string name = fmt::format("npu{}", npu);
  const bool peers = use_.peers_near || use_.peers_far || use_.self;
  const s4u::Link* hbm = use_.hbm ? link(name + ".hbm", h.hbm_bandwidth.value, kAnyDemand) : nullptr;
  // With copies alone a port only lowers their cap (machine.cc does that).
  const s4u::Link *out = nullptr, *in = nullptr;
  if (h.npu_port) {
    out = link(name + ".out", h.npu_port->value, peers ? kAnyDemand : copies_cap(false));
    in = link(name + ".in", h.npu_port->value, peers ? kAnyDemand : copies_cap(true));
  }
  const NodeLinks& node = nodes_[h.nodes ? static_cast<std::size_t>(node_of(h, npu)) : 0];
  if (use_.hbm) {
    Links links;
    add(links, hbm);
    kernel_.push_back(make_end(name + ".kernel", links, {}));
  }
  for (Reach reach : {Reach::kPackage, Reach::kNear, Reach::kFar}) {
    const int r = static_cast<int>(reach);
    const bool spread_out = h.nodes && pool_.back().node != pool_.front().node && h.placement.supernode;
    if (reach == Reach::kPackage && !use_.peers_package) continue;
    if (reach == Reach::kFar && !use_.peers_far && !spread_out) continue;
    Links up, down;
    if (reach == Reach::kPackage) {
      const double bandwidth = h.nodes->package_link->bandwidth.value;
      add(up, link(name + ".package_out", bandwidth, kAnyDemand));
      add(down, link(name + ".package_in", bandwidth, kAnyDemand));
    } else {
      add(up, out);
      add(down, in);
      add(up, node.first);
      add(down, node.first);
      if (reach == Reach::kFar) add(up, node.out), add(down, node.in);
    }
    for (int with_hbm = use_.peers_without_hbm ? 0 : 1; with_hbm < 2; ++with_hbm) {
      Links out_links, in_links = down;
      if (with_hbm) add(out_links, hbm);
      out_links.insert(out_links.end(), up.begin(), up.end());
      if (with_hbm) add(in_links, hbm);
      const char* names[] = {"package", "near", "far"};
      npus_[r][with_hbm].push_back(
          make_end(fmt::format("{}.{}{}", name, names[r], with_hbm ? "" : ".ports"), out_links, in_links));
      // A near flow passes its node's switches once.
      if (use_.self && reach == Reach::kNear) std::erase(in_links, node.first);
      if (use_.self) build_self(npu, reach, with_hbm, out_links, in_links);
    }
  }
}

// A zone of its own: a star would count HBM once.
void Platform::build_self(int npu, Reach reach, bool hbm, const Links& out, const Links& in) {
  const std::string name = fmt::format("npu{}.self{}{}", npu, static_cast<int>(reach), hbm ? "" : ".ports");
  s4u::NetZone* zone = compat::child_full(root_, name);
  Links links = out;
  links.insert(links.end(), in.begin(), in.end());
  s4u::Host* hosts[2];
  for (int i = 0; i < 2; ++i) {
    hosts[i] = compat::host(zone, fmt::format("{}.{}", name, i));
    hosts[i]->seal();
  }
  if (!links.empty()) compat::route(zone, hosts[0], hosts[1], in_route(links));
  zone->seal();
  auto& selves = self_[static_cast<int>(reach)][hbm ? 1 : 0];
  selves.push_back({{hosts[0], least(out), kAnyDemand}, {hosts[1], kAnyDemand, least(in)}});
}

}  // namespace hyperoffload
