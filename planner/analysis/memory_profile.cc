#include "planner/analysis/memory_profile.h"

#include <algorithm>
#include <limits>

namespace hyperoffload {
namespace {
constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
}

MemoryProfile::MemoryProfile(const std::vector<std::int64_t>& bytes)
    : count_(static_cast<int>(bytes.size())) {
  while (size_ < count_) size_ *= 2;
  max_.assign(2 * size_, 0);
  add_.assign(2 * size_, 0);
  std::copy(bytes.begin(), bytes.end(), max_.begin() + size_);
  for (int node = size_ - 1; node >= 1; --node) max_[node] = std::max(max_[2 * node], max_[2 * node + 1]);
}

void MemoryProfile::add(int from, int to, std::int64_t bytes) {
  if (from >= to) return;
  if (from >= count_) return add(1, 0, size_, from - count_, to - count_, bytes);
  add(1, 0, size_, from, std::min(to, count_), bytes);
  if (to > count_) add(1, 0, size_, 0, to - count_, bytes);
}

std::int64_t MemoryProfile::max(int from, int to) const {
  if (from >= to) return kLowest;
  if (from >= count_) return max(1, 0, size_, from - count_, to - count_);
  const std::int64_t here = max(1, 0, size_, from, std::min(to, count_));
  return to > count_ ? std::max(here, max(1, 0, size_, 0, to - count_)) : here;
}

int MemoryProfile::last_above(int from, int to, std::int64_t limit) const {
  if (from >= to) return from - 1;
  if (to > count_) {
    const int begin = std::max(from - count_, 0);
    const int found = last_above(1, 0, size_, begin, to - count_, limit);
    if (found >= 0) return found + count_;
    if (from >= count_) return from - 1;
    to = count_;
  }
  const int found = last_above(1, 0, size_, from, to, limit);
  return found >= 0 ? found : from - 1;
}

void MemoryProfile::add(int node, int lo, int hi, int from, int to, std::int64_t bytes) {
  if (from <= lo && hi <= to) {
    max_[node] += bytes;
    add_[node] += bytes;
    return;
  }
  const int mid = (lo + hi) / 2;
  if (from < mid) add(2 * node, lo, mid, from, to, bytes);
  if (mid < to) add(2 * node + 1, mid, hi, from, to, bytes);
  max_[node] = std::max(max_[2 * node], max_[2 * node + 1]) + add_[node];
}

std::int64_t MemoryProfile::max(int node, int lo, int hi, int from, int to) const {
  if (from <= lo && hi <= to) return max_[node];
  const int mid = (lo + hi) / 2;
  std::int64_t best = kLowest;
  if (from < mid) best = max(2 * node, lo, mid, from, to);
  if (mid < to) best = std::max(best, max(2 * node + 1, mid, hi, from, to));
  return best + add_[node];
}

int MemoryProfile::last_above(int node, int lo, int hi, int from, int to, std::int64_t limit) const {
  if (to <= lo || hi <= from || max_[node] <= limit) return -1;
  if (hi - lo == 1) return lo;
  const int mid = (lo + hi) / 2;
  const int right = last_above(2 * node + 1, mid, hi, from, to, limit - add_[node]);
  return right >= 0 ? right : last_above(2 * node, lo, mid, from, to, limit - add_[node]);
}

}  // namespace hyperoffload
