#include "sim/policy/first_use.h"

#include <utility>

namespace hyperoffload {

std::vector<TensorId> start_by_first_use(const NpuView& view, Bytes capacity) {
  const Graph& graph = view.graph;
  std::vector<char> in_hbm(graph.tensors().size(), 0), seen(graph.tensors().size(), 0);
  Bytes used = view.input_bytes;
  bool full = false;
  const auto place = [&](TensorId t) {
    const Tensor& tensor = graph.tensor(t);
    if (!tensor.persistent || tensor.initial == Tier::kPool || std::exchange(seen[t.index()], 1)) return;
    full |= capacity - used < tensor.bytes;
    if (full) return;
    used += tensor.bytes;
    in_hbm[t.index()] = 1;
  };
  for (const Op& op : graph.ops()) {
    for (TensorId t : op.reads) place(t);
    for (TensorId t : op.writes) place(t);
  }
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) place(TensorId(t));  // those never used
  std::vector<TensorId> pool;
  for (std::size_t t = 0; t < graph.tensors().size(); ++t)
    if (graph.tensors()[t].persistent && !in_hbm[t]) pool.push_back(TensorId(t));
  return pool;
}

}  // namespace hyperoffload
