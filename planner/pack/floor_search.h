// A depth-first search for a packing of a given height: for small instances that first fits don't solve.
//
// After MiniMalloc (Moffitt, ASPLOS 2023): only canonical packings are looked at, in which every item
// lies at 0 or on another one, built up from the bottom; time falls apart into *sections* (the maximal
// sets of items alive at once), each with a floor and the bytes that have yet to be placed in it; as
// soon as the sum exceeds the height, the branch is dead. A section's floor is at least the least base
// that any of its items can still have; a hole that an unplaced item would fit into is never left; the
// problem is split wherever no unplaced item crosses, and each part solved on its own.
//
// What is ours: a node takes the section with the lowest floor, among equals the one that ended most
// branches so far, and asks who lies on that floor: one of the items that can, or nobody, which raises
// the floor to the next possible base (the least top of what may still come to lie under them). So the
// order of placements that don't meet is fixed, and every unit of height that is given up is charged to
// a section at once. Orders of candidates are tried in turn with few nodes each, what sections learned
// is kept, and the nodes allowed grow: A, G and K of the published instances take 4,000-8,000 nodes.
//
// Items are boxes: all rectangles of one start at offset 0 and have one size; their times may have holes.
// A node is O(items of a section x items beside one) at worst. Complete if `nodes` suffice.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"

namespace hyperoffload {

bool are_boxes(const std::vector<PackItem>& items);

struct FloorSearchResult {
  enum class Verdict { kFound, kImpossible, kOutOfNodes } verdict = Verdict::kOutOfNodes;
  std::vector<std::int64_t> offsets;
  std::int64_t nodes = 0;
};

FloorSearchResult search_floors(const std::vector<PackItem>& items, std::int64_t height, std::int64_t nodes);

}  // namespace hyperoffload
