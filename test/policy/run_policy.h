// Runs a policy on a small machine, all iterations recorded.
#pragma once

#include <memory>

#include "sim/replay/replay.h"

namespace hyperoffload {

template <class MyPolicy, class... Args>
RunRecord run_policy(const Graph& graph, const Hardware& hardware, int iterations, const Args&... args) {
  ReplayOptions options;
  options.iterations = iterations;
  options.full_record = true;
  return replay(graph, hardware, [&] { return std::make_unique<MyPolicy>(args...); }, options);
}

inline double iteration_us(const RunRecord& record, std::size_t iteration) {
  const NpuRecord& npu = record.npus[0];
  return (npu.iteration_end[iteration] - npu.iteration_start[iteration]).value * 1e6;
}

}  // namespace hyperoffload
