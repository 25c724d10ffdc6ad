// Which units leave HBM: a sweep over the positions that evicts, while a position holds too much, what
// is used again last (Belady), provided its store ends in time and its load still hides.
//
// Each choice books its time on both directions of the link and gives back only the positions it really
// frees. Where nothing qualifies, the cheapest stall among the farthest few is taken. Ties: more bytes,
// then by name, so that the order of tensors in the file doesn't matter.
// Throws InfeasibleError where what must be there exceeds HBM.
// O((positions + units) log). Weakness: greedy, on a timeline that doesn't yet know its own stalls; the
// pipeline runs it on several timelines and lets the walk judge.
#pragma once

#include <vector>

#include "planner/ledger/eviction_ledger.h"
#include "planner/passes/fill_forward.h"

namespace hyperoffload {

// By tensor: its place in the order of names.
std::vector<std::int32_t> rank_by_name(const Graph& graph);

// Without regard to time: what is used again last leaves for all of its gap. With loads placed on demand
// this is the plan that always works, if any does on one engine.
void choose_on_demand(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                      const std::vector<std::int32_t>& rank, EvictionLedger& ledger);

// What starts in HBM has no pool copy. In one cold pass a tensor whose store would be late may start in the pool instead, if
// its first load hides, too.
//
// kFarthestReload takes what can be reloaded last, as the link stands, and of equals what is used first:
// where the link is nearly full, that spaces the loads instead of piling them up before the last uses.
enum class Score { kFarthestUse, kFarthestReload };

// Only `given` ones, whoever waits, and whatever is still too much; and what may leave at no cost.
void take_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock, const std::vector<std::int32_t>& rank,
                    EvictionLedger& ledger, const std::vector<Eviction>& given);

// `given` leave first, whoever waits; the sweep adds what is still too much.
// Returns how many candidates it looked at: the work it took.
std::int64_t choose_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                              const std::vector<std::int32_t>& rank, Score score,
                              EvictionLedger& ledger, const std::vector<Eviction>& given = {});

}  // namespace hyperoffload
