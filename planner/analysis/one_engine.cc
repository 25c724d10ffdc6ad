#include "planner/analysis/one_engine.h"

#include <algorithm>
#include <utility>

namespace hyperoffload {

std::optional<Graph> on_one_engine(const Graph& graph) {
  if (graph.engines().size() < 2) return std::nullopt;
  for (std::size_t i = 1; i < graph.ops().size(); ++i) {
    if (graph.op(OpId(i)).engine == graph.op(OpId(i - 1)).engine) continue;
    const auto before = graph.cross_engine_deps(OpId(i));
    if (!std::binary_search(before.begin(), before.end(), OpId(i - 1))) return std::nullopt;
  }
  GraphSpec spec;
  spec.name = graph.name();
  spec.meta_json = graph.meta_json();
  spec.tensors = graph.tensors();
  spec.ops = graph.ops();
  for (Op& op : spec.ops) op.engine = EngineId(0);
  return build_graph(std::move(spec));
}

}  // namespace hyperoffload
