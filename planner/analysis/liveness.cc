#include "planner/analysis/liveness.h"

#include <algorithm>

namespace hyperoffload {
namespace {

struct Touch {
  int position;
  bool reads, writes;
};

// An input stands in HBM from the iteration's start; it can't leave before the first op has started.
std::vector<Touch> touches(const FlatGraph& graph, int tensor, bool input) {
  std::vector<Touch> list;
  const auto accesses = graph.graph->accesses(TensorId(tensor));
  if (input) list.push_back({0, false, true});
  if (input && accesses.front().op.value != 0) list.push_back({1, true, false});
  for (const Access& access : accesses) list.push_back({access.op.value + 1, access.reads, access.writes});
  return list;
}

}  // namespace

std::int64_t Liveness::piece_from(int tensor, int piece) const {
  const std::int64_t count = pieces[tensor];
  return bytes_[tensor] / count * piece + std::min<std::int64_t>(piece, bytes_[tensor] % count);
}

bool Liveness::clean(const FlatGraph& graph, const std::vector<char>& evicted, int unit) const {
  const Version& version = versions[gap(unit).version];
  if (version.written >= 0) return false;
  if (repeats || graph.bound_to_pool[version.tensor]) return true;
  const Gap& first = gaps[version.first_gap];
  return first.open < 0 && (first.first_unit == gap(unit).first_unit || evicted[first.first_unit]);
}

Liveness::Liveness(const FlatGraph& graph, const LivenessOptions& options)
    : positions(graph.ops + 1), repeats(options.repeats), bytes_(graph.bytes) {
  resident.assign(positions + 1, 0);
  working_set.assign(positions, 0);
  working_set[0] = graph.input_bytes;
  for (int op = 0; op < graph.ops; ++op) {
    if (graph.in_pool[op]) continue;
    working_set[op + 1] = graph.workspace[op];
    resident[op + 1] += graph.workspace[op];
    resident[op + 2] -= graph.workspace[op];
    for (const FlatAccess& access : graph.accesses(op)) working_set[op + 1] += graph.bytes[access.tensor];
  }
  // What op 0 reads is there or on its way when the iteration starts: nothing can be told to come later.
  for (const FlatAccess& access : graph.accesses(0))
    if (graph.persistent[access.tensor] && access.reads) working_set[0] += graph.bytes[access.tensor];

  pieces.assign(graph.tensors, 1);
  gap_begin.assign(graph.tensors + 1, 0);
  for (int t = 0; t < graph.tensors; ++t) {
    if (options.piece_bytes > 0)
      pieces[t] = static_cast<std::int32_t>(
          std::max<std::int64_t>(1, (bytes_[t] + options.piece_bytes - 1) / options.piece_bytes));
    add_tensor(graph, t);
    gap_begin[t + 1] = static_cast<std::int32_t>(gaps.size());
  }
  for (int p = 0; p < positions; ++p) resident[p + 1] += resident[p];
  resident.resize(positions);
}

void Liveness::add_tensor(const FlatGraph& graph, int tensor) {
  const bool persistent = graph.persistent[tensor];
  const std::vector<Touch> list = touches(graph, tensor, graph.graph->is_input(TensorId(tensor)));
  if (!persistent && list.empty()) return;
  const int first = persistent ? 0 : list.front().position;
  const int last = persistent ? positions - 1 : list.back().position;
  resident[first] += bytes_[tensor];
  resident[last + 1] -= bytes_[tensor];
  if (bytes_[tensor] == 0) return;

  const auto begin_version = [&](int written) {
    versions.push_back({tensor, written, static_cast<std::int32_t>(gaps.size()), 0, slots});
    slots += pieces[tensor];
  };
  const auto add_gap = [&](int open, int close, bool loads, bool next_turn) {
    gaps.push_back(
        {tensor, open, close, static_cast<std::int32_t>(versions.size() - 1), units(), loads, next_turn});
    gap_of_unit.insert(gap_of_unit.end(), pieces[tensor], static_cast<std::int32_t>(gaps.size() - 1));
    ++versions.back().gaps;
  };

  if (list.empty()) {
    begin_version(-1);
    return add_gap(-1, positions, false, false);
  }
  // The circle of a repeated body is entered at its first write, so that each version is whole.
  std::size_t start = 0;
  if (persistent && repeats)
    while (start < list.size() && !list[start].writes) ++start;
  const bool unwritten = start == list.size();
  if (unwritten) start = 0;
  begin_version(list[start].writes ? list[start].position : -1);
  if (persistent && !repeats) {
    if (list[0].writes) versions.back().written = -1;
    add_gap(-1, list[0].position, list[0].reads, false);
    if (list[0].writes) begin_version(list[0].position);
  }
  const std::size_t circle = persistent && repeats ? list.size() : list.size() - 1;
  for (std::size_t k = 0; k < circle; ++k) {
    const std::size_t here = (start + k) % list.size(), next = (start + k + 1) % list.size();
    const int turn = next <= here ? positions : 0;
    if (k > 0 && list[here].writes) begin_version(list[here].position);
    if (list[next].position + turn - list[here].position >= 2)
      add_gap(list[here].position, list[next].position + turn, list[next].reads, here < start && !unwritten);
  }
  if (persistent && !repeats) {
    if (list.back().writes && list.size() > 1) begin_version(list.back().position);
    if (list.back().position < positions - 1) add_gap(list.back().position, positions, false, false);
  }
}

}  // namespace hyperoffload
