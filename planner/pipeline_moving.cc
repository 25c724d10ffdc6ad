// The step of the search that lets whole tensors leave, and their parts come and go one by one.
#include <algorithm>

#include "planner/pipeline_search.h"

namespace hyperoffload {

// A tensor that comes in pieces needs room for each only when that starts, and one that leaves gives it back as each is
// stored. What leaves is what the best plan of whole tensors moves.
void PlanSearch::move_in_pieces() {
  if (!whole_) return;
  const Liveness whole(graph_, {options_.iterations > 1, 0});
  for (int parts : {16, 64}) {
    if (good_enough()) return;
    const Liveness cut(graph_, {options_.iterations > 1, piece_size(parts)});
    EvictionLedger ledger(graph_, cut, whole_->clock);
    for (std::size_t g = 0; g < cut.gaps.size(); ++g)
      for (int k = 0; k < cut.pieces[cut.gaps[g].tensor] && whole_->evicted[whole.gaps[g].first_unit]; ++k)
        ledger.evict_on_demand(cut.gaps[g].first_unit + k);
    best_.spend(graph_.ops + cut.units());
    place_replayed(cut, whole_->clock, ledger);
  }
}

}  // namespace hyperoffload
