// Static addresses: where in one arena each item lies, so that no two that exist at once overlap.
//
// An item is one or more rectangles: bytes [offset, offset + size) of the item, taken during
// [lower, upper). All rectangles of an item move together; those of one item never meet. Time is any
// order of events (int64), bytes are int64, all ranges are half-open. No packing is lower than `peak`, the most
// bytes alive at one time.
//
// How: items alive all the time go to the bottom, which costs nothing. The rest is placed item by item
// where it fits (first_fit.h) under several orders, then again with what stood too high moved to the
// front. Where that stays above the peak, clique_bound.h says what no packing is lower than; then
// floor_search.h looks for a packing of that height, or of a height in between, if the instance is small, and
// ejection.h for ever lower ones, of any size. Effort is bounded by
// counts, never by a clock: the same items give the same offsets. O(orders x n x k log k) with k items alive beside
// one, and at most `search_steps` steps and `scans` of the searches.
//
// Weakness: where hundreds of items of sizes that don't divide each other fill the peak most of the time, a packing
// some per cent above it is what is found.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace hyperoffload {

struct PackRect {
  std::int64_t lower = 0, upper = 0;  // when
  std::int64_t offset = 0;            // within the item
  std::int64_t size = 0;
};

struct PackItem {
  std::vector<PackRect> rects;
};

struct PackOptions {
  // Pairs of rectangles that first fits may look at (some tenths of a second); one pass is always made.
  std::int64_t fit_pairs = 10'000'000;
  // Nodes of the search over all heights, each counted with all items of all its sections; 0: no search.
  std::int64_t search_steps = 300'000'000;
  std::int64_t scans = 400'000'000;  // of ejection.h (about a second); 0: none
  std::int64_t enough = 0;  // a height that will do, where the peak is lower: nothing below it is looked for
  std::int64_t most = std::numeric_limits<std::int64_t>::max();  // a height that is of no use if none as low is found
};

struct Packing {
  std::vector<std::int64_t> offsets;  // by item: where its byte 0 lies
  std::int64_t height = 0;
  std::int64_t peak = 0;               // most bytes alive at one time: no packing is lower
  std::int64_t proven = 0;             // no packing is lower: the peak, or more (clique_bound.h)
  std::string method;                  // what found it: "first fit by area", "search", ...
  std::int64_t first_fit_by_size = 0;  // the height that the simplest rule reaches, to compare with
  std::int64_t nodes = 0;              // of the search
};

Packing pack(const std::vector<PackItem>& items, const PackOptions& options = {});

// The most bytes alive at one time. O(n log n).
std::int64_t live_peak(const std::vector<PackItem>& items);

}  // namespace hyperoffload
