// Puts stores and loads of the chosen evictions into their queues, and says behind which position each
// may start.
//
// Stores run as early as their link lets them, most urgent first. Loads run in the order in which they
// are needed, each admitted at the first position from which HBM, with the bytes of pending stores,
// has room for it up to its use; kLate waits longer, until the last moment (less a margin) at which this
// load and all behind it still come in time; kOnDemand loads only when the reader is next. Whatever isn't
// placed yet counts as the ledger booked it. A load is charged to HBM from the position behind its anchor,
// which is what makes a plan free of deadlock: nothing that may start early can take the room of an op before
// its use. A unit that turns out to have room all the time is dropped. A repeated body is placed twice, so
// that the second round finds the link as the first one left it. O((positions + units) log). Weakness: a wait
// for room is not foreseen; the walk tells.
#pragma once

#include <optional>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "planner/analysis/liveness.h"
#include "planner/cost/step_clock.h"
#include "planner/ledger/eviction_ledger.h"
#include "planner/passes/fill_forward.h"

namespace hyperoffload {

enum class Lead { kLate, kEager, kOnDemand };

struct StorePlacement {
  std::int32_t slot;    // (version, piece)
  std::int32_t unit;    // the first unit that needs it
  std::int32_t anchor;  // position it stands behind; -1: the iteration's start
  Ticks start, end;     // from the start of the iteration of the version's write
  bool joined = true;   // may move together with the piece before it
};

struct LoadPlacement {
  std::int32_t unit;
  std::int32_t anchor;  // position it stands behind on the gap's axis; -1: the first iteration's start
  Ticks start;          // from the start of the iteration the anchor is in
  bool joined = true;   // may move together with the piece before it
};

struct Placements {
  std::vector<char> evicted;           // by unit: what is left of the choice
  std::vector<StorePlacement> stores;  // in queue order
  std::vector<LoadPlacement> loads;    // in queue order of the body
};

Placements place_transfers(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                           const std::vector<std::int32_t>& rank, const EvictionLedger& ledger, Lead lead);

// The same by an event replay (replay_placement.h) on the ops' own times; `clock` is what is expected. `guided`: stores in
// the order in which these leave, and each load when it says.
struct Replayed;
std::optional<Replayed> place_by_replay(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                                        const StepClock& ideal, const std::vector<std::int32_t>& rank,
                                        const EvictionLedger& ledger, bool firm = false,
                                        const std::vector<Eviction>* guided = nullptr);

}  // namespace hyperoffload
