#include "sim/model/later_ops.h"

#include <algorithm>

namespace hyperoffload {

LaterOps::LaterOps(const Graph& graph) : graph_(graph) {
  const std::size_t engines = graph.engines().size();
  if (engines < 2) return;
  dependent_.resize(graph.ops().size() * engines);
  for (std::size_t row = 0; row < graph.ops().size(); ++row)
    for (std::size_t e = 0; e < engines; ++e)
      dependent_[row * engines + e] = static_cast<int>(graph.engine_ops(EngineId(e)).size());
  // Backwards: an op's row is complete before it is passed on to the ops it depends on.
  for (std::size_t i = graph.ops().size(); i-- > 0;) {
    const OpId op(i);
    const EngineId engine = graph.op(op).engine;
    const int place = graph.place_on_engine(op);
    const int* mine = dependent_.data() + i * engines;
    const auto pass_on = [&](OpId to) {
      int* row = dependent_.data() + to.index() * engines;
      for (std::size_t e = 0; e < engines; ++e) row[e] = std::min(row[e], mine[e]);
      row[engine.index()] = std::min(row[engine.index()], place);
    };
    graph.for_each_before(op, pass_on);
  }
}

Charges LaterOps::charges(const std::vector<WideBytes>& takes,
                          const std::vector<WideBytes>& prefetches) const {
  if (dependent_.empty()) return {};
  const std::size_t engines = graph_.engines().size();
  std::vector<std::vector<WideBytes>> hbm(engines), pool(engines);  // prefix sums along each engine
  for (std::size_t e = 0; e < engines; ++e) {
    hbm[e].push_back(0);
    pool[e].push_back(0);
    for (OpId op : graph_.engine_ops(EngineId(e))) {
      const bool in_hbm = graph_.op(op).memory == Tier::kHbm;
      hbm[e].push_back(hbm[e].back() + (in_hbm ? takes[op.index()] : 0) + prefetches[op.index()]);
      pool[e].push_back(pool[e].back() + (in_hbm ? 0 : takes[op.index()]));
    }
  }
  Charges charges{std::vector<WideBytes>(graph_.ops().size()), std::vector<WideBytes>(graph_.ops().size())};
  std::vector<std::size_t> passed(engines, 0);  // ops of each engine up to and including this one
  for (std::size_t i = 0; i < graph_.ops().size(); ++i) {
    ++passed[graph_.ops()[i].engine.index()];
    for (std::size_t e = 0; e < engines; ++e) {
      const auto end = static_cast<std::size_t>(dependent_[i * engines + e]);
      if (end <= passed[e]) continue;
      charges.hbm[i] += hbm[e][end] - hbm[e][passed[e]];
      charges.pool[i] += pool[e][end] - pool[e][passed[e]];
    }
  }
  return charges;
}

}  // namespace hyperoffload
