#include "sim/model/op_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/model/collective.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

OpCost host_cost(const Op& op, const Hardware& hardware) {
  if (op.duration) return {*op.duration, Bytes(0), hardware.hbm_bandwidth, *op.duration};
  if (!hardware.host)
    throw InputError(
        fmt::format("op \"{}\"", op.name),
        fmt::format("`memory: pool` without duration_us on machine \"{}\" without `host`", hardware.name),
        "duration_us, or `host: {compute, bandwidth}` in the machine file");
  const Seconds compute = op.flops.value_or(Flops(0)) / hardware.host->compute;
  const Seconds memory = op.hbm_bytes.value_or(Bytes(0)) / hardware.host->bandwidth;
  const Seconds time = std::max(compute, memory);
  return {time, Bytes(0), hardware.hbm_bandwidth, time};
}

// The duration is its time alone: more demand than HBM could serve in it is clamped.
OpCost spread(Seconds duration, Bytes bytes, const Hardware& hardware) {
  if (duration.value <= 0 || bytes == Bytes(0)) return {duration, Bytes(0), hardware.hbm_bandwidth, duration};
  const BytesPerSecond demand(static_cast<double>(bytes.value) / duration.value);
  if (demand <= hardware.hbm_bandwidth) return {duration, bytes, demand, duration};
  const Bytes served(static_cast<std::int64_t>(std::floor(hardware.hbm_bandwidth.value * duration.value)));
  return {duration, served, hardware.hbm_bandwidth, duration};
}

OpCost roofline(const Op& op, const Hardware& hardware) {
  KernelEfficiency reached;
  if (const auto found = hardware.efficiency.find(op.kernel); found != hardware.efficiency.end())
    reached = found->second;
  const Bytes bytes = op.hbm_bytes.value_or(Bytes(0));
  const BytesPerSecond rate(hardware.hbm_bandwidth.value * reached.bandwidth);
  const Seconds compute =
      op.flops.value_or(Flops(0)) / FlopsPerSecond(hardware.compute.value * reached.compute);
  return {compute, bytes, rate, std::max(compute, bytes / rate)};
}

}  // namespace

bool over_fabric(const Op& op, const Hardware& hardware) {
  return op.collective && !op.duration && hardware.peer && op.memory == Tier::kHbm;
}

OpCost local_cost(const Op& op, const Hardware& hardware) {
  if (op.memory == Tier::kPool) return host_cost(op, hardware);
  if (op.duration) return spread(*op.duration, op.hbm_bytes.value_or(Bytes(0)), hardware);
  const OpCost cost = roofline(op, hardware);
  if (hardware.launch_overhead.value <= 0 || over_fabric(op, hardware)) return cost;
  return spread(hardware.launch_overhead + cost.alone, cost.hbm_bytes, hardware);
}

OpCost op_cost(const Op& op, const Hardware& hardware, int rank) {
  if (!op.duration && !op.flops && !op.hbm_bytes && !over_fabric(op, hardware))
    throw InputError(fmt::format("op \"{}\"", op.name),
                     fmt::format("only a collective on machine \"{}\" without `peer`", hardware.name),
                     "duration_us, flops or hbm_bytes, or `peer: {near: ...}` in the machine file");
  OpCost cost = local_cost(op, hardware);
  if (!over_fabric(op, hardware)) return cost;
  cost.fabric = collective_alone(*op.collective, hardware, rank, !op.hbm_bytes);
  cost.compute = std::max(cost.compute, cost.fabric);
  cost.alone = std::max(cost.alone, cost.fabric);
  return cost;
}

}  // namespace hyperoffload
