#include "planner/analysis/memory_profile.h"

#include <algorithm>
#include <limits>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {
constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
}

MemoryProfile::MemoryProfile(const std::vector<std::int64_t>& bytes)
    : count_(static_cast<int>(bytes.size())) {
  while (size_ < count_ + 2) size_ *= 2;
  nodes_.assign(2 * size_, Node{0, 0});
  for (int p = 0; p < count_; ++p) nodes_[size_ + 1 + p].max = bytes[p];
  for (int node = size_ - 1; node >= 1; --node)
    nodes_[node].max = std::max(nodes_[2 * node].max, nodes_[2 * node + 1].max);
}

void MemoryProfile::add(int from, int to, std::int64_t bytes) {
  if (from >= to) return;
  if (from >= count_) return add_within(from - count_, to - count_, bytes);
  add_within(from, std::min(to, count_), bytes);
  if (to > count_) add_within(0, to - count_, bytes);
}

std::int64_t MemoryProfile::max(int from, int to) const {
  if (from >= to) return kLowest;
  if (from >= count_) return max_within(from - count_, to - count_);
  const std::int64_t here = max_within(from, std::min(to, count_));
  return to > count_ ? std::max(here, max_within(0, to - count_)) : here;
}

std::int64_t MemoryProfile::at(int position) const {
  int node = size_ + 1 + (position < count_ ? position : position - count_);
  std::int64_t bytes = nodes_[node].max;
  while (node >>= 1) bytes += nodes_[node].add;
  return bytes;
}

int MemoryProfile::last_above(int from, int to, std::int64_t limit) const {
  if (from >= to) return from - 1;
  if (to > count_) {
    const int begin = std::max(from - count_, 0);
    const int found = last_above(1, -1, size_ - 1, begin, to - count_, limit);
    if (found >= 0) return found + count_;
    if (from >= count_) return from - 1;
    to = count_;
  }
  const int found = last_above(1, -1, size_ - 1, from, to, limit);
  return found >= 0 ? found : from - 1;
}

// From the leaf before the range and the one behind it upwards: what hangs inside between the two paths is covered.
void MemoryProfile::add_within(int from, int to, std::int64_t bytes) {
  HYPER_CHECK(from >= 0 && to <= count_, "range outside the profile");
  const auto cover = [&](int node) {
    nodes_[node].max += bytes;
    nodes_[node].add += bytes;
  };
  const auto gather = [&](int node) {
    nodes_[node].max = std::max(nodes_[2 * node].max, nodes_[2 * node + 1].max) + nodes_[node].add;
  };
  int left = size_ + from, right = size_ + 1 + to;
  while ((left ^ right) != 1) {
    if (left % 2 == 0) cover(left + 1);
    if (right % 2 == 1) cover(right - 1);
    gather(left /= 2);
    gather(right /= 2);
  }
  while (left /= 2) gather(left);
}

std::int64_t MemoryProfile::max_within(int from, int to) const {
  HYPER_CHECK(from >= 0 && to <= count_, "range outside the profile");
  if (to == from + 1) return at(from);
  std::int64_t on_left = kLowest / 2, on_right = kLowest / 2;
  int left = size_ + from, right = size_ + 1 + to;
  while ((left ^ right) != 1) {
    if (left % 2 == 0) on_left = std::max(on_left, nodes_[left + 1].max);
    if (right % 2 == 1) on_right = std::max(on_right, nodes_[right - 1].max);
    on_left += nodes_[left /= 2].add;
    on_right += nodes_[right /= 2].add;
  }
  std::int64_t best = std::max(on_left, on_right);
  while (left /= 2) best += nodes_[left].add;
  return best;
}

int MemoryProfile::last_above(int node, int lo, int hi, int from, int to, std::int64_t limit) const {
  if (to <= lo || hi <= from || nodes_[node].max <= limit) return -1;
  if (hi - lo == 1) return lo;
  const int mid = lo + (hi - lo) / 2;
  const int right = last_above(2 * node + 1, mid, hi, from, to, limit - nodes_[node].add);
  return right >= 0 ? right : last_above(2 * node, lo, mid, from, to, limit - nodes_[node].add);
}

}  // namespace hyperoffload
