#include "planner/analysis/liveness.h"

#include <algorithm>

namespace hyperoffload {

std::int64_t Liveness::piece_from(int tensor, int piece) const {
  if (!piece_from_.empty()) return piece_from_[tensor][piece];
  const std::int64_t count = pieces[tensor];
  return bytes_[tensor] / count * piece + std::min<std::int64_t>(piece, bytes_[tensor] % count);
}

bool Liveness::clean(const FlatGraph& graph, const std::vector<char>& evicted, int unit) const {
  const Version& version = versions[gap(unit).version];
  if (version.clean) return true;
  if (version.written >= 0) return false;
  if (repeats || graph.bound_to_pool[version.tensor]) return true;
  const Gap& first = gaps[version.first_gap];
  return first.open < 0 && (first.first_unit == gap(unit).first_unit || evicted[first.first_unit]);
}

int Liveness::anchor_freeing(int position, int close) const {
  int anchor = position;
  while (anchor < close && counts_from(anchor) <= position) ++anchor;
  return anchor;
}

int Liveness::latest_count(int anchor, int floor) const {
  int best = -1;
  for (; anchor > floor && anchor + 1 > best; --anchor) best = std::max(best, counts_from(anchor));
  return best;
}

Liveness::Liveness(const FlatGraph& graph, const LivenessOptions& options)
    : positions(graph.ops + 1), repeats(options.repeats), bytes_(graph.bytes), overlap_(graph) {
  known_.assign(positions, -1);
  for (int op = 0; op < graph.ops; ++op)
    if (const auto known = graph.graph->op(OpId(op)).known_after) {
      known_[op + 1] = known->value + 1;
      reads_known_late = true;
    }
  resident.assign(positions + 1, 0);
  pieces.assign(graph.tensors, 1);
  pool_only.assign(graph.tensors, 0);
  pool_touched.assign(graph.tensors, 0);
  gap_begin.assign(graph.tensors + 1, 0);
  reserve(graph, options);
  std::vector<Touch> list;
  for (int t = 0; t < graph.tensors; ++t) {
    const auto parts = [&](std::int64_t bytes) {
      return options.piece_bytes > 0 ? std::max<std::int64_t>(1, (bytes + options.piece_bytes - 1) / options.piece_bytes) : 1;
    };
    pieces[t] = static_cast<std::int32_t>(parts(bytes_[t]));
    if (!options.cuts.empty()) {
      std::vector<std::int64_t>& from = piece_from_.emplace_back(1, 0);
      std::vector<std::int64_t> ends = options.cuts[t];
      ends.push_back(bytes_[t]);
      for (std::int64_t end : ends) {
        const std::int64_t begin = from.back(), count = parts(end - begin);
        for (std::int64_t k = 1; k <= count; ++k) from.push_back(begin + (end - begin) * k / count);
      }
      pieces[t] = static_cast<std::int32_t>(from.size()) - 1;
    }
    find_touches(graph, t, list);
    pool_touched[t] = std::any_of(list.begin(), list.end(), [](const Touch& x) { return x.pool; });
    pool_only[t] =
        !list.empty() && std::all_of(list.begin(), list.end(), [](const Touch& x) { return x.pool; });
    if (!pool_only[t] && (graph.persistent[t] || !list.empty())) {
      add_lifetime(graph, t, list);
      // Nothing is won by moving 0 bytes, but an op waits for them where they start in the pool.
      if (!graph.stays[t] && (bytes_[t] > 0 || graph.bound_to_pool[t] || pool_touched[t]))
        add_gaps(graph, t, list);
    }
    gap_begin[t + 1] = static_cast<std::int32_t>(gaps.size());
  }
  for (int op = 0; op < graph.ops; ++op) {
    if (graph.in_pool[op]) continue;
    resident[op + 1] += graph.workspace[op];
    resident[op + 2] -= graph.workspace[op];
  }
  for (int p = 0; p < positions; ++p) resident[p + 1] += resident[p];
  resident.resize(positions);
  for (int p = 0; p < positions; ++p) resident[p] += overlap_.charge[p];
  add_working_sets(graph);
  add_pool_residents(graph);
}

// What is reserved and not used takes no memory; what grows takes it twice.
void Liveness::reserve(const FlatGraph& graph, const LivenessOptions& options) {
  std::size_t most = graph.tensors;
  for (int op = 0; op < graph.ops; ++op) most += graph.accesses(op).size();
  gaps.reserve(most);
  versions.reserve(most);
  if (options.piece_bytes > 0 || !options.cuts.empty()) return;
  gap_of_unit.reserve(most);
  unit_bytes_.reserve(most);
}

// All that ops in the pool access, that must start there, and their workspace; whole tensors as allocated.
void Liveness::add_pool_residents(const FlatGraph& graph) {
  pool_resident.assign(positions + 1, 0);
  for (int t = 0; t < graph.tensors; ++t) {
    if (!pool_touched[t] && !graph.bound_to_pool[t]) continue;
    const auto accesses = graph.graph->accesses(TensorId(t));
    const std::int64_t bytes = graph.machine.pool_bytes(graph.bytes[t]);
    pool_resident[graph.persistent[t] ? 0 : accesses.front().op.index() + 1] += bytes;
    pool_resident[graph.persistent[t] ? positions : accesses.back().op.index() + 2] -= bytes;
  }
  for (int op = 0; op < graph.ops; ++op) {
    if (!graph.in_pool[op]) continue;
    pool_resident[op + 1] += graph.machine.pool_bytes(graph.workspace[op]);
    pool_resident[op + 2] -= graph.machine.pool_bytes(graph.workspace[op]);
  }
  for (int p = 0; p < positions; ++p) pool_resident[p + 1] += pool_resident[p];
  pool_resident.resize(positions);
}

void Liveness::add_working_sets(const FlatGraph& graph) {
  working_set = overlap_.charge;
  working_set[0] = graph.input_bytes;
  for (int op = 0; op < graph.ops; ++op) working_set[op + 1] += graph.working_set(op);
  add_pinned(graph);
  // What op 0 reads is there or on its way when the iteration starts: nothing can be told to come later.
  if (graph.in_pool[0]) return;
  for (const FlatAccess& access : graph.accesses(0))
    if (graph.persistent[access.tensor] && access.reads) working_set[0] += graph.bytes[access.tensor];
}

// What never leaves must be there between its accesses, too.
void Liveness::add_pinned(const FlatGraph& graph) {
  std::vector<std::int64_t> change(positions + 1);
  for (int t = 0; t < graph.tensors; ++t) {
    if (!graph.stays[t]) continue;
    const auto accesses = graph.graph->accesses(TensorId(t));
    const bool input = graph.graph->is_input(TensorId(t));
    if (!graph.persistent[t] && accesses.empty()) continue;
    const int first = graph.persistent[t] ? 0 : input ? 1 : accesses.front().op.value + 1;
    const int last = graph.persistent[t] ? positions - 1 : accesses.back().op.value + 1;
    change[first] += bytes_[t];
    change[last + 1] -= bytes_[t];
    for (const Access& access : accesses) {
      change[access.op.value + 1] -= bytes_[t];
      change[access.op.value + 2] += bytes_[t];
    }
    // Its bytes at the start are counted with those that op 0 reads.
    if (graph.persistent[t] && !accesses.empty() && accesses.front().op == OpId(0) && accesses.front().reads)
      working_set[0] -= bytes_[t];
  }
  std::int64_t sum = 0;
  for (int p = 0; p < positions; ++p) working_set[p] += sum += change[p];
}

// An input stands in HBM from the iteration's start on: as if written there.
void Liveness::find_touches(const FlatGraph& graph, int tensor, std::vector<Touch>& list) const {
  list.clear();
  const auto accesses = graph.graph->accesses(TensorId(tensor));
  const bool input = graph.graph->is_input(TensorId(tensor));
  if (input) list.push_back({0, false, true, false});
  for (const Access& access : accesses)
    list.push_back({access.op.value + 1, access.reads, access.writes, graph.in_pool[access.op.index()] != 0});
}

void Liveness::add_lifetime(const FlatGraph& graph, int tensor, const std::vector<Touch>& list) {
  const int first = graph.persistent[tensor] ? 0 : list.front().position;
  const int last = graph.persistent[tensor] ? positions - 1 : list.back().position;
  resident[first] += bytes_[tensor];
  resident[last + 1] -= bytes_[tensor];
}

void Liveness::begin_version(int tensor, int written, bool clean) {
  versions.push_back({tensor, written, clean, static_cast<std::int32_t>(gaps.size()), 0, slots});
  slots += pieces[tensor];
}

void Liveness::add_gap(int tensor, int open, int close, bool loads, bool next_turn, const Between& between) {
  int until = loads ? latest_count(close - 1, open - 1) : close;
  if (!loads && close % positions != 0)
    until = overlap_.written_early[close % positions] + close / positions * positions;
  Gap gap{tensor,
          open,
          close,
          std::max(until, open + 1),
          static_cast<std::int32_t>(versions.size() - 1),
          units(),
          loads,
          next_turn,
          between.any,
          close - 1,
          open};
  if (between.first_write >= 0) {
    gap.leave_by = between.first_write;
    gap.resume = between.last_write;
  }
  if (loads && known_[close % positions] >= 0)
    gap.resume = std::max(gap.resume, known_[close % positions] + close / positions * positions);
  gaps.push_back(gap);
  gap_of_unit.insert(gap_of_unit.end(), pieces[tensor], static_cast<std::int32_t>(gaps.size() - 1));
  for (int piece = 0; piece < pieces[tensor]; ++piece) unit_bytes_.push_back(piece_bytes(tensor, piece));
  ++versions.back().gaps;
}

void Liveness::add_gaps(const FlatGraph& graph, int tensor, const std::vector<Touch>& list) {
  const bool persistent = graph.persistent[tensor];
  if (list.empty()) {
    begin_version(tensor, -1, false);
    return add_gap(tensor, -1, positions, false, false, {});
  }
  std::vector<int> hbm;  // indices of the accesses in HBM
  for (std::size_t k = 0; k < list.size(); ++k)
    if (!list[k].pool) hbm.push_back(static_cast<int>(k));
  if (persistent && repeats) return add_gaps_circle(tensor, list, hbm);
  add_gaps_once(tensor, persistent, list, hbm);
}

void Liveness::add_gaps_once(int tensor, bool persistent, const std::vector<Touch>& list,
                             const std::vector<int>& hbm) {
  const auto between = [&](int from, int to) {  // indices, exclusive
    Between b;
    for (int k = from + 1; k < to; ++k) {
      b.any = true;
      if (!list[k].writes) continue;
      if (b.first_write < 0) b.first_write = list[k].position;
      b.last_write = list[k].position;
    }
    return b;
  };
  const int end = static_cast<int>(list.size());
  const Touch& first = list[hbm.front()];
  if (persistent) {
    begin_version(tensor, -1, false);
    add_gap(tensor, -1, first.position, first.reads, false, between(-1, hbm.front()));
  } else if (hbm.front() > 0) {  // born in the pool
    begin_version(tensor, list[0].position, true);
    Between b = between(-1, hbm.front());
    add_gap(tensor, list[0].position, first.position, first.reads, false, b);
  }
  if (first.writes) begin_version(tensor, first.position, false);
  for (std::size_t i = 0; i < hbm.size(); ++i) {
    const Touch& here = list[hbm[i]];
    if (i > 0 && here.writes) begin_version(tensor, here.position, false);
    const int next = i + 1 < hbm.size() ? hbm[i + 1] : end;
    const Between b = between(hbm[i], next);
    if (next < end) {
      if (list[next].position - here.position >= 2)
        add_gap(tensor, here.position, list[next].position, list[next].reads, false, b);
      if (b.last_write >= 0) begin_version(tensor, b.last_write, true);
    } else if (persistent ? here.position < positions - 1 : b.any) {
      add_gap(tensor, here.position, persistent ? positions : list.back().position + 1, false, false, b);
    }
  }
}

// The circle of a repeated body is entered where a version begins, so that each version is whole.
void Liveness::add_gaps_circle(int tensor, const std::vector<Touch>& list, const std::vector<int>& hbm) {
  const int count = static_cast<int>(hbm.size()), size = static_cast<int>(list.size());
  const auto between = [&](int i) {  // behind the i-th access in HBM, on the axis of its iteration
    Between b;
    const int from = hbm[i], to = i + 1 < count ? hbm[i + 1] : hbm[0] + size;
    for (int k = from + 1; k < to; ++k) {
      b.any = true;
      const Touch& touch = list[k % size];
      const int position = touch.position + (k >= size ? positions : 0);
      if (!touch.writes) continue;
      if (b.first_write < 0) b.first_write = position;
      b.last_write = position;
    }
    return b;
  };
  int start = 0;
  bool found = false;
  for (int i = 0; i < count && !found; ++i) {
    found = list[hbm[i]].writes || between((i + count - 1) % count).last_write >= 0;
    if (found) start = i;
  }
  for (int step = 0; step < count; ++step) {
    const int i = (start + step) % count;
    const Touch& here = list[hbm[i]];
    const Between before = between((i + count - 1) % count), b = between(i);
    if (here.writes) {
      begin_version(tensor, here.position, false);
    } else if (before.last_write >= 0) {  // in the pool; before this iteration began: position -1
      const int written = i > 0 ? before.last_write : before.last_write - positions;
      begin_version(tensor, std::max(written, -1), true);
    } else if (step == 0) {
      begin_version(tensor, -1, false);
    }
    const bool wraps = i + 1 == count;
    const Touch& next = list[hbm[wraps ? 0 : i + 1]];
    const int close = next.position + (wraps ? positions : 0);
    if (close - here.position >= 2) add_gap(tensor, here.position, close, next.reads, found && i < start, b);
  }
}

}  // namespace hyperoffload
