#include "planner/bound/subset_sum.h"

#include <numeric>

namespace hyperoffload {
namespace {
constexpr double kMostWork = 2e7;  // words: about 10 ms
}

std::int64_t SubsetSums::largest_up_to(const std::vector<std::int64_t>& sizes, std::int64_t limit) {
  std::int64_t unit = 0;
  for (std::int64_t size : sizes) unit = std::gcd(unit, size);
  if (limit <= 0 || unit == 0) return 0;
  const std::int64_t most = limit / unit;
  if (static_cast<double>(most) / 64 * static_cast<double>(sizes.size()) > kMostWork) return limit;
  const auto words = static_cast<std::size_t>(most / 64 + 1);
  reached_.assign(words, 0);
  reached_[0] = 1;
  for (std::int64_t size : sizes) {
    const std::int64_t by = size / unit;
    if (by > most) continue;
    const auto skip = static_cast<std::size_t>(by / 64);
    const int shift = static_cast<int>(by % 64);
    for (std::size_t w = words; w-- > skip;) {
      std::uint64_t moved = reached_[w - skip] << shift;
      if (shift > 0 && w > skip) moved |= reached_[w - skip - 1] >> (64 - shift);
      reached_[w] |= moved;
    }
  }
  for (std::int64_t sum = most; sum > 0; --sum)
    if (reached_[static_cast<std::size_t>(sum / 64)] >> (sum % 64) & 1) return sum * unit;
  return 0;
}

}  // namespace hyperoffload
