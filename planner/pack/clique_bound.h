// A lower limit on the height of any packing: pieces of which any two are there at once, some time or other.
//
// Each such pair lies apart, so all of them lie side by side, though not all may be there at any one time: items that
// come and go more than once (iterations that repeat, two orders of events) overlap like arcs of a circle, and three arcs
// can cover it without a point in common. The most bytes alive at one time is the same limit for one such set only.
//
// The heaviest set is looked for by tabu search from the fullest instants: the piece that gains most joins, those that
// it doesn't meet leave, and don't return for some moves. Any set found is a proof; that there is no heavier one isn't.
// O(starts x moves x pieces), about 0.1 s for 2,000; memory (pieces + instants) x pieces / 8 bytes. Beyond kMostPieces: the live peak.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"

namespace hyperoffload {

std::int64_t clique_bound(const std::vector<PackItem>& items);

}  // namespace hyperoffload
