#include "planner/bound/engine_line.h"

#include <algorithm>

namespace hyperoffload {

EngineLine::EngineLine(const FlatGraph& graph, int engine) {
  const NpuMachine& m = graph.machine;
  const double link = std::min(m.read_bandwidth, m.hbm_bandwidth);
  const auto& ops = graph.graph->engine_ops(EngineId(engine));
  op.reserve(ops.size());
  for (auto* sums : {&time, &free_bytes, &slow_bytes}) sums->reserve(ops.size() + 1);
  for (auto* bytes : {&only_writes, &born}) bytes->reserve(ops.size() + 1);
  time.push_back(0);
  free_bytes.push_back(0);
  slow_bytes.push_back(0);
  for (OpId id : ops) {
    const OpCost& cost = graph.cost[id.index()];
    const double d = cost.alone.value, h = static_cast<double>(cost.hbm_bytes.value);
    const double free = std::clamp(m.hbm_bandwidth * d - h, 0.0, link * d);
    const double bearable = link < m.hbm_bandwidth ? link * h / (m.hbm_bandwidth - link) : 0;
    op.push_back(id.value);
    time.push_back(time.back() + d);
    free_bytes.push_back(free_bytes.back() + free);
    slow_bytes.push_back(slow_bytes.back() + (free < link * d ? std::max(0.0, bearable - free) : 0));
    std::int64_t only = graph.in_pool[id.index()] ? 0 : graph.workspace[id.index()], births = only;
    for (const FlatAccess& access : graph.accesses(id.value)) {
      if (graph.in_pool[id.index()] || access.reads) continue;
      only += graph.bytes[access.tensor];
      if (graph.graph->birth(TensorId(access.tensor)) == id) births += graph.bytes[access.tensor];
    }
    only_writes.push_back(only);
    born.push_back(births);
  }
  places = static_cast<int>(op.size());
  only_writes.push_back(0);
  born.push_back(0);
  touched.assign(places + 2, 0);
  for (int t = 0; t < graph.tensors; ++t) add_tensor(graph, engine, t);
  for (int p = 1; p <= places; ++p) touched[p] += touched[p - 1];
}

void EngineLine::add_tensor(const FlatGraph& graph, int engine, int tensor) {
  const auto accesses = graph.graph->accesses(TensorId(tensor));
  const std::int64_t bytes = graph.bytes[tensor];
  int before = -1;       // place of the last access on this engine
  bool foreign = false;  // the bytes were last written where this engine's order says nothing
  bool ours = true;      // all accesses are this engine's, in HBM
  bool wanted = false;
  for (const Access& access : accesses) {
    const bool mine = graph.engine(access.op.value) == engine;
    const bool in_hbm = !graph.in_pool[access.op.index()];
    ours &= mine && in_hbm;
    const int place = mine ? graph.place(access.op.value) : -1;
    if (mine && in_hbm && access.reads && !foreign) {
      reads.push_back({before + 1, place, place, places, bytes});
      wanted = true;
    }
    if (mine) before = place;
    if (access.writes) foreign = !mine;
  }
  if (ours && !accesses.empty()) {
    const bool input = graph.graph->is_input(TensorId(tensor));
    touched[input ? 0 : graph.place(accesses.front().op.value) + 1] += bytes;
    touched[graph.persistent[tensor] ? places + 1 : graph.place(accesses.back().op.value) + 1] -= bytes;
    for (std::size_t k = 0; k < accesses.size(); ++k) {
      if (!accesses[k].writes) continue;
      std::size_t next = k + 1;
      while (next < accesses.size() && !accesses[next].writes) ++next;
      int until = next < accesses.size() ? graph.place(accesses[next].op.value) : places;
      if (!graph.persistent[tensor]) until = std::min(until, graph.place(accesses.back().op.value));
      const int place = graph.place(accesses[k].op.value);
      if (until > place) writes.push_back({0, place, place + 1, until, bytes});
      wanted = true;
    }
  }
  if (wanted) largest = std::max(largest, bytes);
}

std::vector<std::int64_t> EngineLine::by_begin(const std::vector<Demand>& demands, int length) const {
  std::vector<std::int64_t> sums(places + 2, 0);
  for (const Demand& d : demands) {
    const int from = std::max(d.begin_from, d.end_from - length),
              to = std::min(d.begin_to, d.end_to - length);
    if (from > to) continue;
    sums[from] += d.bytes;
    sums[to + 1] -= d.bytes;
  }
  for (std::size_t i = 1; i < sums.size(); ++i) sums[i] += sums[i - 1];
  return sums;
}

}  // namespace hyperoffload
