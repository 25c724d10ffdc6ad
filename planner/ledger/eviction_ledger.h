// What a set of evictions takes and gives on a guide timeline: freed bytes by position, booked time on
// both directions of the link. evict() books all or nothing; restore() is its exact inverse.
//
// A unit that leaves in its gap is stored after its version's write, as early as the link allows
// (unless a valid pool copy exists), gives its bytes back from the first position that starts after
// both the store and the access that opens the gap, and is loaded as late as it can be hidden; its
// bytes count again from where a load behind the last position that has ended by then counts. Pool bytes
// are a hard limit, too.
// Positions and gaps: analysis/liveness.h. O(log) an operation.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "planner/analysis/liveness.h"
#include "planner/analysis/memory_profile.h"
#include "planner/cost/step_clock.h"
#include "planner/ledger/link_ledger.h"

namespace hyperoffload {

enum class Verdict {
  kDone,
  kStoreLate,  // the store can't end before the position asked for
  kLoadLate,   // the load can't be hidden any more
  kUseless,    // frees nothing there
  kNoPool,     // the pool has no room for it
};

class EvictionLedger {
 public:
  EvictionLedger(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock);

  // When its load would start at the latest to be hidden; before all time if it can't be.
  Ticks reload_start(int unit, int position) const;
  // Lets the unit leave so that `position` (inside its gap, on the gap's axis) is freed.
  Verdict evict(int unit, int position);
  // The same, whatever it takes: who waits for store or load is the walk's business.
  void evict_exposed(int unit, int position);
  // Where an op in the pool makes it leave (Gap::must_leave).
  void evict_forced(int unit);
  // All the gap can free, whoever waits: stored before, loaded when its reader is next.
  void evict_on_demand(int unit);
  // Puts off the load of an evicted unit that would be back before `position`, which frees that, too.
  void postpone(int unit, int position);
  // Lets `position` wait for the store of an evicted unit that would be given back only later.
  void hurry(int unit, int position);
  bool pool_has_room(int unit) const;
  // Ticks the op at `position` and the reader would wait then.
  Ticks exposed(int unit, int position) const;
  void restore(int unit);

  bool evicted(int unit) const { return units_[unit].evicted; }
  const std::vector<char>& evicted_units() const { return evicted_; }
  bool clean(int unit) const { return liveness_.clean(graph_, evicted_, unit); }
  Ticks store_end(int unit) const;  // if it were stored now; of the version's store if there is one
  std::int64_t bytes_at(int position) const { return profile_.at(position); }
  std::int64_t bytes_over(int from, int to) const { return profile_.max(from, to); }
  // Positions the unit freed, on its gap's axis.
  int freed_from(int unit) const { return units_[unit].from; }
  int freed_to(int unit) const { return units_[unit].to; }
  bool idle() const { return reads_.busy().empty() && writes_.busy().empty(); }
  // Units in the order in which they were evicted; those since restored still stand in it.
  const std::vector<std::int32_t>& history() const { return history_; }

 private:
  int first_anchor(const Gap& gap, int position) const;
  struct Unit {
    bool evicted = false;
    int from = 0, to = 0;
    Booking load;
  };
  struct Store {
    int users = 0;
    bool booked = false;
    Booking booking;
  };
  const Gap& gap(int unit) const { return liveness_.gap(unit); }
  // As if each piece were an allocation: with rounding up to a multiple what it takes at most, with powers
  // of two about that (adjacent pieces that move together are one); the plan checker counts.
  std::int64_t pool_bytes(int unit) const {
    return graph_.machine.pool_bytes(liveness_.unit_bytes(unit));
  }
  Ticks load_ticks(int unit) const {
    return clock_.ticks(graph_.machine.load_seconds(liveness_.unit_bytes(unit)));
  }
  Ticks store_ticks(int unit) const {
    return clock_.ticks(graph_.machine.store_seconds(liveness_.unit_bytes(unit)));
  }
  Ticks release_of_store(int unit) const;
  Ticks turn(const Gap& g) const { return g.next_turn ? clock_.period() : 0; }
  TickSpan pool_span(int unit) const;  // positions
  void use_pool(int unit, int users);
  int freed_from(const Gap& g, Ticks store_end) const;
  Booking book_exposed(int unit, int position, int* count_from);
  void free(int from, int to, std::int64_t bytes);
  void commit(int unit, int from, int to, Booking load);

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& clock_;
  MemoryProfile profile_, pool_;
  bool pool_is_ample_ = false;             // it holds everything at once
  std::vector<std::int32_t> first_piece_;  // by tensor
  std::vector<std::int32_t> pool_users_;   // by tensor's piece: evicted units
  LinkLedger reads_, writes_;
  std::vector<Unit> units_;
  std::vector<Store> stores_;  // by slot
  std::vector<char> evicted_;
  std::vector<std::int32_t> history_;
};

}  // namespace hyperoffload
