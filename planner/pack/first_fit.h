// Places items one after another, each at the lowest base where all its rectangles are free.
//
// What is placed is kept by time: a segment tree finds the rectangles that cover an instant, a list an
// instant those that begin at it; together they are the ones that meet a rectangle. Their tops and
// bottoms are then bases the item can't have; the lowest base left is taken (or, with best fit, the one
// in the tightest gap). A pass is O(sum of k log k), k being the rectangles met.
// Weakness: one decision an item, never revised within a pass; blame() gives the order of a
// further pass, with the items that reach above a target moved to the front (the idea of squeaky wheel
// optimization, Joslin and Clements, JAIR 1999). Offsets within items must be at least 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/pack/pack.h"

namespace hyperoffload {

enum class FitOrder { kSize, kArea, kLifetime, kStart };
const char* to_string(FitOrder order);

class FirstFit {
 public:
  explicit FirstFit(const std::vector<PackItem>& items);

  struct Result {
    std::vector<std::int64_t> offsets;
    std::int64_t height = 0;
  };
  std::vector<int> order(FitOrder by) const;  // items, in the order in which they are placed
  Result place(const std::vector<int>& order, bool best_fit = false);
  // Items that reach above `target` in `result` first, the others behind them as they stood.
  std::vector<int> blame(const std::vector<int>& order, const Result& result, std::int64_t target) const;
  std::int64_t pairs() const { return pairs_; }  // looked at so far

 private:
  struct Slots {
    int lower, upper;  // instants, compressed
  };
  struct Placed {
    std::int64_t bottom, top;
  };
  void meet(const Slots& slots, std::int64_t offset, std::int64_t size);
  std::int64_t choose(bool best_fit);
  void put(const Slots& slots, Placed placed);

  const std::vector<PackItem>& items_;
  std::vector<std::vector<Slots>> slots_;                      // by item and rectangle
  std::vector<std::int64_t> size_;                             // by item: up to its highest byte
  int width_ = 1;                                              // leaves of the tree
  std::vector<std::vector<Placed>> cover_;                     // by node
  std::vector<std::vector<Placed>> begin_;                     // by instant
  std::vector<std::pair<std::int64_t, std::int64_t>> barred_;  // bases; open ranges
  std::int64_t pairs_ = 0;
};

}  // namespace hyperoffload
