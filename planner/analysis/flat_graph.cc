#include "planner/analysis/flat_graph.h"

#include <algorithm>

namespace hyperoffload {
double NpuMachine::load_seconds(std::int64_t bytes) const {
  return read_latency + static_cast<double>(bytes) / std::min(read_bandwidth, hbm_bandwidth);
}

double NpuMachine::store_seconds(std::int64_t bytes) const {
  return write_latency + static_cast<double>(bytes) / std::min(write_bandwidth, hbm_bandwidth);
}

NpuMachine one_npu(const Hardware& hardware) {
  NpuMachine m;
  const LinkDirection read = fair_link(hardware, true), write = fair_link(hardware, false);
  m.hbm = hardware.hbm_usable().value;
  m.pool = fair_pool(hardware).value;
  m.read_bandwidth = read.bandwidth.value;
  m.write_bandwidth = write.bandwidth.value;
  m.read_latency = read.latency.value;
  m.write_latency = write.latency.value;
  m.estimate = hardware.npu_count > 1 && (read.bandwidth < alone_link(hardware, true).bandwidth ||
                                          write.bandwidth < alone_link(hardware, false).bandwidth);
  m.allocation = hardware.allocation;
  m.hbm_bandwidth = hardware.hbm_bandwidth.value;
  return m;
}

NpuMachine best_npu(const Hardware& hardware) {
  NpuMachine m = one_npu(hardware);
  m.estimate = false;
  if (hardware.npu_count == 1 && !hardware.nodes) return m;
  // Copies to sockets near and far, however they are spread, are no faster than the faster path.
  const auto best = [&](bool read) {
    if (!hardware.nodes || !hardware.placement.supernode) return alone_link(hardware, read);
    const LinkDirection near = pool_path(hardware, read, false), far = pool_path(hardware, read, true);
    LinkDirection link{std::max(near.bandwidth, far.bandwidth), std::min(near.latency, far.latency)};
    if (hardware.npu_port) link.bandwidth = std::min(link.bandwidth, *hardware.npu_port);
    return link;
  };
  const LinkDirection read = best(true), write = best(false);
  m.read_bandwidth = read.bandwidth.value;
  m.write_bandwidth = write.bandwidth.value;
  m.read_latency = read.latency.value;
  m.write_latency = write.latency.value;
  return m;
}

FlatGraph::FlatGraph(const Graph& g, const Hardware& hardware, int rank)
    : graph(&g),
      machine(one_npu(hardware)),
      ops(static_cast<int>(g.ops().size())),
      tensors(static_cast<int>(g.tensors().size())),
      engines(static_cast<int>(g.engines().size())) {
  bytes.reserve(tensors);
  persistent.reserve(tensors);
  bound_to_pool.reserve(tensors);
  for (const Tensor& t : g.tensors()) {
    bytes.push_back(t.bytes.value);
    persistent.push_back(t.persistent);
    bound_to_pool.push_back(t.initial == Tier::kPool);
  }
  stays.assign(tensors, 0);
  cost.reserve(ops);
  workspace.reserve(ops);
  in_pool.reserve(ops);
  engine_.reserve(ops);
  access_begin_.reserve(ops + 1);
  access_begin_.push_back(0);
  for (const Op& op : g.ops()) {
    cost.push_back(op_cost(op, hardware, rank));
    workspace.push_back(op.workspace.value);
    in_pool.push_back(op.memory == Tier::kPool);
    any_in_pool |= op.memory == Tier::kPool;
    engine_.push_back(op.engine.value);
    for_each_access(op, [&](TensorId t, bool reads, bool writes) { access_.push_back({t.value, reads, writes}); });
    access_begin_.push_back(static_cast<std::uint32_t>(access_.size()));
  }
  for (int t = 0; t < tensors; ++t) {
    if (!g.is_input(TensorId(t))) continue;
    inputs.push_back(t);
    input_bytes += bytes[t];
  }
}

std::int64_t FlatGraph::working_set(int op) const {
  if (in_pool[op]) return 0;
  std::int64_t sum = workspace[op];
  for (const FlatAccess& access : accesses(op)) sum += bytes[access.tensor];
  return sum;
}

}  // namespace hyperoffload
