// For tests and benchmarks of static addresses: published instances, and a validator that shares nothing
// with the packer.
#pragma once

#include <string>
#include <vector>

#include "planner/pack/pack.h"
#include "test/support/rng.h"

namespace hyperoffload {

// `id,lower,upper,size` a line behind a header line, as MiniMalloc publishes its instances.
std::vector<PackItem> read_minimalloc(const std::string& path);

// Random boxes, and at each instant one more that lives only then and fills it up to the peak: where none can
// lie elsewhere than exactly on another, there may be no packing as low as the peak.
std::vector<PackItem> random_full(Rng& rng, int count, int instants, int largest);

// One sentence on the first two items that overlap, one below 0 or one above `height`; empty: none do.
// Every pair of rectangles is looked at, O(n^2).
std::string packing_fault(const std::vector<PackItem>& items, const std::vector<std::int64_t>& offsets,
                          std::int64_t height);

}  // namespace hyperoffload
