// A row of byte counts: add to a range, ask for the highest of a range. O(log n) each. Ranges are half-open.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/model/units.h"

namespace hyperoffload {

class RangeMax {
 public:
  explicit RangeMax(const std::vector<Bytes>& row) : count_(row.size()), max_(4 * row.size() + 4), add_(max_.size()) {
    if (count_ > 0) build(1, 0, count_, row);
  }

  void add(std::size_t from, std::size_t to, Bytes bytes) { add(1, 0, count_, from, to, bytes); }
  Bytes highest(std::size_t from, std::size_t to) const {
    return from < to ? highest(1, 0, count_, from, to) : Bytes(0);
  }
  Bytes highest() const { return highest(0, count_); }
  // The first place where it is reached.
  std::size_t highest_at() const {
    std::size_t at = 0;
    for (std::size_t i = 1; i < count_; ++i)
      if (highest(i, i + 1) > highest(at, at + 1)) at = i;
    return at;
  }

 private:
  void build(std::size_t node, std::size_t low, std::size_t high, const std::vector<Bytes>& row) {
    if (high - low == 1) {
      max_[node] = row[low];
      return;
    }
    const std::size_t middle = (low + high) / 2;
    build(2 * node, low, middle, row);
    build(2 * node + 1, middle, high, row);
    max_[node] = std::max(max_[2 * node], max_[2 * node + 1]);
  }
  void add(std::size_t node, std::size_t low, std::size_t high, std::size_t from, std::size_t to, Bytes bytes) {
    if (from >= high || to <= low || from >= to) return;
    if (from <= low && high <= to) {
      max_[node] += bytes;
      add_[node] += bytes;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    add(2 * node, low, middle, from, to, bytes);
    add(2 * node + 1, middle, high, from, to, bytes);
    max_[node] = std::max(max_[2 * node], max_[2 * node + 1]) + add_[node];
  }
  Bytes highest(std::size_t node, std::size_t low, std::size_t high, std::size_t from, std::size_t to) const {
    if (from >= high || to <= low) return Bytes(std::numeric_limits<std::int64_t>::min() / 2);  // not in it
    if (from <= low && high <= to) return max_[node];
    const std::size_t middle = (low + high) / 2;
    return std::max(highest(2 * node, low, middle, from, to), highest(2 * node + 1, middle, high, from, to)) +
           add_[node];
  }

  std::size_t count_;
  std::vector<Bytes> max_, add_;  // of a node's range; to be added to all below it
};

}  // namespace hyperoffload
