// The machine as declared: NPUs with HBM, their ways to the shared pool and to each other.
//
// A value declared here is the value simulated: no hidden efficiency or latency factor. With none of the
// optional parts every NPU has a private link each way to a pool that is one piece. With `nodes` the machine
// is a supernode: NPUs fill nodes in order, each node has CPU sockets whose DRAM makes the pool, and what
// ports, switches and uplinks are declared is shared by all traffic that crosses them.
// Units: bytes, bytes/s, FLOP/s, seconds. Loaded by hardware_yaml.cc, strictly: unknown and duplicate keys
// and numbers without a unit are InputErrors with file and line. docs/machine.md explains every key.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/model/units.h"

namespace hyperoffload {

struct LinkDirection {
  BytesPerSecond bandwidth;  // > 0; of one transfer
  Seconds latency;           // paid once a transfer, before its first byte; >= 0
};

// Both directions of one kind of path, as seen from the NPU that asks.
struct Path {
  LinkDirection read, write;
};

// Compute of the host (CPU) beside the pool, for ops with `memory: pool` given as flops/hbm_bytes.
struct HostCompute {
  FlopsPerSecond compute;
  BytesPerSecond bandwidth;  // of the pool's memory, private to the op: not shared with copies
};

// What share of the declared compute and HBM bandwidth a kind of kernel reaches; 1: all of it.
struct KernelEfficiency {
  double compute = 1, bandwidth = 1;  // 0 < x <= 1
};

struct Nodes {
  int count = 1;         // nodes of the machine, those without a busy NPU included
  int npus = 1;          // of a node
  int sockets = 1;       // of a node
  int package_npus = 1;  // NPUs (dies) of one package; they have links of their own to each other
  std::optional<LinkDirection> package_link;   // of one NPU, each way; none: they use the fabric
  std::optional<BytesPerSecond> first_level;   // all flows of a node's switches; none: non-blocking
  std::optional<BytesPerSecond> second_level;  // a node's uplink, each way; none: non-blocking
};

// From one NPU to another.
struct Peer {
  Path near, far;  // in one node; between nodes
};

enum class Spread {
  kLocal,   // all on the socket of the NPU that puts it there
  kStripe,  // in equal parts over all sockets in reach
  kHash,    // blocks, each on the socket that a hash of NPU, tensor and block names
  kLoad,    // where the busiest link and the fullest socket end up lowest, one allocation after another
};
const char* to_string(Spread spread);

struct Placement {
  Spread spread = Spread::kStripe;
  bool supernode = false;  // in reach are the sockets of: the NPU's own node; all nodes
  Bytes block{2 << 20};    // of kHash, and of kLoad unless it is 0 (then an allocation stays whole)
};

// What an allocation in the pool really takes.
struct Allocation {
  Bytes granularity{1};       // rounded up to a multiple of it
  bool power_of_two = false;  // then up to a power of two
};

// Who gets more of a link that two transfers share: a transfer that an op waits for, or one that none does.
struct Priority {
  double demand = 1, prefetch = 1;  // weights, > 0
};

// How the ranks of a collective exchange their parts: each with its neighbour, or each with all others.
enum class CollectiveAlgorithm { kRing, kDirect };

struct Hardware {
  std::string name;

  int npu_count = 1;             // NPUs that take part; each replays the trace
  int stands_for = 1;            // so many NPUs each of them stands for (sim/replay/fold.h); no YAML key
  FlopsPerSecond compute;        // of one NPU
  Bytes hbm_capacity;            // of one NPU, as declared
  Bytes hbm_reserved;            // of it, kept for runtime and communication buffers; default 0
  BytesPerSecond hbm_bandwidth;  // of one NPU; kernels and copies share it max-min fairly
  int transfer_engines = 2;      // 2: one a direction; 1: one transfer at a time, whatever its direction
  Seconds launch_overhead;       // of every op whose time the machine finds (no `duration_us`)
  std::map<std::string, KernelEfficiency> efficiency;  // by Op::kernel; what is not named has 1
  std::optional<BytesPerSecond> npu_port;              // each way, pool and peer traffic together

  LinkDirection link_read;       // pool -> one NPU; with nodes: from sockets of its own node
  LinkDirection link_write;      // one NPU -> pool; independent of link_read (full duplex)
  std::optional<Path> link_far;  // sockets of other nodes; none: as near ones
  Priority priority;

  std::optional<Nodes> nodes;
  std::optional<Peer> peer;                               // none: collectives are ops like any other
  std::map<std::string, CollectiveAlgorithm> algorithms;  // by kind, where it is not the default

  Bytes pool_capacity;                            // shared by all NPUs
  std::optional<BytesPerSecond> pool_read_port;   // one port that all NPUs' reads share; none: links
  std::optional<BytesPerSecond> pool_write_port;  // are private all the way
  std::optional<Bytes> socket_capacity;           // DRAM of one socket
  std::optional<BytesPerSecond> socket_memory;    // its bandwidth, reads and writes together
  std::optional<BytesPerSecond> socket_port;      // each way
  Placement placement;
  Allocation allocation;

  std::optional<HostCompute> host;

  // What tensors and workspace may take on one NPU.
  Bytes hbm_usable() const { return hbm_capacity - hbm_reserved; }
};

// All ranks, those that others stand for included.
inline int ranks_of(const Hardware& hardware) { return hardware.npu_count * hardware.stands_for; }
// Where things are: NPUs and sockets are numbered through the nodes.
int node_of(const Hardware& hardware, int npu);
int nodes_in_use(const Hardware& hardware);            // with at least one NPU that takes part
int npus_in_node(const Hardware& hardware, int node);  // that take part
int first_socket(const Hardware& hardware, int node);
int local_socket(const Hardware& hardware, int npu);
// How many sockets the pool's placement reaches: of the nodes in use, or of all.
int sockets_in_reach(const Hardware& hardware);
// DRAM of so many sockets, saturated at 2^63-1; none declared: that.
Bytes sockets_hold(const Hardware& hardware, int sockets);

// The path of one transfer between an NPU and a socket of its own node, or of another.
LinkDirection pool_path(const Hardware& hardware, bool read, bool far);

// What one NPU can count on when all NPUs that take part copy in one direction at once; for the busiest
// node. Exact where they are alike and placement is even (striped, or local with as many NPUs a socket);
// for `hash` and `load` an estimate that takes them for even. `alone`: nobody else copies.
LinkDirection fair_link(const Hardware& hardware, bool read);
LinkDirection alone_link(const Hardware& hardware, bool read);
// Pool bytes of one NPU when all take the same.
Bytes fair_pool(const Hardware& hardware);
// What an allocation of `bytes` takes, saturated at 2^63-1.
Bytes allocated_bytes(const Allocation& allocation, Bytes bytes);

class YamlNode;

// Loads a machine file.
Hardware load_hardware(const std::string& path);
// The same from a map that is open already: the `hardware:` block of an experiment.
Hardware read_hardware(const YamlNode& node);
// `--hbm` or `hbm:`: replaces the declared capacity, up or down. InputError(where) if it does not exceed
// what is reserved.
void replace_hbm_capacity(Hardware& hardware, Bytes capacity, const std::string& where);

}  // namespace hyperoffload
