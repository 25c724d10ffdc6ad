#include "planner/passes/cancel_redundant.h"

#include <algorithm>

namespace hyperoffload {
namespace {

// Whether other gaps of an unwritten version count on the pool copy the tensor started with.
bool others_count_on_it(const Liveness& liveness, const Gap& initial, const EvictionLedger& ledger) {
  const Version& version = liveness.versions[initial.version];
  for (int g = version.first_gap + 1; g < version.first_gap + version.gaps; ++g)
    for (int k = 0; k < liveness.pieces[initial.tensor]; ++k)
      if (ledger.evicted(liveness.gaps[g].first_unit + k)) return true;
  return false;
}

}  // namespace

void cancel_redundant(const FlatGraph& graph, const Liveness& liveness, EvictionLedger& ledger) {
  const std::vector<std::int32_t> history = ledger.history();
  for (auto it = history.rbegin(); it != history.rend(); ++it) {
    const int unit = *it;
    if (!ledger.evicted(unit)) continue;
    const Gap& gap = liveness.gaps[liveness.gap_of_unit[unit]];
    // What starts in the pool is a matter of the whole tensor.
    const bool whole = gap.open < 0;
    const int first = whole ? gap.first_unit : unit;
    const int count = whole ? liveness.pieces[gap.tensor] : 1;
    if (gap.must_leave) continue;
    if (whole && (graph.bound_to_pool[gap.tensor] || others_count_on_it(liveness, gap, ledger))) continue;
    int from = ledger.freed_from(first), to = ledger.freed_to(first);
    std::int64_t bytes = 0;
    for (int u = first; u < first + count; ++u) {
      from = std::min(from, ledger.freed_from(u));
      to = std::max(to, ledger.freed_to(u));
      bytes += liveness.piece_bytes(gap.tensor, liveness.piece_of(u));
    }
    if (ledger.bytes_over(from, to) + bytes > graph.machine.hbm) continue;
    for (int u = first; u < first + count; ++u) ledger.restore(u);
  }
}

}  // namespace hyperoffload
