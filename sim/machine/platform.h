// The links of the machine, and who sits where on them: hosts that flows run between.
//
// A flow from one end to another crosses the sender's links up and the receiver's links down, each once:
//   kernel of an NPU       its HBM, to nowhere
//   NPU                    HBM, fabric port (out or in), and the node's first-level switches
//   NPU, far               the same and its node's uplink to the second level
//   NPU, in its package    HBM and its own link to the package's other NPUs
//   NPU, without HBM       ports only: what HBM does meanwhile was declared
//   bin of the pool        DRAM (reads and writes together), socket ports, switches; far: the uplink, too;
//                          and the pool's port, where one is declared
//   NPU to itself          HBM twice, its port out and in: one of many ranks that all do the same
// A link that could never bind is left out, which is exact: it carries at most the sum of the caps of those
// who may use it at once, and that is no more than its bandwidth. Where nothing is left, a flow takes
// bytes / cap and needs no SimGrid flow (see machine.cc).
#pragma once

#include <limits>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "sim/machine/placement.h"
#include "sim/model/collective.h"
#include "sim/model/hardware.h"

namespace hyperoffload {

// What the run may ask of the links.
struct PlatformUse {
  bool hbm = true;                                                    // HBM may bind
  bool peers_near = false, peers_far = false, peers_package = false;  // collectives there
  bool peers_without_hbm = false;
  bool self = false;      // some rank stands for others
  bool leave_out = true;  // links that can't bind are left out
};

struct End {
  simgrid::s4u::Host* host = nullptr;
  double up = std::numeric_limits<double>::infinity();    // smallest bandwidth of its links out
  double down = std::numeric_limits<double>::infinity();  // and in; infinite: none
};

class Platform {
 public:
  Platform(const Hardware& hardware, const std::vector<Bin>& bins, const PlatformUse& use);

  const End& kernel(int npu) const { return kernel_[static_cast<std::size_t>(npu)]; }
  const End& nowhere() const { return nowhere_; }
  const End& npu(int npu, Reach reach, bool hbm = true) const;
  const End& bin(int bin, bool far) const { return bins_[far ? 1 : 0][static_cast<std::size_t>(bin)]; }
  // The two ends of a flow that leaves and enters the same NPU.
  struct Self {
    End from, to;
  };
  const Self& self(int npu, Reach reach, bool hbm) const;

 private:
  using Links = std::vector<const simgrid::s4u::Link*>;
  const simgrid::s4u::Link* link(const std::string& name, double bandwidth, double demand);
  void add(Links& links, const simgrid::s4u::Link* link) const;
  End make_end(const std::string& name, const Links& up, const Links& down);
  void build_nodes();
  void build_bins();
  void build_npu(int npu);
  void build_self(int npu, Reach reach, bool hbm, const Links& out, const Links& in);
  double copies_cap(bool read) const;

  struct NodeLinks {
    const simgrid::s4u::Link *first = nullptr, *out = nullptr, *in = nullptr;
  };

  const Hardware& hardware_;
  const std::vector<Bin>& pool_;
  const PlatformUse use_;
  simgrid::s4u::NetZone* root_ = nullptr;
  std::vector<NodeLinks> nodes_;
  std::vector<End> kernel_;
  std::vector<End> npus_[3][2];  // by reach, with HBM
  std::vector<Self> self_[3][2];
  std::vector<End> bins_[2];  // near, far
  End nowhere_;
};

}  // namespace hyperoffload
