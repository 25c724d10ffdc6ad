#include "sim/workload/jitter.h"

#include <algorithm>
#include <cmath>

#include "sim/model/check.h"
#include "sim/model/graph_spec.h"
#include "sim/workload/splitmix.h"

namespace hyperoffload {

Graph with_jitter(const Graph& graph, double share, std::uint64_t seed) {
  HYPER_CHECK(share >= 0 && share < 1, "a share from 0 on, below 1");
  GraphSpec spec = spec_of(graph);
  for (std::size_t i = 0; i < spec.ops.size(); ++i) {
    const double factor = 1 + share * (2 * SplitMix(seed, i).unit() - 1);
    Op& op = spec.ops[i];
    if (op.duration) op.duration = *op.duration * factor;
    if (op.flops) op.flops = Flops(op.flops->value * factor);
    if (op.hbm_bytes)
      op.hbm_bytes = Bytes(std::llround(std::min(static_cast<double>(op.hbm_bytes->value) * factor, 0x1p62)));
  }
  return build_graph(std::move(spec));
}

}  // namespace hyperoffload
