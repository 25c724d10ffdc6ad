// The machine as declared: NPUs with HBM, a link each way between every NPU and the shared pool.
//
// A value declared here is the value simulated: no hidden efficiency or latency factor.
// Units: bytes, bytes/s, FLOP/s, seconds. Loaded by hardware_yaml.cc, strictly: unknown and
// duplicate keys and numbers without a unit are InputErrors with file and line.
#pragma once

#include <optional>
#include <string>

#include "sim/model/units.h"

namespace hyperoffload {

struct LinkDirection {
  BytesPerSecond bandwidth;  // > 0
  Seconds latency;           // paid once a transfer, before its first byte; >= 0
};

// Compute of the host (CPU) beside the pool, for ops with `memory: pool` given as flops/hbm_bytes.
struct HostCompute {
  FlopsPerSecond compute;
  BytesPerSecond bandwidth;  // of the pool's memory, private to the op: not shared with copies
};

struct Hardware {
  std::string name;

  int npu_count = 1;             // NPUs that take part; each replays the trace
  FlopsPerSecond compute;        // of one NPU
  Bytes hbm_capacity;            // of one NPU, as declared
  Bytes hbm_reserved;            // of it, kept for runtime and communication buffers; default 0
  BytesPerSecond hbm_bandwidth;  // of one NPU; kernels and copies share it max-min fairly

  LinkDirection link_read;   // pool -> one NPU
  LinkDirection link_write;  // one NPU -> pool; independent of link_read (full duplex)

  Bytes pool_capacity;                            // shared by all NPUs
  std::optional<BytesPerSecond> pool_read_port;   // one port that all NPUs' reads share; none: links
  std::optional<BytesPerSecond> pool_write_port;  // are private all the way

  std::optional<HostCompute> host;

  // What tensors and workspace may take on one NPU.
  Bytes hbm_usable() const { return hbm_capacity - hbm_reserved; }
};

class YamlNode;

// Loads a machine file.
Hardware load_hardware(const std::string& path);
// The same from a map that is open already: the `hardware:` block of an experiment.
Hardware read_hardware(const YamlNode& node);
// `--hbm` or `hbm:`: replaces the declared capacity, up or down. InputError(where) if it does not exceed
// what is reserved.
void replace_hbm_capacity(Hardware& hardware, Bytes capacity, const std::string& where);

}  // namespace hyperoffload
