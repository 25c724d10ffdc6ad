#include "planner/cost/walk_memory.h"

namespace hyperoffload {
namespace {

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::int64_t overlap(const Ranges& ranges, std::int64_t from, std::int64_t to) {
  std::int64_t sum = 0;
  for (const auto& [a, b] : ranges) sum += std::max<std::int64_t>(0, std::min(b, to) - std::max(a, from));
  return sum;
}

void unite(Ranges& ranges, std::int64_t from, std::int64_t to) {
  Ranges merged;
  for (const auto& range : ranges) {
    if (range.second < from || range.first > to) {
      merged.push_back(range);
    } else {
      from = std::min(from, range.first);
      to = std::max(to, range.second);
    }
  }
  merged.emplace_back(from, to);
  std::sort(merged.begin(), merged.end());
  ranges = std::move(merged);
}

}  // namespace

WalkMemory::WalkMemory(const FlatGraph& graph, const Plan& plan, const std::vector<char>& starts_in_pool,
                       Residency* watch)
    : graph_(graph),
      plan_(plan),
      hbm_(plan.room_of(Bytes(graph.machine.hbm)).value),
      watch_(watch),
      resident_(graph.tensors),
      own_(graph.tensors),
      cuts_(graph.tensors),
      own_ranges_(graph.tensors) {
  for (const Action& action : plan.actions) {
    if (action.bytes().value == graph.bytes[action.tensor.index()]) continue;
    for (Bytes at : {action.from, action.to}) cuts_[action.tensor.index()].push_back(at.value);
  }
  if (watch_) watch_->begin();
  for (int t = 0; t < graph.tensors; ++t) {
    std::vector<std::int64_t>& cuts = cuts_[t];
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    whole_.push_back(fresh(t, 0, graph.bytes[t]));
    if (!graph.persistent[t]) continue;
    (starts_in_pool[t] ? own_[t] : resident_[t]) = starts_in_pool[t] ? whole_[t] : graph.bytes[t];
    starts_in_pool[t] ? take_pool(whole_[t]) : take_hbm(graph.bytes[t]);
  }
}

// What [from, to) would take in the pool beside what of it is the tensor's own there.
std::int64_t WalkMemory::fresh(int tensor, std::int64_t from, std::int64_t to) const {
  const auto piece = [&](std::int64_t a, std::int64_t b) {
    return overlap(own_ranges_[tensor], a, b) > 0 ? 0 : graph_.machine.pool_bytes(b - a);
  };
  std::int64_t sum = 0;
  for (std::int64_t cut : cuts_[tensor]) {
    if (cut <= from || cut >= to) continue;
    sum += piece(from, cut);
    from = cut;
  }
  return sum + piece(from, to);
}

std::int64_t WalkMemory::need(int op) const {
  std::int64_t sum = workspace(op);
  for (const FlatAccess& access : graph_.accesses(op))
    if (access.writes && !access.reads) sum += missing(op, access.tensor);
  return sum;
}

void WalkMemory::start_op(int op) {
  const bool in_pool = graph_.in_pool[op];
  std::int64_t sum = workspace(op);
  for (const FlatAccess& access : graph_.accesses(op)) {
    if (!access.writes || access.reads) continue;
    sum += missing(op, access.tensor);
    (in_pool ? own_ : resident_)[access.tensor] = (in_pool ? whole_ : graph_.bytes)[access.tensor];
  }
  in_pool ? take_pool(sum) : take_hbm(sum);
  if (watch_) watch_->start_op(OpId(op));
}

void WalkMemory::end_op(int op) {
  (graph_.in_pool[op] ? pool_used_ : hbm_used_) -= workspace(op);
  if (watch_) watch_->end_op(OpId(op));
}

void WalkMemory::take_input(int tensor) {
  resident_[tensor] = graph_.bytes[tensor];
  take_hbm(graph_.bytes[tensor]);
  if (watch_) watch_->take_input(TensorId(tensor));
}

std::int64_t WalkMemory::need(const Action& action) const {
  if (action.kind == ActionKind::kPrefetch) return action.bytes().value;
  const int t = action.tensor.value;
  return own_[t] > 0 && own_[t] == whole_[t] ? 0 : fresh(t, action.from.value, action.to.value);
}

void WalkMemory::start_transfer(const Action& action) {
  const int t = action.tensor.value;
  if (action.kind == ActionKind::kPrefetch) {
    resident_[t] += action.bytes().value;
    take_hbm(action.bytes().value);
    if (watch_) watch_->prefetch(static_cast<int>(&action - plan_.actions.data()));
    return;
  }
  const std::int64_t fresh = need(action);
  own_[t] += fresh;
  take_pool(fresh);
  if (fresh > 0 && own_[t] < whole_[t]) unite(own_ranges_[t], action.from.value, action.to.value);
}

void WalkMemory::detach(const Action& action) {
  resident_[action.tensor.index()] -= action.bytes().value;
  hbm_used_ -= action.bytes().value;
  if (watch_) watch_->detach(action);
}

void WalkMemory::die(int tensor) {
  hbm_used_ -= resident_[tensor];
  pool_used_ -= own_[tensor];
  resident_[tensor] = own_[tensor] = 0;
  own_ranges_[tensor].clear();
  if (watch_) watch_->die(TensorId(tensor));
}

}  // namespace hyperoffload
