// Takes evictions back, last chosen first, wherever HBM turns out to have room for the bytes after all:
// an early choice is often made superfluous by later ones. O(evictions log).
#pragma once

#include "planner/ledger/eviction_ledger.h"

namespace hyperoffload {

void cancel_redundant(const FlatGraph& graph, const Liveness& liveness, EvictionLedger& ledger);

}  // namespace hyperoffload
