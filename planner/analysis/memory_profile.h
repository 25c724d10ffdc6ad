// Bytes by position, with range add, range maximum and search for where a limit is exceeded.
//
// Positions stand in program order: 0 is the iteration's start (its inputs), s + 1 is op s. Ranges are
// half-open. In a repeated body positions go on past the end: position P + p is p of the next
// iteration, so a range may wrap (but not cover a position twice). Exact int64.
// A segment tree whose inner nodes keep their pending addition: O(log positions) an operation.
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
  std::int64_t at(int position) const { return max(position, position + 1); }
  // The last position in [from, to) with more than `limit` bytes; from - 1 if there is none.
  int last_above(int from, int to, std::int64_t limit) const;

 private:
  void add(int node, int lo, int hi, int from, int to, std::int64_t bytes);
  std::int64_t max(int node, int lo, int hi, int from, int to) const;
  int last_above(int node, int lo, int hi, int from, int to, std::int64_t limit) const;

  int count_;
  int size_ = 1;                         // leaves, a power of two
  std::vector<std::int64_t> max_, add_;  // by node; the root is 1
};

}  // namespace hyperoffload
