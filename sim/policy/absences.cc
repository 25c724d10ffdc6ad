#include "sim/policy/absences.h"

#include <algorithm>
#include <tuple>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

struct Draft {
  Action action;
  int slot = 0;         // the access that it belongs to
  std::int64_t use = 0;  // of a prefetch: the op that reads it, counted on through the next iteration

  // Stores before detaches before loads: what frees comes first; loads in the order of use.
  auto order() const {
    const int rank = action.kind == ActionKind::kStore ? 0 : action.kind == ActionKind::kDetach ? 1 : 2;
    return std::tuple(action.after_op, rank, use, action.tensor);
  }
  bool same_as(const Draft& other) const {
    return slot == other.slot && action.kind == other.action.kind && action.after_op == other.action.after_op;
  }
};

bool in_pool(const Graph& graph, const Access& access) { return graph.op(access.op).memory == Tier::kPool; }

// One tensor through its accesses, iteration by iteration.
class Walk {
 public:
  Walk(const Graph& graph, TensorId tensor, const std::vector<const Absence*>& absences)
      : graph_(graph), tensor_(tensor), accesses_(graph.accesses(tensor)), absences_(absences) {
    const Tensor& t = graph.tensor(tensor);
    if (!t.persistent) return;
    const bool away = !accesses_.empty() && (absences.back() || in_pool(graph, accesses_.front()));
    starts_in_pool_ = away || t.initial == Tier::kPool;
    resident_ = !starts_in_pool_;
    valid_ = starts_in_pool_;
  }

  bool starts_in_pool() const { return starts_in_pool_; }

  std::vector<Draft> iteration(int index) {
    drafts_.clear();
    latest_anchor_ = last_write_ = OpId::none();
    if (!graph_.tensor(tensor_).persistent) {
      resident_ = graph_.is_input(tensor_);
      valid_ = false;
    }
    const Absence* wrap = absences_.back();
    if (index == 0 && starts_in_pool_ && wrap && ahead(*wrap) && front_needs_bytes()) load(0, OpId::none());
    for (std::size_t i = 0; i < accesses_.size(); ++i) {
      if (in_pool(graph_, accesses_[i]))
        access_in_pool(i);
      else
        access_in_hbm(i);
      if (absences_[i]) leave(i);
    }
    return drafts_;
  }

 private:
  bool last(std::size_t i) const { return i + 1 == accesses_.size(); }
  bool front_needs_bytes() const { return accesses_.front().reads && !in_pool(graph_, accesses_.front()); }
  // A use that is known only in its own iteration can't be loaded for in the one before.
  bool ahead(const Absence& a) const { return a.ahead && !graph_.op(accesses_.front().op).known_after; }

  void emit(ActionKind kind, std::size_t slot, OpId after, OpId before = OpId::none(), std::int64_t use = 0) {
    Action action;
    action.kind = kind;
    action.tensor = tensor_;
    action.after_op = latest_anchor_ = std::max(latest_anchor_, after);
    action.before_op = before;
    action.to = graph_.tensor(tensor_).bytes;
    drafts_.push_back({action, static_cast<int>(slot), use});
  }

  void load(std::size_t i, OpId after, bool for_next = false) {
    const OpId use = accesses_[i].op;
    const auto ops = static_cast<std::int64_t>(graph_.ops().size());
    emit(ActionKind::kPrefetch, i, after, use, use.value + (for_next ? ops : 0));
    resident_ = true;
  }

  void store(std::size_t i) {
    if (valid_) return;
    emit(ActionKind::kStore, i, last_write_);
    valid_ = true;
  }

  void access_in_hbm(std::size_t i) {
    const Access& access = accesses_[i];
    if (!resident_ && access.reads) {
      const Absence* left = i > 0 ? absences_[i - 1] : absences_.back();
      const OpId earliest = i > 0 ? accesses_[i - 1].op : OpId::none();
      load(i, load_anchor(graph_, access.op, earliest,
                          left && !ahead(*left) ? left->load_after : load_point(graph_, access.op)));
    }
    resident_ = true;
    if (access.writes) {
      valid_ = false;
      last_write_ = access.op;
    }
  }

  void access_in_pool(std::size_t i) {
    const Access& access = accesses_[i];
    if (access.reads) store(i);
    if (!access.writes) return;
    if (resident_) {
      store(i);
      emit(ActionKind::kDetach, i, i > 0 ? accesses_[i - 1].op : OpId::none());
      resident_ = false;
    }
    valid_ = true;
  }

  void leave(std::size_t i) {
    if (last(i) && !graph_.tensor(tensor_).persistent) return;  // it dies
    if (resident_) {
      store(i);
      emit(ActionKind::kDetach, i, std::max(accesses_[i].op, absences_[i]->leave_after));
      resident_ = false;
    }
    if (last(i) && ahead(*absences_[i]) && front_needs_bytes())
      load(0, std::max(absences_[i]->load_after, accesses_[i].op), true);
  }

  const Graph& graph_;
  const TensorId tensor_;
  const std::span<const Access> accesses_;
  const std::vector<const Absence*>& absences_;
  bool starts_in_pool_ = false, resident_ = false, valid_ = false;
  OpId last_write_, latest_anchor_;  // of this iteration
  std::vector<Draft> drafts_;
};

// The body's actions on one tensor: what the first iteration and the later ones have in common counts for all.
void add_body(std::vector<Draft> first, std::vector<Draft> later, bool repeats, std::vector<Draft>& all) {
  if (!repeats) {
    all.insert(all.end(), first.begin(), first.end());
    return;
  }
  for (Draft& draft : first) {
    const auto same = std::find_if(later.begin(), later.end(), [&](const Draft& d) { return d.same_as(draft); });
    if (same == later.end())
      draft.action.scope = IterationScope::kFirst;
    else
      later.erase(same);
    all.push_back(draft);
  }
  for (Draft& draft : later) {
    draft.action.scope = IterationScope::kLater;
    all.push_back(draft);
  }
}

bool leaves_for(const Graph& graph, const Access& access) { return in_pool(graph, access) && access.writes; }

}  // namespace

Plan plan_absences(const Graph& graph, const std::vector<Absence>& absences, int iterations,
                   bool never_used_in_pool) {
  std::vector<std::vector<const Absence*>> by_tensor(graph.tensors().size());
  for (std::size_t t = 0; t < by_tensor.size(); ++t)
    by_tensor[t].assign(std::max<std::size_t>(1, graph.accesses(TensorId(t)).size()), nullptr);
  for (const Absence& absence : absences) {
    auto& mine = by_tensor[absence.tensor.index()];
    HYPER_CHECK(static_cast<std::size_t>(absence.access) < mine.size(), "an absence behind no access");
    mine[static_cast<std::size_t>(absence.access)] = &absence;
  }
  Plan plan;
  std::vector<Draft> drafts;
  for (std::size_t t = 0; t < by_tensor.size(); ++t) {
    Walk walk(graph, TensorId(t), by_tensor[t]);
    const bool unused = graph.tensors()[t].persistent && graph.accesses(TensorId(t)).empty();
    if (walk.starts_in_pool() || (unused && never_used_in_pool)) plan.initial_pool.push_back(TensorId(t));
    std::vector<Draft> first = walk.iteration(0);
    add_body(std::move(first), iterations > 1 ? walk.iteration(1) : std::vector<Draft>{}, iterations > 1, drafts);
  }
  std::stable_sort(drafts.begin(), drafts.end(),
                   [](const Draft& a, const Draft& b) { return a.order() < b.order(); });
  for (const Draft& draft : drafts) plan.actions.push_back(draft.action);
  return plan;
}

OpId load_point(const Graph& graph, OpId op) {
  OpId last;
  graph.for_each_before(op, [&](OpId before) { last = std::max(last, before); });
  return last;
}

OpId load_anchor(const Graph& graph, OpId use, OpId previous, OpId wish) {
  const OpId anchor = std::max(previous, std::min(wish, load_point(graph, use)));
  const auto known = graph.op(use).known_after;
  return known ? std::max(anchor, *known) : anchor;
}

std::vector<char> resident_after(const Graph& graph, TensorId t) {
  const auto accesses = graph.accesses(t);
  std::vector<char> after(accesses.size(), 0);
  bool resident = graph.is_input(t) || graph.tensor(t).persistent;
  for (int round = 0; round < (graph.tensor(t).persistent ? 2 : 1); ++round)
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      if (!in_pool(graph, accesses[i]))
        resident = true;
      else if (accesses[i].writes)
        resident = false;
      after[i] = resident;
    }
  return after;
}

std::vector<Stretch> stretches(const Graph& graph) {
  std::vector<Stretch> all;
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const auto accesses = graph.accesses(TensorId(t));
    if (accesses.empty() || graph.tensors()[t].bytes == Bytes(0)) continue;
    const std::vector<char> resident = resident_after(graph, TensorId(t));
    const std::size_t count = accesses.size() - (graph.tensors()[t].persistent ? 0 : 1);
    for (std::size_t i = 0; i < count; ++i) {
      const bool wraps = i + 1 == accesses.size();
      const Access& next = accesses[wraps ? 0 : i + 1];
      if (!resident[i] || in_pool(graph, accesses[i]) || leaves_for(graph, next)) continue;
      all.push_back({TensorId(t), static_cast<int>(i), accesses[i].op, next.op, wraps});
    }
  }
  return all;
}

}  // namespace hyperoffload
