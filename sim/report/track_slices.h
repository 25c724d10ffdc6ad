// Slices of one track of a timeline, in whole picoseconds, laid out so that no viewer drops any.
//
// On a track, slices must nest or be disjoint; what really overlaps goes to a further lane. Ends
// that reach into the next slice by rounding only are clipped. Viewers read `ts` and `dur` apart, as
// doubles in us, and some turn both into whole ns (cut or rounded), so that a slice ending where the
// next begins may reach into it by 1 ns and be dropped: such a slice is drawn up to 1 ns shorter.
// Starts are always exact. O(slices x lanes).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/units.h"

namespace hyperoffload {

using Picoseconds = std::int64_t;

// Rounded; up to 106 days, later times stand at that end.
Picoseconds picoseconds(Seconds time);

struct Slice {
  Picoseconds from = 0, to = 0;
  std::int32_t kind = 0;   // the caller's
  std::int32_t index = 0;  // the caller's
};

// Whether a viewer that reads a slice [from, from + length) sees it end by `next`; some count time from the
// track's first slice, `origin`.
bool ends_in_every_viewer(Picoseconds from, Picoseconds length, Picoseconds next, Picoseconds origin = 0);

// Sorts by start (stable) and distributes over as few lanes as the overlaps take, at least one.
std::vector<std::vector<Slice>> lay_out(std::vector<Slice> slices);

}  // namespace hyperoffload
