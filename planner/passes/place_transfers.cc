#include "planner/passes/place_transfers.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "planner/analysis/memory_profile.h"
#include "planner/passes/replay_placement.h"

namespace hyperoffload {
namespace {

// A late load ends this part of its own time before it is due, so that no tie decides.
constexpr double kMargin = 0.02;
constexpr Ticks kNoStore = std::numeric_limits<Ticks>::min() / 4;
constexpr Ticks kFar = std::numeric_limits<Ticks>::max() / 4;

class Placer {
 public:
  Placer(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
         const std::vector<std::int32_t>& rank, const EvictionLedger& ledger, Lead lead)
      : graph_(graph),
        liveness_(liveness),
        clock_(clock),
        rank_(rank),
        ledger_(ledger),
        lead_(lead),
        from_(liveness.units()),
        store_end_(liveness.slots, kNoStore),
        profile_({}) {
    result_.evicted = ledger.evicted_units();
  }

  Placements run() {
    place_stores();
    free_bytes();
    list_loads();
    place_loads();
    if (liveness_.repeats) place_loads();
    order_loads();
    drop_idle_stores();
    return std::move(result_);
  }

  std::optional<Replayed> replay(const StepClock& ideal, bool firm, const std::vector<Eviction>* guided) {
    if (guided) follow(*guided);
    place_stores();
    free_bytes();
    list_loads();
    std::vector<std::int32_t> units;
    for (const Load& load : loads_) units.push_back(load.unit);
    return replay_placement(graph_, liveness_, ideal, {result_.evicted, from_, result_.stores, units, firm, back_});
  }

 private:
  struct Load {
    int unit;
    Ticks length;
    Ticks latest;    // start, on the guide timeline
    int count_from;  // its bytes count from here on, on the gap's axis; first as the ledger booked it
    int anchor;      // on the gap's axis
    Ticks start;     // from the start of the iteration of its use
  };

  void follow(const std::vector<Eviction>& guided);
  void place_stores();
  void run_stores(std::vector<StorePlacement>& jobs, const std::vector<Ticks>& due);
  void free_bytes();
  void list_loads();
  void place_loads();
  int admit(const Load& load, const Gap& gap, std::int64_t bytes) const;
  bool may_stay(const Load& load, const Gap& gap, std::int64_t bytes) const;
  void place(Load& load, Ticks* link_free);
  void order_loads();
  void drop_idle_stores();
  int P() const { return liveness_.positions; }
  int turn(const Gap& gap) const { return gap.close > P() ? P() : 0; }  // a use in the next iteration
  // Times on the timeline with the stalls found so far; positions from -P on.
  Ticks& ended(int position) { return ended_[position + P()]; }

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& clock_;
  const std::vector<std::int32_t>& rank_;
  const EvictionLedger& ledger_;
  const Lead lead_;
  std::vector<std::int32_t> from_;  // by unit: first position freed
  std::vector<std::int32_t> leave_, back_;  // by unit: as guided; a unit that is not comes back when it can
  std::vector<Ticks> store_end_;    // by slot, from the start of the iteration of its write
  std::vector<Load> loads_;         // in order of need
  std::vector<Ticks> ended_;        // all positions up to this one ended; previous and this iteration
  int timed_ = 0;                   // positions below are final in ended_
  Ticks stall_ = 0, previous_link_free_ = kNoStore, period_ = 0;
  MemoryProfile profile_;
  Placements result_;
};

// The most urgent of those that could start goes first.
void Placer::run_stores(std::vector<StorePlacement>& jobs, const std::vector<Ticks>& due) {
  std::vector<std::int32_t> by_release(jobs.size());
  std::vector<Ticks> release(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    by_release[i] = static_cast<std::int32_t>(i);
    release[i] = jobs[i].anchor < 0 ? 0 : clock_.all_ended(jobs[i].anchor);
  }
  // At equal times positions decide: a store must not stand behind one that program order reaches later.
  const auto urgency = [&](int i) {
    const Gap& gap = liveness_.gap(jobs[i].unit);
    return std::tuple(lead_ == Lead::kOnDemand ? jobs[i].anchor : 0, due[i], gap.open, rank_[gap.tensor],
                      liveness_.piece_of(jobs[i].unit));
  };
  std::vector<std::int32_t> place(jobs.size());  // by job: how many are more urgent
  std::sort(by_release.begin(), by_release.end(), [&](int a, int b) { return urgency(a) < urgency(b); });
  for (std::size_t i = 0; i < jobs.size(); ++i) place[by_release[i]] = static_cast<std::int32_t>(i);
  std::stable_sort(by_release.begin(), by_release.end(), [&](int a, int b) { return release[a] < release[b]; });
  const auto less_urgent = [&](int a, int b) { return place[a] > place[b]; };
  Ticks link_free = 0;
  std::vector<std::int32_t> order;
  for (int round = 0; round < (liveness_.repeats ? 2 : 1); ++round) {
    order.clear();
    std::priority_queue<int, std::vector<int>, decltype(less_urgent)> waiting(less_urgent);
    for (std::size_t next = 0; next < jobs.size() || !waiting.empty();) {
      if (waiting.empty()) link_free = std::max(link_free, release[by_release[next]]);
      while (next < jobs.size() && release[by_release[next]] <= link_free) waiting.push(by_release[next++]);
      const int job = waiting.top();
      waiting.pop();
      order.push_back(job);
      jobs[job].start = link_free;
      link_free += clock_.ticks(graph_.machine.store_seconds(liveness_.unit_bytes(jobs[job].unit)));
      jobs[job].end = link_free;
    }
    link_free = std::max<Ticks>(0, link_free - clock_.period());
  }
  for (int job : order) result_.stores.push_back(jobs[job]);
}

void Placer::follow(const std::vector<Eviction>& guided) {
  for (int u = 0; u < liveness_.units(); ++u) {
    leave_.push_back(liveness_.gap(u).open + 1);
    back_.push_back(liveness_.gap(u).resume + 1);
  }
  for (const Eviction& e : guided) {
    const Gap& gap = liveness_.gap(e.unit);
    leave_[e.unit] = e.position;
    back_[e.unit] = std::min(std::max(e.back, gap.resume + 1), gap.close);
  }
}

void Placer::place_stores() {
  std::vector<StorePlacement> jobs;
  std::vector<Ticks> due;
  std::vector<char> seen(liveness_.slots);
  for (int u = 0; u < liveness_.units(); ++u) {  // gaps of a version stand in order: the first needs it first
    if (!result_.evicted[u] || liveness_.clean(graph_, result_.evicted, u)) continue;
    const int slot = liveness_.slot(u);
    if (seen[slot]) continue;
    seen[slot] = 1;
    const Gap& gap = liveness_.gap(u);
    const int written = liveness_.versions[gap.version].written;
    jobs.push_back({slot, u, written, 0, 0, true});
    const Ticks needed = leave_.empty() ? clock_.end(gap.open) : clock_.start(leave_[u]);
    due.push_back(needed + (gap.next_turn ? clock_.period() : 0));
  }
  run_stores(jobs, due);
  int anchor = -1;
  for (StorePlacement& store : result_.stores) {
    store_end_[store.slot] = store.end;
    store.anchor = anchor = std::max(anchor, store.anchor);
  }
}

void Placer::free_bytes() {
  std::vector<std::int64_t> change(P() + 1);
  const auto add = [&](int from, int to, std::int64_t bytes) {
    if (from >= P()) from -= P(), to -= P();
    change[from] += bytes;
    if (to <= P()) {
      change[to] -= bytes;
    } else {
      change[P()] -= bytes;
      change[0] += bytes;
      change[to - P()] -= bytes;
    }
  };
  for (int u = 0; u < liveness_.units(); ++u) {
    if (!result_.evicted[u]) continue;
    const Gap& gap = liveness_.gap(u);
    int from = gap.open + 1;
    if (lead_ != Lead::kOnDemand && !liveness_.clean(graph_, result_.evicted, u)) {
      const Ticks stored = store_end_[liveness_.slot(u)] - (gap.next_turn ? clock_.period() : 0);
      if (stored > clock_.end(gap.open)) from = std::max(from, clock_.first_start_from(stored));
    }
    if (gap.must_leave) from = std::min(from, gap.leave_by);
    from_[u] = std::max(gap.open + 1, std::min(from, gap.until - 1));
    add(from_[u], gap.until, -liveness_.unit_bytes(u));
  }
  std::vector<std::int64_t> bytes = liveness_.resident;
  std::int64_t sum = 0;
  for (int p = 0; p < P(); ++p) bytes[p] += sum += change[p];
  profile_ = MemoryProfile(bytes);
}

void Placer::list_loads() {
  for (int u = 0; u < liveness_.units(); ++u) {
    const Gap& gap = liveness_.gap(u);
    if (!result_.evicted[u] || !gap.loads) continue;
    const std::int64_t bytes = liveness_.unit_bytes(u);
    const int booked = std::min<int>(ledger_.freed_to(u), gap.until);
    const int back = gap.must_leave ? booked : std::max(from_[u], booked);
    profile_.add(back, gap.until, bytes);
    loads_.push_back({u, clock_.ticks(graph_.machine.load_seconds(bytes)), 0, back, 0, 0});
  }
  const auto need = [&](const Load& load) {
    const Gap& gap = liveness_.gap(load.unit);
    const int close = gap.close - turn(gap);
    return std::tuple(clock_.start(close), close, rank_[gap.tensor], liveness_.piece_of(load.unit));
  };
  std::sort(loads_.begin(), loads_.end(), [&](const Load& a, const Load& b) { return need(a) < need(b); });
  Ticks next = kFar;
  for (int round = 0; round < (liveness_.repeats ? 2 : 1); ++round) {
    for (auto load = loads_.rbegin(); load != loads_.rend(); ++load) {
      const Gap& gap = liveness_.gap(load->unit);
      next = std::min(next, clock_.start(gap.close - turn(gap))) - load->length;
      load->latest = next;
    }
    if (next != kFar) next += clock_.period();
  }
}

void Placer::place_loads() {
  if (ended_.empty()) {
    ended_.resize(2 * P());
    for (int p = 0; p < P(); ++p) ended(p - P()) = clock_.all_ended(p) - clock_.period();
  } else {
    for (int p = 0; p < P(); ++p) ended(p - P()) = ended(p) - period_;
  }
  stall_ = 0;
  timed_ = 0;
  Ticks link_free = previous_link_free_;
  for (Load& load : loads_) place(load, &link_free);
  for (; timed_ < P(); ++timed_) ended(timed_) = clock_.all_ended(timed_) + stall_;
  period_ = clock_.period() + stall_;
  previous_link_free_ = link_free - period_;
}

// The earliest anchor behind which the load's bytes fit up to its use.
int Placer::admit(const Load& load, const Gap& gap, std::int64_t bytes) const {
  const int from = from_[load.unit];
  const int fits = lead_ == Lead::kOnDemand
                       ? gap.until
                       : std::max(from, profile_.last_above(from, gap.until, graph_.machine.hbm - bytes) + 1);
  int anchor = std::max<int>(gap.resume, fits - 1);
  while (anchor + 1 < gap.close && liveness_.counts_from(anchor) < fits) ++anchor;
  while (anchor > gap.resume && liveness_.counts_from(anchor) < fits) --anchor;
  return anchor;
}

// With room from the start of its gap to the end it may as well stay.
bool Placer::may_stay(const Load& load, const Gap& gap, std::int64_t bytes) const {
  return gap.open >= 0 && !gap.must_leave && lead_ != Lead::kOnDemand &&
         profile_.max(from_[load.unit], gap.until) + bytes <= graph_.machine.hbm &&
         profile_.max(gap.open + 1, from_[load.unit]) <= graph_.machine.hbm;  // beside pending stores
}

void Placer::place(Load& load, Ticks* link_free) {
  const Gap& gap = liveness_.gap(load.unit);
  if (!result_.evicted[load.unit]) return;
  const std::int64_t bytes = liveness_.unit_bytes(load.unit);
  const int back = turn(gap);  // this use is of this iteration; the gap's axis may begin in the one before
  const int use = gap.close - back;
  for (; timed_ < use; ++timed_) ended(timed_) = clock_.all_ended(timed_) + stall_;
  profile_.add(load.count_from, gap.until, -bytes);
  if (may_stay(load, gap, bytes)) {
    profile_.add(from_[load.unit], gap.until, bytes);
    result_.evicted[load.unit] = 0;
    return;
  }
  int anchor = admit(load, gap, bytes);
  Ticks start = std::max(*link_free, anchor < 0 ? 0 : ended(anchor - back));
  const Ticks stored = store_end_[liveness_.slot(load.unit)];
  if (stored != kNoStore && !liveness_.clean(graph_, result_.evicted, load.unit))
    start =
        std::max(start, stored - (gap.next_turn ? clock_.period() : 0) - (back > 0 ? clock_.period() : 0));
  if (lead_ == Lead::kLate)
    start = std::max(start,
                     load.latest + stall_ - static_cast<Ticks>(kMargin * static_cast<double>(load.length)));
  // It may as well be anchored behind what has ended by then.
  const auto begin = ended_.begin(), end = begin + P() + use;
  const int by_time = static_cast<int>(std::upper_bound(begin, end, start) - begin) - 1 - P() + back;
  int best = liveness_.counts_from(anchor);
  for (int later = std::min(gap.close - 1, by_time); later > anchor && later >= best; --later)
    if (liveness_.counts_from(later) > best) {
      anchor = later;
      best = liveness_.counts_from(later);
    }
  load.anchor = anchor;
  load.count_from = std::min<int>(gap.until, best);
  load.start = start;
  profile_.add(load.count_from, gap.until, bytes);
  *link_free = start + load.length;
  const Ticks due = clock_.start(use) + stall_;
  if (*link_free > due) stall_ += *link_free - due;
}

void Placer::order_loads() {
  for (const Load& load : loads_) {
    if (!result_.evicted[load.unit]) continue;
    const Gap& gap = liveness_.gap(load.unit);
    LoadPlacement placed{load.unit, load.anchor, load.start, true};
    const int turns =
        (turn(gap) - (placed.anchor >= P() ? P() : 0)) / P();  // anchored before its use's iteration
    placed.start += turns * period_;
    result_.loads.push_back(placed);
  }
  std::stable_sort(result_.loads.begin(), result_.loads.end(),
                   [](const LoadPlacement& a, const LoadPlacement& b) { return a.start < b.start; });
}

// Stores of units that all turned out to have room.
void Placer::drop_idle_stores() {
  std::vector<char> used(liveness_.slots);
  for (int u = 0; u < liveness_.units(); ++u)
    if (result_.evicted[u]) used[liveness_.slot(u)] = 1;
  std::erase_if(result_.stores, [&](const StorePlacement& store) { return !used[store.slot]; });
}

}  // namespace

Placements place_transfers(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                           const std::vector<std::int32_t>& rank, const EvictionLedger& ledger, Lead lead) {
  return Placer(graph, liveness, clock, rank, ledger, lead).run();
}

std::optional<Replayed> place_by_replay(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                                        const StepClock& ideal, const std::vector<std::int32_t>& rank,
                                        const EvictionLedger& ledger, bool firm,
                                        const std::vector<Eviction>* guided) {
  return Placer(graph, liveness, clock, rank, ledger, Lead::kEager).replay(ideal, firm, guided);
}

}  // namespace hyperoffload
