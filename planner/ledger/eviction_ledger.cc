#include "planner/ledger/eviction_ledger.h"

#include <algorithm>
#include <limits>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {
constexpr Ticks kNone = std::numeric_limits<Ticks>::min() / 4;  // no store: over since ever
constexpr Ticks kEver = std::numeric_limits<Ticks>::max() / 4;
}  // namespace

EvictionLedger::EvictionLedger(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock)
    : graph_(graph),
      liveness_(liveness),
      clock_(clock),
      profile_(liveness.resident),
      pool_(liveness.pool_resident),
      reads_(liveness.repeats ? clock.period() : 0, clock.period(), clock.positions()),
      writes_(liveness.repeats ? clock.period() : 0, clock.period(), clock.positions()),
      units_(liveness.units()),
      stores_(liveness.slots),
      evicted_(liveness.units()) {
  int pieces = 0;
  for (int t = 0; t < graph.tensors; ++t) {
    first_piece_.push_back(pieces);
    pieces += liveness.pieces[t];
  }
  pool_users_.assign(pieces, 0);
  std::int64_t all = *std::max_element(liveness.pool_resident.begin(), liveness.pool_resident.end());
  for (int t = 0; t < graph.tensors; ++t)  // no piece is larger than the first
    all += liveness.pieces[t] * graph.machine.pool_bytes(liveness.piece_bytes(t, 0));
  pool_is_ample_ = all <= graph.machine.pool;
}

// A piece's pool bytes are its own from its first store on until its tensor dies.
TickSpan EvictionLedger::pool_span(int unit) const {
  const int tensor = gap(unit).tensor;
  if (graph_.persistent[tensor]) return {0, liveness_.positions};
  const Version& version = liveness_.versions[gap(unit).version];
  return {std::max(version.written, 0), graph_.graph->accesses(TensorId(tensor)).back().op.value + 2};
}

bool EvictionLedger::pool_has_room(int unit) const {
  if (pool_is_ample_) return true;
  const int tensor = gap(unit).tensor;
  if (liveness_.pool_touched[tensor] || graph_.bound_to_pool[tensor]) return true;
  if (pool_users_[first_piece_[tensor] + liveness_.piece_of(unit)] > 0) return true;
  const auto [from, to] = pool_span(unit);
  return pool_.max(static_cast<int>(from), static_cast<int>(to)) + pool_bytes(unit) <=
         graph_.machine.pool;
}

void EvictionLedger::use_pool(int unit, int users) {
  const int tensor = gap(unit).tensor;
  if (liveness_.pool_touched[tensor] || graph_.bound_to_pool[tensor]) return;
  std::int32_t& count = pool_users_[first_piece_[tensor] + liveness_.piece_of(unit)];
  const bool before = count > 0;
  count += users;
  if (before == (count > 0)) return;
  const auto [from, to] = pool_span(unit);
  pool_.add(static_cast<int>(from), static_cast<int>(to), users * pool_bytes(unit));
}

Ticks EvictionLedger::release_of_store(int unit) const {
  const int written = liveness_.versions[gap(unit).version].written;
  return written < 0 ? 0 : clock_.end(written);
}

Ticks EvictionLedger::store_end(int unit) const {
  if (clean(unit)) return kNone;
  const Store& store = stores_[liveness_.slot(unit)];
  if (store.users > 0) return store.booking.end;
  const Ticks length = store_ticks(unit);
  return writes_.earliest_end(release_of_store(unit), length);
}

int EvictionLedger::freed_from(const Gap& g, Ticks store_end) const {
  if (store_end <= clock_.end(g.open) + turn(g)) return g.open + 1;
  return std::max(g.open + 1, clock_.first_start_from(store_end - turn(g)));
}

// Behind which a load may start that leaves `position` free.
int EvictionLedger::first_anchor(const Gap& g, int position) const {
  return std::max<int>(liveness_.anchor_freeing(position, g.close), g.resume);
}

Ticks EvictionLedger::reload_start(int unit, int position) const {
  const Gap& g = gap(unit);
  const Ticks release = clock_.all_ended(first_anchor(g, position));
  return reads_.latest_start(release, clock_.start(g.close), load_ticks(unit));
}

Verdict EvictionLedger::evict(int unit, int position) {
  const Gap& g = gap(unit);
  if (position >= g.until) return Verdict::kUseless;
  if (!pool_has_room(unit)) return Verdict::kNoPool;
  const int from = freed_from(g, store_end(unit));
  if (from > position) return Verdict::kStoreLate;
  if (!g.loads) {
    commit(unit, from, g.until, {});
    return Verdict::kDone;
  }
  const int first = first_anchor(g, position);
  auto load = reads_.book_latest(clock_.all_ended(first), clock_.start(g.close), load_ticks(unit));
  if (!load) return Verdict::kLoadLate;
  const int anchor = std::max(first, clock_.last_end_by(load->start));
  commit(unit, from, liveness_.latest_count(std::min(anchor, g.close - 1), position - 1), std::move(*load));
  return Verdict::kDone;
}

Ticks EvictionLedger::exposed(int unit, int position) const {
  const Gap& g = gap(unit);
  Ticks sum =
      units_[unit].evicted ? 0 : std::max<Ticks>(0, store_end(unit) - turn(g) - clock_.start(position));
  if (g.loads) {
    const Ticks length = load_ticks(unit);
    sum += length - reads_.free(clock_.all_ended(std::max<int>(position, g.resume)), clock_.start(g.close), length);
  }
  return sum;
}

// Books what link time there is for a load that leaves `position` free. One that can't be hidden counts
// from its use only: whether it can come earlier is for the placement to see, and putting it off bit by
// bit would take as many steps as there are positions.
Booking EvictionLedger::book_exposed(int unit, int position, int* count_from) {
  const Gap& g = gap(unit);
  const int first = first_anchor(g, position);
  const Ticks release = clock_.all_ended(first), deadline = clock_.start(g.close),
              length = load_ticks(unit);
  const Ticks free = reads_.free(release, deadline, length);
  *count_from = g.until;
  if (free == 0) return {};
  auto load = reads_.book_latest(release, deadline, free);
  if (free == length) {
    const int anchor = std::min(g.close - 1, std::max(first, clock_.last_end_by(load->start)));
    *count_from = liveness_.latest_count(anchor, position - 1);
  }
  return std::move(*load);
}

void EvictionLedger::evict_exposed(int unit, int position) {
  const Gap& g = gap(unit);
  const int from = std::min(freed_from(g, store_end(unit)), position);
  if (!g.loads) return commit(unit, from, g.until, {});
  int to = 0;
  Booking load = book_exposed(unit, position, &to);
  commit(unit, from, to, std::move(load));
}

// An op in the pool needs the tensor there, whatever HBM has room for.
void EvictionLedger::evict_forced(int unit) {
  const Gap& g = gap(unit);
  const int from = std::max(g.open + 1, std::min({freed_from(g, store_end(unit)), g.leave_by, g.until - 1}));
  if (!g.loads) return commit(unit, from, g.until, {});
  int to = 0;
  Booking load = book_exposed(unit, std::max(from, std::min(g.resume, g.until - 1)), &to);
  commit(unit, from, to, std::move(load));
}

void EvictionLedger::evict_on_demand(int unit) { commit(unit, gap(unit).open + 1, gap(unit).until, {}); }

void EvictionLedger::postpone(int unit, int position) {
  Unit& u = units_[unit];
  HYPER_CHECK(u.evicted && u.to <= position, "only a load that comes too early can be put off");
  reads_.cancel(u.load);
  const int before = u.to;
  u.load = book_exposed(unit, position, &u.to);
  profile_.add(before, u.to, -liveness_.unit_bytes(unit));
}

void EvictionLedger::hurry(int unit, int position) {
  Unit& u = units_[unit];
  HYPER_CHECK(u.evicted && position > gap(unit).open && position < u.from,
              "only a unit not yet given back can hurry");
  profile_.add(position, u.from, -liveness_.unit_bytes(unit));
  u.from = position;
}

void EvictionLedger::commit(int unit, int from, int to, Booking load) {
  const Gap& g = gap(unit);
  const std::int64_t bytes = liveness_.unit_bytes(unit);
  HYPER_CHECK(!units_[unit].evicted && from > g.open && to <= g.until && (from <= to || g.must_leave),
              "eviction outside its gap");
  if (!clean(unit)) {
    Store& store = stores_[liveness_.slot(unit)];
    if (store.users++ == 0) {
      const Ticks release = release_of_store(unit), length = store_ticks(unit);
      const Ticks deadline = liveness_.repeats ? release + clock_.period() : kEver;
      auto booking = writes_.book_earliest(release, deadline, length);
      store.booked = booking.has_value();
      store.booking = booking ? std::move(*booking) : Booking{release, release + length, {}};
    }
  }
  use_pool(unit, 1);
  units_[unit] = {true, from, to, std::move(load)};
  evicted_[unit] = 1;
  history_.push_back(unit);
  free(from, to, bytes);
}

// A load that can't be anchored late enough is charged to ops before the gap, beside the bytes there.
void EvictionLedger::free(int from, int to, std::int64_t bytes) {
  from <= to ? profile_.add(from, to, -bytes) : profile_.add(to, from, bytes);
}

void EvictionLedger::restore(int unit) {
  Unit& u = units_[unit];
  HYPER_CHECK(u.evicted, "restoring what was not evicted");
  free(u.from, u.to, -liveness_.unit_bytes(unit));
  reads_.cancel(u.load);
  if (!clean(unit)) {
    Store& store = stores_[liveness_.slot(unit)];
    if (--store.users == 0 && store.booked) writes_.cancel(store.booking);
  }
  use_pool(unit, -1);
  u = {};
  evicted_[unit] = 0;
}

}  // namespace hyperoffload
