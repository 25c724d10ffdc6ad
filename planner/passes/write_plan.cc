#include "planner/passes/write_plan.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

struct Draft {
  ActionKind kind;
  int unit;
  int anchor;  // position of the body; -1: its start
  int after;   // sorted behind this position: its anchor, but for a detach that follows its store
  Ticks time;  // planned start, orders what stands behind one position
  IterationScope scope;
  bool joined = true;
};

// Within one instant: give back, then store, then load.
int order_of(ActionKind kind) { return kind == ActionKind::kDetach ? 0 : kind == ActionKind::kStore ? 1 : 2; }

class Writer {
 public:
  Writer(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
         const std::vector<std::int32_t>& rank, const Placements& placements)
      : graph_(graph),
        liveness_(liveness),
        clock_(clock),
        rank_(rank),
        placements_(placements),
        store_of_slot_(liveness.slots, -1),
        absent_at_border_(liveness.units()) {}

  Plan run();

 private:
  void add_loads();
  void add_stores();
  void add_detaches();
  void settle_start(int tensor);
  void start_repeated(int tensor, int wrap);
  void add_first_stores(int tensor);
  void write_actions();
  void raise_anchors(ActionKind kind);
  bool mergeable(const Draft& draft) const;
  int P() const { return liveness_.positions; }

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& clock_;
  const std::vector<std::int32_t>& rank_;
  const Placements& placements_;
  std::vector<std::int32_t> store_of_slot_;  // index into placements_.stores
  std::vector<char> absent_at_border_;       // by unit of a gap that wraps
  std::vector<Draft> drafts_;
  Plan plan_;
  int last_unit_ = -1;  // the first one that the last action serves
};

void Writer::add_loads() {
  for (const LoadPlacement& load : placements_.loads) {
    const bool next_body = load.anchor >= P();
    absent_at_border_[load.unit] = next_body;
    const int anchor = next_body ? load.anchor - P() : load.anchor;
    drafts_.push_back({ActionKind::kPrefetch, load.unit, anchor, anchor, load.start,
                       IterationScope::kEvery, load.joined});
  }
}

void Writer::add_stores() {
  for (std::size_t i = 0; i < placements_.stores.size(); ++i) {
    const StorePlacement& store = placements_.stores[i];
    store_of_slot_[store.slot] = static_cast<std::int32_t>(i);
    drafts_.push_back(
        {ActionKind::kStore, store.unit, store.anchor, store.anchor, store.start, IterationScope::kEvery, store.joined});
  }
}

void Writer::add_detaches() {
  for (int u = 0; u < liveness_.units(); ++u) {
    const Gap& gap = liveness_.gap(u);
    const Version& version = liveness_.versions[gap.version];
    const bool born_in_pool = version.clean && version.written == gap.open;
    if (!placements_.evicted[u] || gap.open < 0 || born_in_pool) continue;
    if (!gap.loads && gap.close > P()) absent_at_border_[u] = 1;
    Draft draft{ActionKind::kDetach, u, gap.open, gap.open, clock_.end(gap.open), IterationScope::kEvery};
    if (!liveness_.clean(graph_, placements_.evicted, u) && !gap.next_turn) {
      const int placed = store_of_slot_[liveness_.slot(u)];
      HYPER_CHECK(placed >= 0, "an eviction without the store it needs");
      const StorePlacement& store = placements_.stores[placed];
      draft.anchor = draft.after = std::max(draft.anchor, store.anchor);
      // An action waits for the tensor's previous one, so a detach that waits for its store only must not
      // stand behind the stores of the tensor's other pieces. (Only in the gap it is stored for.)
      if (store.unit == u && store.end >= draft.time) {
        draft.after = store.anchor;
        draft.time = std::max(store.end, store.start + 1);  // even if it takes no time
      }
    }
    drafts_.push_back(draft);
  }
}

void Writer::settle_start(int tensor) {
  if (!graph_.persistent[tensor]) return;
  if (liveness_.pool_only[tensor]) return plan_.initial_pool.push_back(TensorId(tensor));
  const int begin = liveness_.gap_begin[tensor], end = liveness_.gap_begin[tensor + 1];
  if (begin < end && liveness_.gaps[begin].open < 0) {
    const bool away = graph_.bound_to_pool[tensor] || placements_.evicted[liveness_.gaps[begin].first_unit];
    if (away) plan_.initial_pool.push_back(TensorId(tensor));
    return;
  }
  int wrap = -1;
  for (int g = begin; g < end; ++g)
    if (liveness_.gaps[g].close > P()) wrap = g;
  start_repeated(tensor, wrap);
}

void Writer::start_repeated(int tensor, int wrap) {
  const int pieces = liveness_.pieces[tensor];
  int absent = 0;
  for (int k = 0; wrap >= 0 && k < pieces; ++k)
    absent += absent_at_border_[liveness_.gaps[wrap].first_unit + k];
  if (absent == 0 && !graph_.bound_to_pool[tensor]) return add_first_stores(tensor);
  plan_.initial_pool.push_back(TensorId(tensor));
  for (int k = 0; wrap >= 0 && k < pieces; ++k) {
    const int unit = liveness_.gaps[wrap].first_unit + k;
    if (absent_at_border_[unit]) continue;
    const Gap& gap = liveness_.gaps[wrap];
    const int known = gap.resume > std::max(gap.open, P()) ? gap.resume - P() : -1;
    const Ticks start = known < 0 ? std::numeric_limits<Ticks>::min() / 2 + gap.close : clock_.all_ended(known);
    drafts_.push_back({ActionKind::kPrefetch, unit, known, known, start, IterationScope::kFirst});
  }
}

// What starts in HBM has no pool copy, though in later iterations it would have one by now.
void Writer::add_first_stores(int tensor) {
  for (int k = 0; k < liveness_.pieces[tensor]; ++k) {
    const Gap* first = nullptr;
    for (int g = liveness_.gap_begin[tensor]; g < liveness_.gap_begin[tensor + 1]; ++g) {
      const Gap& gap = liveness_.gaps[g];
      if (placements_.evicted[gap.first_unit + k] && (first == nullptr || gap.open < first->open))
        first = &gap;
    }
    if (first == nullptr || !(liveness_.versions[first->version].written < 0 || first->next_turn)) continue;
    const int unit = first->first_unit + k;
    const Ticks length = clock_.ticks(graph_.machine.store_seconds(liveness_.unit_bytes(unit)));
    drafts_.push_back(
        {ActionKind::kStore, unit, -1, -1, clock_.end(first->open) - length, IterationScope::kFirst});
  }
}

// A queue keeps its order: what would stand before its forerunner moves behind it, where it would wait
// anyway. The first iteration's own stores go where they are needed among the others.
void Writer::raise_anchors(ActionKind kind) {
  std::vector<Draft*> queue;
  for (Draft& draft : drafts_)
    if (draft.kind == kind) queue.push_back(&draft);
  std::stable_sort(queue.begin(), queue.end(), [&](const Draft* a, const Draft* b) {
    const auto key = [&](const Draft* d) {
      return std::tuple(d->time, rank_[liveness_.gap(d->unit).tensor], liveness_.piece_of(d->unit));
    };
    return key(a) < key(b);
  });
  int anchor = -1;
  for (Draft* draft : queue) {
    if (draft->scope == IterationScope::kFirst && kind == ActionKind::kStore) {
      draft->after = draft->anchor = std::max(draft->anchor, anchor);
    } else {
      draft->after = draft->anchor = anchor = std::max(anchor, draft->anchor);
    }
  }
}

bool Writer::mergeable(const Draft& draft) const {
  const std::vector<Action>& actions = plan_.actions;
  if (!draft.joined || actions.empty()) return false;
  const Action& last = actions.back();
  const Gap& gap = liveness_.gap(draft.unit);
  return last.kind == draft.kind && last.tensor.value == gap.tensor && last.scope == draft.scope &&
         last.after_op.value == draft.anchor - 1 &&
         liveness_.gap_of_unit[last_unit_] == liveness_.gap_of_unit[draft.unit] &&
         last.to.value == liveness_.piece_from(gap.tensor, liveness_.piece_of(draft.unit));
}

void Writer::write_actions() {
  plan_.actions.reserve(drafts_.size());
  const auto key = [&](const Draft& d) {
    return std::tuple(d.after, d.time, order_of(d.kind), rank_[liveness_.gap(d.unit).tensor],
                      liveness_.piece_of(d.unit));
  };
  std::sort(drafts_.begin(), drafts_.end(), [&](const Draft& a, const Draft& b) { return key(a) < key(b); });
  for (const Draft& draft : drafts_) {
    const Gap& gap = liveness_.gap(draft.unit);
    const int piece = liveness_.piece_of(draft.unit);
    const Bytes to(liveness_.piece_from(gap.tensor, piece + 1));
    if (mergeable(draft)) {
      plan_.actions.back().to = to;
      continue;
    }
    Action action;
    action.kind = draft.kind;
    action.tensor = TensorId(gap.tensor);
    action.after_op = draft.anchor < 1 ? OpId::none() : OpId(draft.anchor - 1);
    if (draft.kind == ActionKind::kPrefetch) action.before_op = OpId(gap.close % P() - 1);
    action.from = Bytes(liveness_.piece_from(gap.tensor, piece));
    action.to = to;
    action.scope = draft.scope;
    plan_.actions.push_back(action);
    last_unit_ = draft.unit;
  }
}

Plan Writer::run() {
  add_loads();
  add_stores();
  add_detaches();
  for (int t = 0; t < graph_.tensors; ++t) settle_start(t);
  raise_anchors(ActionKind::kStore);
  raise_anchors(ActionKind::kPrefetch);
  write_actions();
  return std::move(plan_);
}

}  // namespace

Plan write_plan(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                const std::vector<std::int32_t>& rank, const Placements& placements) {
  return Writer(graph, liveness, clock, rank, placements).run();
}

}  // namespace hyperoffload
