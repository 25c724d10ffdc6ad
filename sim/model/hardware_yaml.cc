#include <fmt/format.h>

#include "sim/model/error.h"
#include "sim/model/hardware.h"
#include "sim/model/yaml_reader.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kMaxNpus = 1'000'000;

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

void read_npu(const YamlNode& node, Hardware& hardware) {
  const YamlMap npu(node, {"count", "compute", "hbm"});
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
}

LinkDirection read_direction(const YamlNode& node) {
  const YamlMap direction(node, {"bandwidth", "latency"});
  LinkDirection link{positive_rate(direction.get("bandwidth")), Seconds(0)};
  if (const auto latency = direction.find("latency")) link.latency = latency->seconds();
  return link;
}

void read_pool(const YamlNode& node, Hardware& hardware) {
  const YamlMap pool(node, {"capacity", "read_port", "write_port"});
  hardware.pool_capacity = pool.get("capacity").bytes();
  const auto port = [&](const char* key) -> std::optional<BytesPerSecond> {
    const auto found = pool.find(key);
    if (!found) return std::nullopt;
    return positive_rate(YamlMap(*found, {"bandwidth"}).get("bandwidth"));
  };
  hardware.pool_read_port = port("read_port");
  hardware.pool_write_port = port("write_port");
}

}  // namespace

Hardware read_hardware(const YamlNode& node) {
  const YamlMap top(node, {"name", "npu", "link", "pool", "host", "description", "source"});
  Hardware hardware;
  hardware.name = top.get("name").string();
  for (const char* text : {"description", "source"})
    if (const auto found = top.find(text)) found->string();
  read_npu(top.get("npu"), hardware);
  const YamlMap link(top.get("link"), {"read", "write"});
  hardware.link_read = read_direction(link.get("read"));
  hardware.link_write = read_direction(link.get("write"));
  read_pool(top.get("pool"), hardware);
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
