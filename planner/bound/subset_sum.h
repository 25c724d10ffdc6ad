// The largest sum of some of given sizes that does not exceed a limit, exact where that is affordable.
//
// By a bitset over sums in units of the sizes' greatest common divisor: O(sizes x limit / divisor / 64).
// Where that is too much the limit itself is the answer: never too small.
#pragma once

#include <cstdint>
#include <vector>

namespace hyperoffload {

class SubsetSums {
 public:
  std::int64_t largest_up_to(const std::vector<std::int64_t>& sizes, std::int64_t limit);

 private:
  std::vector<std::uint64_t> reached_;
};

}  // namespace hyperoffload
