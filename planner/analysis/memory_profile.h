// Bytes by position, with range add, range maximum and search for where a limit is exceeded.
//
// Positions stand in program order: 0 is the iteration's start (its inputs), s + 1 is op s. Ranges are
// half-open. In a repeated body positions go on past the end: position P + p is p of the next
// iteration, so a range may wrap (but not cover a position twice). Exact int64.
// A segment tree whose inner nodes keep what is added to all of their leaves, so that nothing is ever pushed down;
// add and max climb it from the leaves beside the range, all in O(log positions).
#pragma once

#include <cstdint>
#include <vector>

namespace hyperoffload {

class MemoryProfile {
 public:
  explicit MemoryProfile(const std::vector<std::int64_t>& bytes);

  int positions() const { return count_; }
  void add(int from, int to, std::int64_t bytes);
  std::int64_t max(int from, int to) const;  // of an empty range: the lowest int64
  std::int64_t at(int position) const;
  // The last position in [from, to) with more than `limit` bytes; from - 1 if there is none.
  int last_above(int from, int to, std::int64_t limit) const;

 private:
  struct Node {
    std::int64_t max, add;  // the highest of its leaves, with what was added to it and below; to all of its leaves
  };
  void add_within(int from, int to, std::int64_t bytes);
  std::int64_t max_within(int from, int to) const;
  int last_above(int node, int lo, int hi, int from, int to, std::int64_t limit) const;

  int count_;
  int size_ = 1;             // leaves, a power of two: one before the positions and one behind
  std::vector<Node> nodes_;  // the root is 1; position p is size_ + 1 + p
};

}  // namespace hyperoffload
