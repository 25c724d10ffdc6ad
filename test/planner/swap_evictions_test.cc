// The exchange of whole tensors, against all sets there are and against the search without it.
#include "planner/passes/swap_evictions.h"

#include "planner/passes/choose_evictions.h"
#include "planner/passes/place_transfers.h"
#include "planner/pipeline.h"
#include "planner/planner.h"
#include "test/planner/families.h"
#include "test/support/catch.h"

using namespace hyperoffload;

namespace {

std::optional<Replayed> placed(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                               const std::vector<std::int32_t>& rank, const std::vector<char>& evicted) {
  EvictionLedger ledger(graph, liveness, clock);
  for (int u = 0; u < liveness.units(); ++u)
    if (evicted[u]) ledger.evict_on_demand(u);
  for (int p = 0; p < liveness.positions; ++p)
    if (ledger.bytes_at(p) > graph.machine.hbm) return std::nullopt;
  return place_by_replay(graph, liveness, clock, clock, rank, ledger);
}

}  // namespace

TEST_CASE("swap evictions: from the worst set it comes to one as good as the best of all sets") {
  int cases = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    FamilyCase c = family_case(Family::kExperts, seed, 6, 2);
    if (c.repeats) continue;
    c.hardware.hbm_capacity = Bytes(c.peak * 3 / 4);
    const FlatGraph graph(c.graph, c.hardware);
    const Walk ideal = walk_plan(graph, Plan{}, {1, WalkRecord::kLastIteration, true});
    const Liveness liveness(graph, {false, 0});
    const StepClock clock(graph, ideal, 1000);
    const std::vector<std::int32_t> rank = rank_by_name(c.graph);
    const std::vector<char> all(liveness.units(), 1);
    const auto worst = placed(graph, liveness, clock, rank, all);
    if (!worst || liveness.units() > 12) continue;
    Ticks least = worst->clock.period();
    for (unsigned set = 0; set < 1U << liveness.units(); ++set) {
      std::vector<char> evicted(liveness.units());
      for (int u = 0; u < liveness.units(); ++u) evicted[u] = set >> u & 1;
      if (const auto here = placed(graph, liveness, clock, rank, evicted)) least = std::min(least, here->clock.period());
    }
    if (least == worst->clock.period()) continue;
    ++cases;
    CAPTURE(seed, liveness.units());
    const auto found = swap_evictions(graph, liveness, clock, rank, {all, clock, worst->clock.period()}, 2000, 0);
    REQUIRE(found);
    CHECK(found->clock.period() <= least);
  }
  CHECK(cases >= 3);
}

TEST_CASE("swap evictions: whole tensors never stall longer for it, and experts stall less") {
  for (Family family : {Family::kExperts, Family::kSkips, Family::kWeightStream}) {
    double gained = 0;
    for (std::uint64_t seed : {1, 2}) {
      FamilyCase c = family_case(family, seed, 45, 2);
      c.hardware.hbm_capacity = Bytes(c.peak * 6 / 10);
      PlannerOptions options;
      options.iterations = c.repeats ? 10 : 1;
      options.skip = 1U << static_cast<int>(SearchStep::kPieces) | 1U << static_cast<int>(SearchStep::kTranscribe);
      const double with = make_plan(c.graph, c.hardware, options).plan.prediction->iteration.value;
      options.skip |= 1U << static_cast<int>(SearchStep::kSwap);
      const double without = make_plan(c.graph, c.hardware, options).plan.prediction->iteration.value;
      CAPTURE(to_string(family), seed);
      CHECK(with <= without * (1 + 1e-9));
      gained += without - with;
    }
    if (family == Family::kExperts) CHECK(gained > 0);
  }
}
