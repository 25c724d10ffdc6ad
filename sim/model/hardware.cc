#include "sim/model/hardware.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hyperoffload {
namespace {

// That have it as their local one, at most.
int npus_of_socket(const Hardware& h) { return (h.nodes->npus + h.nodes->sockets - 1) / h.nodes->sockets; }

struct Share {
  double rate;
  void limit(const std::optional<BytesPerSecond>& link, double units, double sharers) {
    if (link && sharers > 0) rate = std::min(rate, link->value * units / sharers);
  }
};

// NPUs that copy: in the busiest node, and in all.
LinkDirection share_of(const Hardware& h, bool read, int in_node, int in_all) {
  const bool nodes = h.nodes.has_value();
  const double sockets = nodes ? h.nodes->sockets : 1, reach = sockets_in_reach(h);
  const bool supernode =
      nodes && h.placement.supernode && h.nodes->count > 1 && h.placement.spread != Spread::kLocal;
  LinkDirection link = pool_path(h, read, false);
  if (supernode) {
    const LinkDirection far = pool_path(h, read, true);
    link = {std::min(link.bandwidth, far.bandwidth), std::max(link.latency, far.latency)};
  }
  Share share{link.bandwidth.value};
  share.limit(h.npu_port, 1, 1);
  share.limit(read ? h.pool_read_port : h.pool_write_port, 1, in_all);
  if (nodes) {
    const bool local = h.placement.spread == Spread::kLocal;
    const double used = local ? 1 : supernode ? reach : sockets;
    const double sharers = local       ? std::min<double>(in_node, npus_of_socket(h))
                           : supernode ? in_all
                                       : in_node;
    share.limit(h.socket_port, used, sharers);
    share.limit(h.socket_memory, used, sharers);
    share.limit(h.nodes->first_level, 1, in_node);
    if (supernode) {
      const double own = sockets / reach;  // the part of a copy that stays in its node
      share.limit(h.nodes->second_level, 1, in_node * (1 - own));
      share.limit(h.nodes->second_level, 1, (in_all - (in_all > in_node ? 0 : in_node)) * own);
    }
  }
  return {BytesPerSecond(share.rate), link.latency};
}

}  // namespace

const char* to_string(Spread spread) {
  switch (spread) {
    case Spread::kLocal:
      return "local";
    case Spread::kStripe:
      return "stripe";
    case Spread::kHash:
      return "hash";
    case Spread::kLoad:
      return "load";
  }
  return "";
}

int node_of(const Hardware& hardware, int npu) { return hardware.nodes ? npu / hardware.nodes->npus : 0; }

int nodes_in_use(const Hardware& hardware) { return node_of(hardware, hardware.npu_count - 1) + 1; }

int npus_in_node(const Hardware& hardware, int node) {
  if (!hardware.nodes) return hardware.npu_count;
  const int npus = hardware.nodes->npus;
  return std::clamp(hardware.npu_count - node * npus, 0, npus);
}

int first_socket(const Hardware& hardware, int node) {
  return hardware.nodes ? node * hardware.nodes->sockets : 0;
}

int local_socket(const Hardware& hardware, int npu) {
  if (!hardware.nodes) return 0;
  const Nodes& nodes = *hardware.nodes;
  return first_socket(hardware, npu / nodes.npus) + npu % nodes.npus * nodes.sockets / nodes.npus;
}

int sockets_in_reach(const Hardware& hardware) {
  if (!hardware.nodes) return 1;
  const bool all = hardware.placement.supernode && hardware.placement.spread != Spread::kLocal;
  return hardware.nodes->sockets * (all ? hardware.nodes->count : nodes_in_use(hardware));
}

Bytes sockets_hold(const Hardware& hardware, int sockets) {
  const std::int64_t most = Bytes::max().value;
  if (!hardware.socket_capacity || hardware.socket_capacity->value > most / sockets) return Bytes(most);
  return Bytes(hardware.socket_capacity->value * sockets);
}

LinkDirection pool_path(const Hardware& hardware, bool read, bool far) {
  if (far && hardware.link_far) return read ? hardware.link_far->read : hardware.link_far->write;
  return read ? hardware.link_read : hardware.link_write;
}

LinkDirection fair_link(const Hardware& hardware, bool read) {
  return share_of(hardware, read, npus_in_node(hardware, 0), hardware.npu_count);
}

LinkDirection alone_link(const Hardware& hardware, bool read) { return share_of(hardware, read, 1, 1); }

Bytes fair_pool(const Hardware& hardware) {
  const Bytes fair(hardware.pool_capacity.value / hardware.npu_count);
  if (!hardware.nodes || !hardware.socket_capacity) return fair;
  const bool local = hardware.placement.spread == Spread::kLocal;
  if (hardware.placement.supernode && !local) return fair;
  const int npus = npus_in_node(hardware, 0);
  const Bytes of_node =
      local ? Bytes(hardware.socket_capacity->value / std::min(npus, npus_of_socket(hardware)))
            : Bytes(sockets_hold(hardware, hardware.nodes->sockets).value / npus);
  return std::min(of_node, fair);
}

Bytes allocated_bytes(const Allocation& allocation, Bytes bytes) {
  if (bytes <= Bytes(0)) return Bytes(0);
  const std::int64_t unit = std::max<std::int64_t>(1, allocation.granularity.value),
                     most = Bytes::max().value;
  const std::int64_t units = bytes.value / unit + (bytes.value % unit ? 1 : 0);
  if (units > most / unit) return Bytes::max();
  const std::int64_t rounded = units * unit;
  if (!allocation.power_of_two) return Bytes(rounded);
  std::int64_t power = 1;
  while (power < rounded && power <= most / 2) power *= 2;
  return power < rounded ? Bytes::max() : Bytes(power);
}

}  // namespace hyperoffload
