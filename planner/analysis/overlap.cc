#include "planner/analysis/overlap.h"

#include <algorithm>

namespace hyperoffload {
namespace {

// By op and engine, as a matrix of places.
using Places = std::vector<std::int32_t>;

// The last op there that this op depends on (-1: none).
Places last_before(const FlatGraph& g) {
  Places last(static_cast<std::size_t>(g.ops) * g.engines, -1);
  for (int op = 0; op < g.ops; ++op) {
    g.graph->for_each_before(OpId(op), [&](OpId before) {
      const int from = before.value;
      for (int e = 0; e < g.engines; ++e)
        last[op * g.engines + e] = std::max(last[op * g.engines + e], last[from * g.engines + e]);
      std::int32_t& own = last[op * g.engines + g.engine(from)];
      own = std::max(own, g.place(from));
    });
  }
  return last;
}

// The first op there that depends on this op (the engine's op count: none).
Places first_after(const FlatGraph& g) {
  Places first(static_cast<std::size_t>(g.ops) * g.engines);
  for (std::size_t i = 0; i < first.size(); ++i)
    first[i] = static_cast<std::int32_t>(g.graph->engine_ops(EngineId(i % g.engines)).size());
  for (int op = g.ops - 1; op >= 0; --op) {
    g.graph->for_each_before(OpId(op), [&](OpId before) {
      const int to = before.value;
      for (int e = 0; e < g.engines; ++e)
        first[to * g.engines + e] = std::min(first[to * g.engines + e], first[op * g.engines + e]);
      std::int32_t& own = first[to * g.engines + g.engine(op)];
      own = std::min(own, g.place(op));
    });
  }
  return first;
}

}  // namespace

Overlap::Overlap(const FlatGraph& g)
    : counts_from(g.ops + 1), written_early(g.ops + 1), charge(g.ops + 1, 0) {
  for (int p = 1; p <= g.ops; ++p) {
    counts_from[p] = p + 1;
    written_early[p] = p;
  }
  if (g.engines == 1) return;

  std::vector<std::int64_t> take(g.ops, 0);
  for (int op = 0; op < g.ops; ++op) {
    if (g.in_pool[op]) continue;
    take[op] = g.workspace[op];
    for (const FlatAccess& access : g.accesses(op))
      if (g.graph->birth(TensorId(access.tensor)) == OpId(op)) take[op] += g.bytes[access.tensor];
  }
  std::vector<std::vector<std::int64_t>> taken(g.engines);  // by engine: takes before a place
  for (int e = 0; e < g.engines; ++e) {
    taken[e].push_back(0);
    for (OpId op : g.graph->engine_ops(EngineId(e))) taken[e].push_back(taken[e].back() + take[op.index()]);
  }
  const Places before = last_before(g), after = first_after(g);
  std::vector<std::int32_t> passed(g.engines, 0);
  for (int op = 0; op < g.ops; ++op) {
    ++passed[g.engine(op)];
    int early = op;
    for (int e = 0; e < g.engines; ++e) {
      if (e == g.engine(op)) continue;
      const auto& queue = g.graph->engine_ops(EngineId(e));
      const std::size_t next = before[op * g.engines + e] + 1;
      if (next < queue.size()) early = std::min(early, queue[next].value);
      const int end = after[op * g.engines + e];
      if (end > passed[e]) charge[op + 1] += taken[e][end] - taken[e][passed[e]];
    }
    if (early < op) counts_from[op + 1] = written_early[op + 1] = early + 1;
  }
}

}  // namespace hyperoffload
