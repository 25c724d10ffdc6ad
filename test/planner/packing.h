// For tests and benchmarks of static addresses: published instances, and a validator that shares nothing
// with the packer.
#pragma once

#include <string>
#include <vector>

#include "planner/pack/pack.h"

namespace hyperoffload {

// `id,lower,upper,size` a line behind a header line, as MiniMalloc publishes its instances.
std::vector<PackItem> read_minimalloc(const std::string& path);

// One sentence on the first two items that overlap, one below 0 or one above `height`; empty: none do.
// Every pair of rectangles is looked at, O(n^2).
std::string packing_fault(const std::vector<PackItem>& items, const std::vector<std::int64_t>& offsets,
                          std::int64_t height);

}  // namespace hyperoffload
