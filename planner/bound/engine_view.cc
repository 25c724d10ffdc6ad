#include "planner/bound/engine_view.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace hyperoffload {

EngineView::EngineView(const FlatGraph& graph, int engine, int iterations, bool circle, bool known_after)
    : iterations_(iterations), circle_(circle), known_after_(known_after) {
  for (OpId id : graph.graph->engine_ops(EngineId(engine))) {
    op.push_back(id.value);
    working_set.push_back(graph.working_set(id.value));
  }
  places = static_cast<int>(op.size());
  place_others(graph, engine);
  find_waits(graph, engine);
  resident.assign(2 * places + 1, 0);
  for (int t = 0; t < graph.tensors; ++t) add_tensor(graph, engine, t);
  for (std::size_t p = 1; p < resident.size(); ++p) resident[p] += resident[p - 1];
  resident.pop_back();
  for (int p = 0; p < 2 * places; ++p) resident[p] += working_set[p / 2];
}

void EngineView::place_others(const FlatGraph& graph, int engine) {
  around_.assign(graph.ops, {-1, 2 * places});
  const auto own = [&](int o) { return graph.engine(o) == engine; };
  for (int o = 0; o < graph.ops; ++o)
    graph.graph->for_each_before(OpId(o), [&](OpId before) {
      const int d = before.value, end = own(d) ? 2 * graph.place(d) + 1 : around_[d].done;
      around_[o].done = std::max(around_[o].done, end);
    });
  for (int o = graph.ops - 1; o >= 0; --o)
    graph.graph->for_each_before(OpId(o), [&](OpId before) {
      const int d = before.value, start = own(o) ? 2 * graph.place(o) : around_[o].next;
      around_[d].next = std::min(around_[d].next, start);
    });
}

// By the earliest starts, ops alone: where the engine idles, the chain of ops it waits for leads back to an
// earlier op of its own (or to the start); the waits between the two are forced. From the end backwards.
void EngineView::find_waits(const FlatGraph& graph, int engine) {
  std::vector<double> start(graph.ops + 1, 0);
  std::vector<int> cause(graph.ops + 1, -1);  // the op whose end sets the start
  const auto end = [&](int o) { return start[o] + graph.cost[o].alone.value; };
  const auto wait_for = [&](int o, int d) {
    if (end(d) <= start[o] && cause[o] >= 0) return;
    if (end(d) < start[o]) return;
    start[o] = end(d);
    cause[o] = d;
  };
  for (int o = 0; o < graph.ops; ++o) {
    if (graph.place(o) > 0)  // its own engine first: among equals no wait is seen
      wait_for(o, graph.graph->engine_ops(EngineId(graph.engine(o)))[graph.place(o) - 1].value);
    for (OpId d : graph.graph->cross_engine_deps(OpId(o))) wait_for(o, d.value);
  }
  const int last = graph.ops;  // stands for the iteration's end
  if (places > 0) wait_for(last, op.back());
  for (int o = 0; o < graph.ops; ++o) wait_for(last, o);
  alone = start[last];
  std::vector<double> busy{0};
  for (int o : op) busy.push_back(busy.back() + graph.cost[o].alone.value);
  for (int place = places; place >= 0;) {
    const int o = place < places ? op[place] : last;
    int from = cause[o];
    while (from >= 0 && graph.engine(from) != engine) from = cause[from];
    const int anchor = from < 0 ? -1 : graph.place(from);
    const double seconds = start[o] - (from < 0 ? 0 : end(from)) - (busy[place] - busy[anchor + 1]);
    if (seconds > 1e-15 * alone) waits.push_back({anchor < 0 ? -1 : 2 * anchor + 1, 2 * place, seconds});
    place = anchor;
  }
  std::reverse(waits.begin(), waits.end());
}

void EngineView::add_gap(Stay& stay, IdleGap gap) const {
  const bool cold = stay.pool_start && stay.gaps.empty() && gap.after < 0;
  if (gap.after + 1 >= gap.until && !cold) return;
  stay.gaps.push_back(gap);
}

void EngineView::keep(const FlatGraph& graph, Stay stay) {
  if (stay.pool_start && (stay.gaps.empty() || stay.gaps.front().after >= 0)) stay.pool_start = false;
  // What may leave at no cost takes nothing: what has a copy and never comes back.
  const bool clean = stay.stored_from == Stay::kClean;
  if (clean) std::erase_if(stay.gaps, [](const IdleGap& gap) { return !gap.loads; });
  if (stay.pool_start && stay.gaps.size() == 1 && !stay.gaps[0].loads) return;
  if (stay.gaps.empty()) return;
  for (const IdleGap& gap : stay.gaps) {
    if (gap.after + 1 < gap.until) add_idle(gap, graph.bytes[stay.tensor]);
  }
  stays.push_back(std::move(stay));
}

// By differences of positions.
void EngineView::add_idle(const IdleGap& gap, std::int64_t bytes) {
  const int end = 2 * places;
  if (gap.after + 1 >= end) return add_idle({gap.after - end, gap.until - end, gap.close - end, gap.loads}, bytes);
  resident[gap.after + 1] += bytes;
  resident[std::min(gap.until, end)] -= bytes;
  if (gap.until <= end) return;
  resident[0] += bytes;
  resident[gap.until - end] -= bytes;
}

// By access: the position before which nobody knows that the bytes it reads, as they are then, are read; -1: the start.
// What an op in the pool reads is loaded for nobody; a write ends what loads are for.
std::vector<int> EngineView::known(const FlatGraph& graph, int engine, int tensor) const {
  const auto accesses = graph.graph->accesses(TensorId(tensor));
  std::vector<int> known(accesses.size(), -1);
  if (!known_after_) return known;
  constexpr int kNever = std::numeric_limits<int>::max();
  const auto told = [&](const Access& access) {
    if (!access.reads || graph.in_pool[access.op.index()]) return kNever;
    const auto by = graph.graph->op(access.op).known_after;
    if (!by) return -1;
    return graph.engine(by->value) == engine ? 2 * graph.place(by->value) + 1 : around_[by->value].done;
  };
  int next = kNever;  // of reads behind it; of the next iteration's those known all along
  for (const Access& access : accesses) {
    if (iterations_ == 1 || !graph.persistent[tensor]) break;
    if (told(access) == -1) next = -1;
    if (next == -1 || access.writes) break;
  }
  for (std::size_t k = accesses.size(); k-- > 0;) {
    next = accesses[k].writes ? told(accesses[k]) : std::min(told(accesses[k]), next);
    known[k] = next == kNever ? -1 : next;
  }
  return known;
}

// From the first write, if there is one, round the circle to it again. The first stay ends with the gap across
// the iteration's end; what comes behind that, up to the first write, is left free to have a copy: so the program
// is the one of an open iteration, and what joins its two ends.
void EngineView::add_circle(const FlatGraph& graph, int tensor) {
  const auto accesses = graph.graph->accesses(TensorId(tensor));
  const int count = static_cast<int>(accesses.size()), end = 2 * places;
  const auto start = [&](int k) { return 2 * graph.place(accesses[k % count].op.value) + (k < count ? 0 : end); };
  int first = 0;
  while (first < count && !accesses[first].writes) ++first;
  const bool written = first < count;
  if (!written) first = 0;
  const std::vector<int> told = known(graph, 0, tensor);
  Stay stay{tensor, written ? start(first) + 1 : Stay::kClean, false, false, {}};
  for (int k = first; k < first + count; ++k) {
    const Access& next = accesses[(k + 1) % count];
    const int use = start(k + 1), by = told[(k + 1) % count];
    add_gap(stay, {start(k) + 1, use, use, next.reads, by < 0 ? -1 : by + use - 2 * graph.place(next.op.value)});
    if (next.writes) keep(graph, std::exchange(stay, Stay{tensor, use + 1, false, false, {}}));
  }
  keep(graph, std::move(stay));
}

void EngineView::add_tensor(const FlatGraph& graph, int engine, int tensor) {
  const auto accesses = graph.graph->accesses(TensorId(tensor));
  if (graph.bytes[tensor] == 0) return;
  const bool persistent = graph.persistent[tensor], input = graph.graph->is_input(TensorId(tensor));
  if (accesses.empty() && !persistent) return;
  if (circle_ && persistent) return accesses.empty() ? void() : add_circle(graph, tensor);
  const int never = -2, end = 2 * places;
  Stay stay{tensor, -1, false, false, {}};
  int open = persistent || input ? -1 : never;  // idle behind this position
  if (persistent && iterations_ > 1) stay.stored_from = Stay::kClean;
  if (persistent && iterations_ == 1) {
    stay.pool_start = true;
    stay.pool_only = graph.bound_to_pool[tensor];
  }
  int alive_until = -1;  // of a tensor that dies: surely alive up to here, for accesses elsewhere
  const auto begin = [&](int stored_from, int idle_after) {
    keep(graph, std::exchange(stay, Stay{tensor, stored_from, false, false, {}}));
    open = idle_after;
  };
  const std::vector<int> told = known(graph, engine, tensor);
  for (std::size_t k = 0; k < accesses.size(); ++k) {
    const Access& access = accesses[k];
    const int o = access.op.value;
    if (graph.engine(o) == engine && !graph.in_pool[o]) {
      const int place = graph.place(o);
      if (open != never) add_gap(stay, {open, 2 * place, 2 * place, access.reads, told[k]});
      open = 2 * place + 1;
      if (access.writes) begin(2 * place + 1, open);
      alive_until = -1;
      continue;
    }
    const Around& around = around_[o];
    alive_until = std::max(alive_until, around.done);
    if (!access.writes) continue;
    if (open != never)
      add_gap(stay, {open, around.done + 1, around.next, access.reads && !graph.in_pool[o], told[k]});
    begin(graph.in_pool[o] ? Stay::kClean : around.done, around.next - 1);
  }
  if (persistent)
    add_gap(stay, {open, end, end, false});
  else if (open != never && alive_until >= 0)
    add_gap(stay, {open, alive_until + 1, end, false});
  keep(graph, std::move(stay));
}

std::vector<std::int64_t> EngineView::excess(std::int64_t hbm) const {
  std::vector<std::int64_t> excess = resident;
  for (std::int64_t& bytes : excess) bytes -= hbm;
  return excess;
}

EngineView in_time(EngineView view, const std::vector<std::int32_t>& rank) {
  const auto key = [&](const Stay& stay) {
    return std::tuple(stay.gaps.front().until, stay.gaps.front().after, rank[stay.tensor]);
  };
  std::stable_sort(view.stays.begin(), view.stays.end(),
                   [&](const Stay& a, const Stay& b) { return key(a) < key(b); });
  return view;
}

}  // namespace hyperoffload
