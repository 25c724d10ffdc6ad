#include "planner/passes/replay_placement.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "planner/analysis/memory_profile.h"

namespace hyperoffload {
namespace {

constexpr Ticks kNever = std::numeric_limits<Ticks>::max() / 4;

class Replayer {
 public:
  Replayer(const FlatGraph& graph, const Liveness& liveness, const StepClock& ideal, const ReplayInput& input)
      : graph_(graph),
        liveness_(liveness),
        ideal_(ideal),
        input_(input),
        laps_(liveness.repeats ? 3 : 1),
        profile_({}),
        store_of_slot_(liveness.slots, -1),
        stored_(liveness.slots, -1) {}

  std::optional<Replayed> run();

 private:
  struct Load {
    int use, order;  // on the replay's axis; in order of need
    int unit, lap;
    bool released = false;  // waited for a position of its own
    bool operator>(const Load& other) const { return std::pair(use, order) > std::pair(other.use, other.order); }
  };

  int P() const { return liveness_.positions; }
  int Q() const { return laps_ * P(); }
  void build_profile();
  void find_taken();
  void find_loads();
  bool guided() const { return !input_.not_before.empty(); }
  // What its load waits for: the position that it is released at; -1: its turn among the others.
  int release(int unit) const {
    if (guided()) return input_.not_before[unit];
    const Gap& g = liveness_.gap(unit);
    return g.resume > g.open ? g.resume + 1 : -1;
  }
  std::optional<Load> next_in_order() const;
  std::optional<Load> next_load() const;
  void take_load(const Load& load);
  void add(int from, int to, std::int64_t bytes) { profile_.add(std::max(from, 0), std::min(to, Q()), bytes); }
  int store_lap(const Gap& gap, int lap) const { return lap - (gap.next_turn ? 1 : 0); }
  bool is_stored(int unit, int lap) const;
  bool try_load(int q);
  void try_store();
  void end_load();
  void end_store(int q);
  void put_off(int q);
  bool blocked(int q) const;
  bool settle(Ticks until, int q, bool waiting);
  void keep_load(int unit, int lap);

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& ideal_;
  const ReplayInput& input_;
  const int laps_;
  MemoryProfile profile_;
  std::vector<std::int32_t> store_of_slot_;                     // index into input_.stores
  std::vector<std::int32_t> stored_;                            // by slot: lap whose store is done last
  std::vector<std::vector<std::pair<std::int32_t, int>>> due_;  // by position: units (and laps) expected away
  std::vector<std::vector<std::pair<std::int32_t, int>>> waits_for_;  // by store: units that leave by it
  std::vector<int> expected_;                                   // by unit: the current lap's expectation; Q(): away
  std::vector<std::pair<std::int32_t, int>> in_order_;  // units (and their order) that wait for their turn
  std::size_t next_load_ = 0, next_store_ = 0;
  int load_lap_ = 0, store_lap_ = 0;
  int loading_ = 0;  // pieces on their way
  bool storing_ = false;
  Ticks load_end_ = kNever, store_end_ = kNever, store_start_ = 0;
  Ticks now_ = 0, stall_ = 0;
  int settled_ = -1;
  int refused_ = -2;  // what had ended when a load was put off
  std::vector<int> awaited_;                // by position: loads for it that have not arrived
  std::vector<std::int64_t> unstarted_;     // and the bytes of those that have not started
  std::vector<std::int64_t> taken_;         // by position of one lap: bytes that its op takes when it starts
  std::vector<std::vector<Load>> release_;  // by position
  std::priority_queue<Load, std::vector<Load>, std::greater<>> released_;
  int loading_for_ = 0;  // position
  std::vector<Ticks> lap_start_;
  Placements placed_;
  std::vector<Ticks> extra_;
};

// Whether the unit's bytes are in the pool in the gap that opens in `lap`.
bool Replayer::is_stored(int unit, int lap) const {
  const int slot = liveness_.slot(unit);
  if (store_of_slot_[slot] < 0) return true;
  return lap < 0 || stored_[slot] >= store_lap(liveness_.gap(unit), lap);
}

void Replayer::build_profile() {
  std::vector<std::int64_t> change(Q() + 1);
  due_.resize(Q() + 1);
  for (int u = 0; u < liveness_.units(); ++u) {
    if (!input_.evicted[u]) continue;
    const Gap& g = liveness_.gap(u);
    const bool dirty = store_of_slot_[liveness_.slot(u)] >= 0;
    for (int lap = liveness_.repeats ? -1 : 0; lap < laps_; ++lap) {
      const int from = std::max(0, input_.from[u] + lap * P()), to = std::min(Q(), g.close + lap * P());
      if (from >= to) continue;
      change[from] -= liveness_.unit_bytes(u);
      change[to] += liveness_.unit_bytes(u);
      if (dirty && lap >= 0) due_[from].emplace_back(u, lap);
    }
  }
  std::vector<std::int64_t> bytes(Q());
  std::int64_t sum = 0;
  for (int q = 0; q < Q(); ++q) bytes[q] = liveness_.resident[q % P()] + (sum += change[q]);
  profile_ = MemoryProfile(bytes);
}

void Replayer::find_taken() {
  taken_.assign(P(), 0);
  for (int t = 0; t < graph_.tensors; ++t) {
    const auto accesses = graph_.graph->accesses(TensorId(t));
    if (graph_.persistent[t] || accesses.empty()) continue;
    taken_[graph_.graph->is_input(TensorId(t)) ? 0 : accesses.front().op.value + 1] += graph_.bytes[t];
  }
  for (int op = 0; op < graph_.ops; ++op) taken_[op + 1] += graph_.workspace[op];
  for (int u = 0; u < liveness_.units(); ++u)
    if (const Gap& gap = liveness_.gap(u); input_.evicted[u] && !gap.loads) taken_[gap.close % P()] += liveness_.unit_bytes(u);
}

void Replayer::find_loads() {
  awaited_.assign(Q(), 0);
  unstarted_.assign(Q(), 0);
  release_.resize(Q());
  for (std::size_t i = 0; i < input_.loads.size(); ++i) {
    const int unit = input_.loads[i], order = static_cast<int>(i);
    const int not_before = release(unit);
    if (not_before < 0) in_order_.emplace_back(unit, order);
    for (int lap = liveness_.repeats ? -1 : 0; lap < laps_; ++lap) {
      const int use = liveness_.gap(unit).close + lap * P();
      if (use < 0) continue;
      if (use < Q()) {
        ++awaited_[use];
        unstarted_[use] += liveness_.unit_bytes(unit);
      }
      if (not_before < 0) continue;
      const int from = std::max(0, not_before + lap * P());
      if (from < Q()) release_[from].push_back({use, order, unit, lap, true});
    }
  }
}

// Of those that wait for nothing else, whether its gap is open or not.
std::optional<Replayer::Load> Replayer::next_in_order() const {
  if (load_lap_ == laps_ || in_order_.empty()) return std::nullopt;
  const auto [unit, order] = in_order_[next_load_];
  const Gap& g = liveness_.gap(unit);
  const int lap = load_lap_ - (g.close >= P() ? 1 : 0);
  if (g.open + lap * P() > settled_) return std::nullopt;
  return Load{g.close + lap * P(), order, unit, lap};
}

// In order of need.
std::optional<Replayer::Load> Replayer::next_load() const {
  const std::optional<Load> next = next_in_order();
  return !released_.empty() && (!next || *next > released_.top()) ? released_.top() : next;
}

void Replayer::take_load(const Load& load) {
  if (load.released) return released_.pop();
  if (++next_load_ < in_order_.size()) return;
  next_load_ = 0;
  ++load_lap_;
}

void Replayer::keep_load(int unit, int lap) {
  const int anchor = settled_ - lap * P();
  const int body = lap + (anchor >= P() ? 1 : 0);
  placed_.loads.push_back({unit, anchor, now_ - (body < 0 ? 0 : lap_start_[body])});
}

// Starts the next load, and what fits beside it of the same tensor.
bool Replayer::try_load(int q) {
  if (loading_ > 0) return false;
  const std::optional<Load> first = next_load();
  if (!first) return false;
  const int lap = first->lap, use = first->use;
  // What stands behind nothing but the iteration's start may come before its inputs.
  const int from = q > 0 && settled_ % P() == 0 ? q - 1 : q;
  std::int64_t room = graph_.machine.hbm - profile_.max(from, std::max(q + 1, std::min(use, Q())));
  if (use > q && refused_ == settled_) return false;
  // What q waits for is counted there already, and may come before there is room for what its op takes.
  if (use <= q)
    room = room >= 0 ? std::numeric_limits<std::int64_t>::max()
                     : graph_.machine.hbm - (profile_.at(q) - unstarted_[q] - taken_[q % P()]);
  std::int64_t bytes = 0;
  for (std::optional<Load> load = first; load && load->lap == lap && load->unit == first->unit + loading_ &&
                                         liveness_.gap_of_unit[load->unit] == liveness_.gap_of_unit[first->unit];
       load = next_load()) {
    const int u = load->unit;
    if (bytes + liveness_.unit_bytes(u) > room || !is_stored(u, lap)) break;
    bytes += liveness_.unit_bytes(u);
    if (lap + liveness_.gap(u).close / P() == laps_ - 1) {
      keep_load(u, lap);
      placed_.loads.back().joined = loading_ > 0;
    }
    ++loading_;
    take_load(*load);
  }
  if (loading_ == 0) {
    if (input_.firm && profile_.at(q) > graph_.machine.hbm && is_stored(first->unit, lap)) refused_ = settled_;
    return false;
  }
  add(from, use, bytes);
  if (use < Q()) unstarted_[use] -= bytes;
  loading_for_ = use;
  load_end_ = now_ + ideal_.ticks(graph_.machine.load_seconds(bytes));
  return true;
}

void Replayer::end_load() {
  if (loading_for_ < Q()) awaited_[loading_for_] -= loading_;
  loading_ = 0;
  load_end_ = kNever;
}

void Replayer::try_store() {
  if (storing_ || store_lap_ == laps_ || input_.stores.empty()) return;
  const StorePlacement& store = input_.stores[next_store_];
  if (store.anchor + store_lap_ * P() > settled_) return;
  storing_ = true;
  store_start_ = now_;
  store_end_ = now_ + ideal_.ticks(graph_.machine.store_seconds(liveness_.unit_bytes(store.unit)));
  if (store_lap_ == std::max(0, laps_ - 2)) {
    const int anchor = std::clamp(settled_ - store_lap_ * P(), store.anchor, P() - 1);
    const Ticks begin = lap_start_.empty() ? 0 : lap_start_[store_lap_];
    placed_.stores.push_back({store.slot, store.unit, anchor, now_ - begin, store_end_ - begin});
    placed_.stores.back().joined = false;
  }
}

void Replayer::end_store(int q) {
  const StorePlacement& store = input_.stores[next_store_];
  stored_[store.slot] = store_lap_;
  storing_ = false;
  store_end_ = kNever;
  for (const auto& [unit, turn] : waits_for_[next_store_]) {
    const int lap = store_lap_ + turn;
    if (expected_[unit] < 0 || lap >= laps_) continue;
    const Gap& g = liveness_.gap(unit);
    // Earlier than expected: from the position that runs, if its gap is open by now.
    const int from = std::max(g.open + 1 + lap * P(), q);
    const int expected = std::max(expected_[unit], input_.from[unit] + lap * P());
    if (from < expected) add(from, std::min(expected, g.close + lap * P()), -liveness_.unit_bytes(unit));
    expected_[unit] = 0;
  }
  if (++next_store_ == input_.stores.size()) {
    next_store_ = 0;
    ++store_lap_;
  }
}

// What was expected to be away by now, but isn't stored, is put off, each time for longer.
void Replayer::put_off(int q) {
  std::vector<std::pair<std::int32_t, int>> late;
  late.swap(due_[q]);
  for (const auto& [unit, lap] : late) {
    if (is_stored(unit, lap)) continue;
    const Gap& g = liveness_.gap(unit);
    const int close = std::min(Q(), g.close + lap * P());
    const int planned = std::max(0, input_.from[unit] + lap * P());
    const int to = std::min(close, q + 1 + (q - planned));
    add(q, to, liveness_.unit_bytes(unit));
    expected_[unit] = to;
    if (to < close) due_[to].emplace_back(unit, lap);
  }
}

bool Replayer::blocked(int q) const { return profile_.at(q) > graph_.machine.hbm || awaited_[q] > 0; }

// Lets transfers go on until a time, or, waiting, until nothing blocks q. False: it would wait for ever.
bool Replayer::settle(Ticks until, int q, bool waiting) {
  for (;;) {
    try_store();
    if (!input_.loads.empty()) try_load(q);
    if (waiting && !blocked(q)) return true;
    const Ticks next = std::min(load_end_, store_end_);
    if (waiting ? next == kNever : next > until) break;
    now_ = next;
    if (load_end_ <= now_) end_load();
    if (store_end_ <= now_) end_store(q);
  }
  now_ = std::max(now_, until);
  return !waiting;
}

std::optional<Replayed> Replayer::run() {
  if (graph_.engines > 1) return std::nullopt;
  for (const Gap& gap : liveness_.gaps)
    if (gap.must_leave) return std::nullopt;
  waits_for_.resize(input_.stores.size());
  for (std::size_t i = 0; i < input_.stores.size(); ++i) store_of_slot_[input_.stores[i].slot] = static_cast<int>(i);
  expected_.assign(liveness_.units(), 0);
  for (int u = 0; u < liveness_.units(); ++u)
    if (const int s = store_of_slot_[liveness_.slot(u)]; input_.evicted[u] && s >= 0)
      waits_for_[s].emplace_back(u, liveness_.gap(u).next_turn ? 1 : 0);
  build_profile();
  find_taken();
  find_loads();
  placed_.evicted = input_.evicted;
  extra_.assign(P(), 0);
  for (int q = 0; q < Q(); ++q) {
    const int p = q % P(), lap = q / P();
    const Ticks due = ideal_.start(p) + lap * ideal_.period() + stall_;
    if (q > 0) settle(due, q - 1, false);
    settled_ = q - 1;
    if (p == 0) lap_start_.push_back(now_);
    put_off(q);
    for (const Load& load : release_[q]) released_.push(load);
    if (!settle(now_, q, true)) return std::nullopt;
    if (lap == laps_ - 1) extra_[p] = std::max<Ticks>(0, now_ - due);
    stall_ += std::max<Ticks>(0, now_ - due);
  }
  if (placed_.stores.size() != input_.stores.size()) return std::nullopt;  // one that nobody waits for hasn't even begun
  const auto earlier = [](const auto& a, const auto& b) { return a.start < b.start; };
  std::stable_sort(placed_.loads.begin(), placed_.loads.end(), earlier);
  std::stable_sort(placed_.stores.begin(), placed_.stores.end(), earlier);
  return Replayed{std::move(placed_), ideal_.delayed(extra_)};
}

}  // namespace

std::optional<Replayed> replay_placement(const FlatGraph& graph, const Liveness& liveness, const StepClock& ideal,
                                         const ReplayInput& input) {
  return Replayer(graph, liveness, ideal, input).run();
}

}  // namespace hyperoffload
