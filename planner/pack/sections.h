// Items by time, for the search: *sections* are the maximal sets of items alive at once, in order.
//
// Any instant's items are a subset of some section's, so that what fits in every section fits always.
// O(n log n + sum of the sections an item is in, + pairs that meet).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/pack/pack.h"

namespace hyperoffload {

// How many items all sections have together, each section counting its own. O(n log n).
std::int64_t section_entries(const std::vector<PackItem>& items);

struct Sections {
  explicit Sections(const std::vector<PackItem>& items);

  std::vector<std::vector<int>> sections;  // items alive in each
  std::vector<std::int64_t> bytes;         // by section
  std::vector<std::vector<int>> of_item;   // sections an item is in, in order
  std::vector<std::vector<int>> beside;    // by item: those that it meets in time
  std::vector<std::int64_t> size, life;    // by item
  std::vector<int> twin;     // by item: the last one before it of equal size and sections; -1: none
  std::int64_t longest = 1;  // life

  bool is_in(int item, int section) const;
};

}  // namespace hyperoffload
