#include "sim/model/op_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

}  // namespace

OpCost op_cost(const Op& op, const Hardware& hardware) {
  if (op.memory == Tier::kPool) return host_cost(op, hardware);
  const Bytes bytes = op.hbm_bytes.value_or(Bytes(0));
  if (!op.duration) {
    const Seconds compute = op.flops.value_or(Flops(0)) / hardware.compute;
    return {compute, bytes, hardware.hbm_bandwidth, std::max(compute, bytes / hardware.hbm_bandwidth)};
  }
  if (op.duration->value <= 0 || bytes == Bytes(0))
    return {*op.duration, Bytes(0), hardware.hbm_bandwidth, *op.duration};
  // The duration is its time alone: more demand than HBM could serve in it is clamped.
  const BytesPerSecond demand(static_cast<double>(bytes.value) / op.duration->value);
  if (demand <= hardware.hbm_bandwidth) return {*op.duration, bytes, demand, *op.duration};
  const Bytes served(
      static_cast<std::int64_t>(std::floor(hardware.hbm_bandwidth.value * op.duration->value)));
  return {*op.duration, served, hardware.hbm_bandwidth, *op.duration};
}

}  // namespace hyperoffload
