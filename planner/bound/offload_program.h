// The linear program of one engine's view (lp_bound.h says why it bounds): which of its positions are boundaries,
// what each slot holds, and which stays make a unit. O(ops + gaps log).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "planner/bound/engine_view.h"
#include "planner/bound/offload_lp.h"

namespace hyperoffload {

struct ProgramOptions {
  double time_scale = 1;
  int boundaries = 400;  // at most; all positions of a short trace
  bool circle = false;
  bool any_placement = false;  // as if nothing were bound to start in the pool
  bool starts_apart = false;   // a unit whose start is open is one tensor
  // What may start in the pool and has more gaps than this counts as having a copy there, whose gaps are units of
  // their own: that asks for less, so it is a bound still, and much faster.
  int most_gaps = std::numeric_limits<int>::max();
};

struct OffloadProgram {
  OffloadProgram(const FlatGraph& graph, const EngineView& view, const std::vector<std::int64_t>& excess,
                 const ProgramOptions& options);

  struct Member {  // of a unit: a tensor and its gaps, in the unit's order
    int tensor;
    std::vector<IdleGap> gaps;
  };
  OffloadLp lp;
  std::vector<int> positions;                 // the boundaries
  std::vector<std::vector<Member>> members;  // by unit

  // No unit has more gaps than one: what then is solved fast on many boundaries, too.
  bool plain() const {
    return std::all_of(lp.units.begin(), lp.units.end(), [](const LpUnit& unit) { return unit.gaps.size() == 1; });
  }

 private:
  // The first slot that ends at the position or behind it; that ends behind it.
  int slot_to(int position) const { return slot_behind(position - 1); }
  int slot_behind(int position) const {
    const bool next = turn_ > 0 && position + 1 >= turn_;
    const auto at = std::upper_bound(positions.begin(), positions.end(), position - (next ? turn_ : 0));
    return static_cast<int>(at - positions.begin() + (next ? positions.size() : 0));
  }
  void choose_boundaries(const std::vector<std::int64_t>& excess, int limit);
  void add_slots(const FlatGraph& graph, const EngineView& view);
  void add_units(const FlatGraph& graph, const EngineView& view, const ProgramOptions& options);

  int turn_ = 0;  // positions from here on are those of the next turn of a circle
};

}  // namespace hyperoffload
