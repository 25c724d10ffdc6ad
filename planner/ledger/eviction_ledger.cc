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
      reads_(liveness.repeats ? clock.period() : 0),
      writes_(liveness.repeats ? clock.period() : 0),
      units_(liveness.units()),
      stores_(liveness.slots),
      evicted_(liveness.units()) {}

// Inputs are taken at position 0; behind the first op they surely are there.
Ticks EvictionLedger::release_of_store(int unit) const {
  const int written = liveness_.versions[gap(unit).version].written;
  return written < 0 ? 0 : clock_.end(std::max(written, 1));
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

// Bytes of a load that starts when all positions before `count_from` have ended count from there.
int EvictionLedger::reload_position(int count_from) const {
  return count_from % liveness_.positions == 1 ? count_from - 1 : count_from;
}

Verdict EvictionLedger::evict(int unit, int position) {
  const Gap& g = gap(unit);
  if (position >= liveness_.freed_until(g)) return Verdict::kUseless;
  const int from = freed_from(g, store_end(unit));
  if (from > position) return Verdict::kStoreLate;
  if (!g.loads) {
    commit(unit, from, g.close, {});
    return Verdict::kDone;
  }
  const int last = position % liveness_.positions == 0 ? position + 1 : position;
  const Ticks length = load_ticks(unit);
  auto load = reads_.book_latest(clock_.all_ended(last), clock_.start(g.close), length);
  if (!load) return Verdict::kLoadLate;
  const int to = reload_position(std::min(g.close, clock_.last_end_by(load->start) + 1));
  if (to <= position) {
    reads_.cancel(*load);
    return Verdict::kLoadLate;
  }
  commit(unit, from, to, std::move(*load));
  return Verdict::kDone;
}

Ticks EvictionLedger::exposed(int unit, int position) const {
  const Gap& g = gap(unit);
  Ticks sum =
      units_[unit].evicted ? 0 : std::max<Ticks>(0, store_end(unit) - turn(g) - clock_.start(position));
  if (g.loads) {
    const Ticks length = load_ticks(unit);
    sum += length - reads_.free(clock_.all_ended(position), clock_.start(g.close), length);
  }
  return sum;
}

// Books what link time there is behind `position`; the rest of the load is exposed.
Booking EvictionLedger::book_exposed(int unit, int position, int* count_from) {
  const Gap& g = gap(unit);
  const Ticks release = clock_.all_ended(position), deadline = clock_.start(g.close);
  auto load = reads_.book_latest(release, deadline, reads_.free(release, deadline, load_ticks(unit)));
  const int by_time = load && !load->parts.empty() ? clock_.last_end_by(load->start) + 1 : 0;
  *count_from = std::max(position + 1, reload_position(std::min(g.close, by_time)));
  return load ? std::move(*load) : Booking{};
}

void EvictionLedger::evict_exposed(int unit, int position) {
  const Gap& g = gap(unit);
  const int from = std::min(freed_from(g, store_end(unit)), position);
  if (!g.loads) return commit(unit, from, g.close, {});
  int to = 0;
  Booking load = book_exposed(unit, position, &to);
  commit(unit, from, to, std::move(load));
}

void EvictionLedger::postpone(int unit, int position) {
  Unit& u = units_[unit];
  HYPER_CHECK(u.evicted && u.to <= position, "only a load that comes too early can be put off");
  reads_.cancel(u.load);
  const int before = u.to;
  u.load = book_exposed(unit, position, &u.to);
  profile_.add(before, u.to, -liveness_.unit_bytes(unit));
}

void EvictionLedger::commit(int unit, int from, int to, Booking load) {
  const Gap& g = gap(unit);
  const std::int64_t bytes = liveness_.unit_bytes(unit);
  HYPER_CHECK(!units_[unit].evicted && from < to && from > g.open && to <= g.close,
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
  units_[unit] = {true, from, to, std::move(load)};
  evicted_[unit] = 1;
  history_.push_back(unit);
  profile_.add(from, to, -bytes);
}

void EvictionLedger::restore(int unit) {
  Unit& u = units_[unit];
  HYPER_CHECK(u.evicted, "restoring what was not evicted");
  profile_.add(u.from, u.to, liveness_.unit_bytes(unit));
  reads_.cancel(u.load);
  if (!clean(unit)) {
    Store& store = stores_[liveness_.slot(unit)];
    if (--store.users == 0 && store.booked) writes_.cancel(store.booking);
  }
  u = {};
  evicted_[unit] = 0;
}

}  // namespace hyperoffload
