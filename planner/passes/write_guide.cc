#include "planner/passes/write_guide.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace hyperoffload {
namespace {

enum Kind { kStore, kDetach, kLoad };

struct Draft {
  int slot;
  Kind kind;
  int due;
  int flow;  // its number
  int tensor;
  std::int64_t from, to;
  double progress = 0;  // of what the slot moves that way, when a store has ended, a load begins
};

// By slot, kind and need.
void add_progress(std::vector<Draft>& drafts) {
  std::map<std::tuple<int, int, std::int64_t>, double> stored;  // by slot, tensor and first byte
  for (std::size_t i = 0, end; i < drafts.size(); i = end) {
    double all[3] = {0, 0, 0}, done[3] = {0, 0, 0};
    for (end = i; end < drafts.size() && drafts[end].slot == drafts[i].slot; ++end)
      all[drafts[end].kind] += static_cast<double>(drafts[end].to - drafts[end].from);
    for (; i < end; ++i) {
      Draft& d = drafts[i];
      const double bytes = static_cast<double>(d.to - d.from);
      if (d.kind == kStore) stored[{d.slot, d.tensor, d.from}] = d.progress = (done[kStore] += bytes) / all[kStore];
      if (d.kind == kLoad) d.progress = std::exchange(done[kLoad], done[kLoad] + bytes) / all[kLoad];
      if (d.kind != kDetach) continue;
      const auto at = stored.find({d.slot, d.tensor, d.from});
      d.progress = at == stored.end() ? 0 : at->second;
    }
  }
}

std::vector<Draft> cut(const FlatGraph& graph, const LpGuide& guide, std::int64_t piece_bytes) {
  std::vector<Draft> drafts;
  for (std::size_t f = 0; f < guide.flows.size(); ++f) {
    const LpGuide::Flow& flow = guide.flows[f];
    const int number = static_cast<int>(f);
    const auto at = [&](double share) {
      return static_cast<std::int64_t>(std::llround(share * static_cast<double>(graph.bytes[flow.tensor])));
    };
    const std::int64_t from = at(flow.from), bytes = at(flow.to) - from;
    const std::int64_t count = (bytes + piece_bytes - 1) / piece_bytes;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t a = from + bytes * k / count, b = from + bytes * (k + 1) / count;
      if (flow.store >= 0) drafts.push_back({flow.store, kStore, flow.away.front().first, number, flow.tensor, a, b});
      for (const LpGuide::Flow::Away& away : flow.away) {
        if (!away.absent) drafts.push_back({away.first, kDetach, away.first, number, flow.tensor, a, b});
        if (away.load >= 0) drafts.push_back({away.load, kLoad, away.due, number, flow.tensor, a, b});
      }
    }
  }
  std::sort(drafts.begin(), drafts.end(), [](const Draft& a, const Draft& b) {
    return std::tuple(a.slot, a.kind, a.due, a.flow, a.from) < std::tuple(b.slot, b.kind, b.due, b.flow, b.from);
  });
  return drafts;
}

// Before what moves beside op `k` a byte of the piece stored last comes back: so the loads behind it wait for that store.
void hold_back(std::vector<Draft>& drafts, int k) {
  const auto behind = std::find_if(drafts.begin(), drafts.end(), [&](const Draft& d) { return d.slot > 2 * k; });
  for (auto store = behind; store != drafts.begin();) {
    if ((--store)->kind != kStore || store->to - store->from < 2) continue;
    const auto same = [&](const Draft& d, Kind kind) {
      return d.kind == kind && d.tensor == store->tensor && d.from == store->from && d.to == store->to;
    };
    const auto left = std::find_if(store, behind, [&](const Draft& d) { return same(d, kDetach); });
    const auto back = std::find_if(left, drafts.end(), [&](const Draft& d) { return same(d, kLoad); });
    if (left == behind || back == drafts.end() || back < behind) continue;
    Draft byte = *back;
    byte.slot = 2 * k + 1;
    byte.to = ++back->from;
    byte.from = byte.to - 1;
    drafts.insert(behind, byte);
    return;
  }
}

// What the program lets begin in the pool, and what takes nothing there until it is written.
std::vector<TensorId> starts_in_pool(const FlatGraph& graph, const LpGuide& guide) {
  std::vector<char> in_pool(graph.tensors);
  for (int t : guide.from_pool) in_pool[t] = 1;
  std::vector<TensorId> result;
  for (int t = 0; t < graph.tensors; ++t) {
    const auto accesses = graph.graph->accesses(TensorId(t));
    const bool unread = graph.persistent[t] && (accesses.empty() || !accesses[0].reads);
    if (in_pool[t] || unread || graph.bound_to_pool[t]) result.push_back(TensorId(t));
  }
  return result;
}

}  // namespace

Plan write_guide(const FlatGraph& graph, const LpGuide& guide, std::int64_t piece_bytes, const std::vector<int>& first) {
  std::vector<Draft> drafts = cut(graph, guide, piece_bytes);
  add_progress(drafts);
  std::stable_sort(drafts.begin(), drafts.end(), [](const Draft& a, const Draft& b) {
    return std::tuple(a.slot, a.progress, a.kind) < std::tuple(b.slot, b.progress, b.kind);
  });
  for (int op : first) hold_back(drafts, op);
  Plan plan;
  plan.initial_pool = starts_in_pool(graph, guide);
  for (const Draft& d : drafts) {
    Action action;
    action.kind = d.kind == kStore ? ActionKind::kStore : d.kind == kDetach ? ActionKind::kDetach : ActionKind::kPrefetch;
    action.tensor = TensorId(d.tensor);
    if (const int after = std::min(d.slot / 2, graph.ops) - 1; after >= 0) action.after_op = OpId(after);
    if (d.kind == kLoad) action.before_op = OpId(d.due / 2);
    action.from = Bytes(d.from);
    action.to = Bytes(d.to);
    plan.actions.push_back(action);
  }
  return plan;
}

}  // namespace hyperoffload
