#include <fmt/format.h>

#include <algorithm>

#include "sim/model/collective.h"
#include "sim/model/error.h"
#include "sim/model/hardware.h"
#include "sim/model/nearest_name.h"
#include "sim/model/yaml_reader.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kMaxNpus = 1'000'000;
constexpr int kMaxNodes = 100'000, kMaxSockets = 1'000;

BytesPerSecond positive_rate(const YamlNode& node) {
  const BytesPerSecond rate = node.rate();
  if (rate <= BytesPerSecond(0)) node.fail("a bandwidth above 0");
  return rate;
}

FlopsPerSecond positive_compute(const YamlNode& node) {
  const FlopsPerSecond compute = node.flops_per_second();
  if (compute <= FlopsPerSecond(0)) node.fail("compute above 0");
  return compute;
}

Bytes positive_bytes(const YamlNode& node) {
  const Bytes bytes = node.bytes();
  if (bytes <= Bytes(0)) node.fail("a capacity above 0");
  return bytes;
}

// `key: {bandwidth: 196GB/s}`
std::optional<BytesPerSecond> find_port(const YamlMap& map, const char* key) {
  const auto found = map.find(key);
  if (!found) return std::nullopt;
  return positive_rate(YamlMap(*found, {"bandwidth"}).get("bandwidth"));
}

LinkDirection read_direction(const YamlNode& node) {
  const YamlMap direction(node, {"bandwidth", "latency"});
  LinkDirection link{positive_rate(direction.get("bandwidth")), Seconds(0)};
  if (const auto latency = direction.find("latency")) link.latency = latency->seconds();
  return link;
}

Path read_path(const YamlNode& node) {
  const YamlMap map(node, {"read", "write"});
  return {read_direction(map.get("read")), read_direction(map.get("write"))};
}

void read_efficiency(const YamlNode& node, Hardware& hardware) {
  for (const auto& [kernel, value] : node.map()) {
    const YamlMap map(value, {"compute", "bandwidth"});
    KernelEfficiency efficiency;
    const auto read = [&](const char* key, double& share) {
      const auto found = map.find(key);
      if (!found) return;
      share = found->number(0, 1);
      if (share <= 0) found->fail("a share above 0, at most 1");
    };
    read("compute", efficiency.compute);
    read("bandwidth", efficiency.bandwidth);
    hardware.efficiency.emplace(kernel, efficiency);
  }
}

void read_npu(const YamlNode& node, Hardware& hardware) {
  const YamlMap npu(node,
                    {"count", "compute", "hbm", "transfer_engines", "launch_overhead", "efficiency", "port"});
  if (const auto count = npu.find("count"))
    hardware.npu_count = static_cast<int>(count->integer(1, kMaxNpus));
  hardware.compute = positive_compute(npu.get("compute"));
  const YamlMap hbm(npu.get("hbm"), {"capacity", "bandwidth", "reserved"});
  hardware.hbm_capacity = positive_bytes(hbm.get("capacity"));
  hardware.hbm_bandwidth = positive_rate(hbm.get("bandwidth"));
  if (const auto reserved = hbm.find("reserved")) {
    hardware.hbm_reserved = reserved->bytes();
    if (hardware.hbm_reserved >= hardware.hbm_capacity) reserved->fail("less than the capacity");
  }
  if (const auto engines = npu.find("transfer_engines"))
    hardware.transfer_engines = static_cast<int>(engines->integer(1, 2));
  if (const auto overhead = npu.find("launch_overhead")) hardware.launch_overhead = overhead->seconds();
  if (const auto efficiency = npu.find("efficiency")) read_efficiency(*efficiency, hardware);
  hardware.npu_port = find_port(npu, "port");
}

void read_link(const YamlNode& node, Hardware& hardware) {
  const YamlMap link(node, {"read", "write", "far", "priority"});
  hardware.link_read = read_direction(link.get("read"));
  hardware.link_write = read_direction(link.get("write"));
  if (const auto far = link.find("far")) {
    if (!hardware.nodes) far->fail("no `far` without `nodes`");
    hardware.link_far = read_path(*far);
  }
  if (const auto priority = link.find("priority")) {
    const YamlMap map(*priority, {"demand", "prefetch"});
    const auto read = [&](const char* key, double& weight) {
      const auto found = map.find(key);
      if (found) weight = found->number(1e-3, 1e3);
    };
    read("demand", hardware.priority.demand);
    read("prefetch", hardware.priority.prefetch);
  }
}

void read_nodes(const YamlNode& node, Hardware& hardware) {
  const YamlMap map(node, {"count", "npus", "sockets", "package", "first_level", "second_level"});
  Nodes nodes;
  nodes.count = static_cast<int>(map.get("count").integer(1, kMaxNodes));
  nodes.npus = static_cast<int>(map.get("npus").integer(1, kMaxNpus));
  nodes.sockets = static_cast<int>(map.get("sockets").integer(1, kMaxSockets));
  if (const auto package = map.find("package")) {
    const YamlMap keys(*package, {"npus", "bandwidth", "latency"});
    const YamlNode npus = keys.get("npus");
    nodes.package_npus = static_cast<int>(npus.integer(1, kMaxNpus));
    if (nodes.npus % nodes.package_npus != 0)
      npus.fail(fmt::format("a divisor of the node's {} NPUs", nodes.npus));
    if (const auto bandwidth = keys.find("bandwidth")) {
      nodes.package_link = LinkDirection{positive_rate(*bandwidth), Seconds(0)};
      if (const auto latency = keys.find("latency")) nodes.package_link->latency = latency->seconds();
    }
  }
  nodes.first_level = find_port(map, "first_level");
  if (const auto second = map.find("second_level")) {
    const YamlMap keys(*second, {"bandwidth", "oversubscription"});
    const auto bandwidth = keys.find("bandwidth"), ratio = keys.find("oversubscription");
    if (!bandwidth == !ratio) second->fail("either `bandwidth` or `oversubscription`");
    if (bandwidth) nodes.second_level = positive_rate(*bandwidth);
    if (ratio) {
      const double over = ratio->number(1, 1e6);
      if (!hardware.npu_port) ratio->fail("`bandwidth`: without `npu.port` there is nothing to subscribe");
      double ports = hardware.npu_port->value * nodes.npus;
      if (hardware.socket_port) ports += hardware.socket_port->value * nodes.sockets;
      if (over > 1) nodes.second_level = BytesPerSecond(ports / over);  // at 1 it never binds
    }
  }
  if (hardware.npu_count > std::int64_t{nodes.count} * nodes.npus)
    node.fail(fmt::format("{} nodes of {} NPUs", nodes.count, nodes.npus),
              fmt::format("room for npu.count = {}", hardware.npu_count));
  hardware.nodes = nodes;
}

// `placement: stripe`, or a map with more to say.
Placement read_placement(const YamlNode& node) {
  Placement placement;
  const auto spread = [](const YamlNode& at) {
    std::vector<std::string> names;
    for (Spread s : {Spread::kLocal, Spread::kStripe, Spread::kHash, Spread::kLoad}) {
      if (at.string() == to_string(s)) return s;
      names.push_back(to_string(s));
    }
    at.fail(one_of(at.string(), names));
  };
  if (!node.is_map()) {
    placement.spread = spread(node);
    if (placement.spread == Spread::kLoad) placement.block = Bytes(0);
    return placement;
  }
  const YamlMap map(node, {"spread", "over", "block"});
  if (const auto found = map.find("spread")) placement.spread = spread(*found);
  if (const auto over = map.find("over")) {
    if (over->string() != "node" && over->string() != "supernode")
      over->fail(one_of(over->string(), {"node", "supernode"}));
    placement.supernode = over->string() == "supernode";
  }
  if (placement.spread == Spread::kLoad) placement.block = Bytes(0);
  if (const auto block = map.find("block")) placement.block = positive_bytes(*block);
  return placement;
}

void read_socket(const YamlNode& node, Hardware& hardware) {
  const YamlMap socket(node, {"capacity", "memory", "port"});
  if (const auto capacity = socket.find("capacity")) hardware.socket_capacity = positive_bytes(*capacity);
  hardware.socket_memory = find_port(socket, "memory");
  hardware.socket_port = find_port(socket, "port");
}

void read_pool(const YamlNode& node, Hardware& hardware) {
  const YamlMap pool(
      node, {"capacity", "read_port", "write_port", "socket", "placement", "granularity", "rounding"});
  const auto socket = pool.find("socket");
  if (socket) read_socket(*socket, hardware);
  const auto capacity = pool.find("capacity");
  if (capacity || !hardware.socket_capacity) hardware.pool_capacity = pool.get("capacity").bytes();
  hardware.pool_read_port = find_port(pool, "read_port");
  hardware.pool_write_port = find_port(pool, "write_port");
  if (const auto placement = pool.find("placement")) hardware.placement = read_placement(*placement);
  if (const auto granularity = pool.find("granularity"))
    hardware.allocation.granularity = positive_bytes(*granularity);
  if (const auto rounding = pool.find("rounding")) {
    if (rounding->string() != "none" && rounding->string() != "power_of_two")
      rounding->fail(one_of(rounding->string(), {"none", "power_of_two"}));
    hardware.allocation.power_of_two = rounding->string() == "power_of_two";
  }
}

// What the sockets in reach hold; a capacity declared beside it is a limit below that.
void settle_pool_capacity(const YamlMap& pool, Hardware& hardware) {
  if (!hardware.nodes) {
    for (const char* key : {"socket", "placement"})
      if (const auto found = pool.find(key)) found->fail(fmt::format("no `{}` without `nodes`", key));
    return;
  }
  if (!hardware.socket_capacity) return;
  const Bytes sum = sockets_hold(hardware, sockets_in_reach(hardware));
  hardware.pool_capacity = pool.find("capacity") ? std::min(hardware.pool_capacity, sum) : sum;
}

void read_peer(const YamlNode& node, Hardware& hardware) {
  const YamlMap map(node, {"near", "far"});
  Peer peer;
  peer.near = read_path(map.get("near"));
  peer.far = peer.near;
  if (const auto far = map.find("far")) peer.far = read_path(*far);
  hardware.peer = peer;
}

void read_algorithms(const YamlNode& node, Hardware& hardware) {
  for (const auto& [kind, value] : node.map()) {
    if (!collective_kind(kind)) node.fail(in_quotes(kind), one_of(kind, collective_kinds()));
    if (value.string() != "ring" && value.string() != "direct")
      value.fail(one_of(value.string(), {"ring", "direct"}));
    hardware.algorithms.emplace(
        kind, value.string() == "ring" ? CollectiveAlgorithm::kRing : CollectiveAlgorithm::kDirect);
  }
}

}  // namespace

Hardware read_hardware(const YamlNode& node) {
  const YamlMap top(
      node, {"name", "npu", "link", "pool", "host", "nodes", "peer", "collectives", "description", "source"});
  Hardware hardware;
  hardware.name = top.get("name").string();
  for (const char* text : {"description", "source"})
    if (const auto found = top.find(text)) found->string();
  read_npu(top.get("npu"), hardware);
  const YamlNode pool = top.get("pool");
  read_pool(pool, hardware);
  if (const auto nodes = top.find("nodes")) read_nodes(*nodes, hardware);
  settle_pool_capacity(YamlMap(pool, {"capacity", "read_port", "write_port", "socket", "placement",
                                      "granularity", "rounding"}),
                       hardware);
  read_link(top.get("link"), hardware);
  if (const auto peer = top.find("peer")) read_peer(*peer, hardware);
  if (const auto algorithms = top.find("collectives")) {
    if (!hardware.peer) algorithms->fail("no `collectives` without `peer`");
    read_algorithms(*algorithms, hardware);
  }
  if (const auto host = top.find("host")) {
    const YamlMap keys(*host, {"compute", "bandwidth"});
    hardware.host = HostCompute{positive_compute(keys.get("compute")), positive_rate(keys.get("bandwidth"))};
  }
  return hardware;
}

void replace_hbm_capacity(Hardware& hardware, Bytes capacity, const std::string& where) {
  if (capacity <= hardware.hbm_reserved)
    throw InputError(where, fmt::format("{} bytes of HBM", capacity.value),
                     fmt::format("more than the {} bytes that machine \"{}\" reserves",
                                 hardware.hbm_reserved.value, hardware.name));
  hardware.hbm_capacity = capacity;
}

Hardware load_hardware(const std::string& path) { return read_hardware(load_yaml(path)); }

}  // namespace hyperoffload
