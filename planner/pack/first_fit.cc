#include "planner/pack/first_fit.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace hyperoffload {

const char* to_string(FitOrder order) {
  switch (order) {
    case FitOrder::kSize:
      return "size";
    case FitOrder::kArea:
      return "area";
    case FitOrder::kLifetime:
      return "lifetime";
    case FitOrder::kStart:
      return "start";
  }
  return "";
}

FirstFit::FirstFit(const std::vector<PackItem>& items) : items_(items) {
  std::vector<std::int64_t> instants;
  for (const PackItem& item : items)
    for (const PackRect& r : item.rects) instants.insert(instants.end(), {r.lower, r.upper});
  std::sort(instants.begin(), instants.end());
  instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
  const auto slot = [&](std::int64_t at) {
    return static_cast<int>(std::lower_bound(instants.begin(), instants.end(), at) - instants.begin());
  };
  for (const PackItem& item : items) {
    slots_.emplace_back();
    std::int64_t high = 0;
    for (const PackRect& r : item.rects) {
      slots_.back().push_back({slot(r.lower), slot(r.upper)});
      high = std::max(high, r.offset + r.size);
    }
    size_.push_back(high);
  }
  while (width_ < static_cast<int>(instants.size())) width_ *= 2;
  cover_.resize(static_cast<std::size_t>(2 * width_));
  begin_.resize(instants.size() + 1);
}

std::vector<int> FirstFit::order(FitOrder by) const {
  using Key = std::tuple<double, double, double>;
  std::vector<Key> keys;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    double area = 0, life = 0, start = std::numeric_limits<double>::max();
    for (const PackRect& r : items_[i].rects) {
      area += static_cast<double>(r.upper - r.lower) * static_cast<double>(r.size);
      start = std::min(start, static_cast<double>(r.lower));
    }
    const auto size = static_cast<double>(size_[i]);
    life = size > 0 ? area / size : 0;
    keys.push_back(by == FitOrder::kSize       ? Key{size, life, -start}
                   : by == FitOrder::kArea     ? Key{area, size, -start}
                   : by == FitOrder::kLifetime ? Key{life, size, -start}
                                               : Key{-start, size, life});
  }
  std::vector<int> order(items_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });
  return order;
}

FirstFit::Result FirstFit::place(const std::vector<int>& order, bool best_fit) {
  for (auto& list : cover_) list.clear();
  for (auto& list : begin_) list.clear();
  Result result;
  result.offsets.resize(items_.size());
  for (int i : order) {
    const std::vector<PackRect>& rects = items_[i].rects;
    barred_.clear();
    for (std::size_t r = 0; r < rects.size(); ++r)
      if (rects[r].size > 0) meet(slots_[i][r], rects[r].offset, rects[r].size);
    const std::int64_t base = choose(best_fit);
    result.offsets[i] = base;
    for (std::size_t r = 0; r < rects.size(); ++r) {
      if (rects[r].size == 0) continue;
      const std::int64_t bottom = base + rects[r].offset;
      put(slots_[i][r], {bottom, bottom + rects[r].size});
      result.height = std::max(result.height, bottom + rects[r].size);
    }
  }
  return result;
}

// Bars the bases at which the rectangle would overlap what is placed in its time.
void FirstFit::meet(const Slots& slots, std::int64_t offset, std::int64_t size) {
  const auto bar = [&](const std::vector<Placed>& list) {
    pairs_ += static_cast<std::int64_t>(list.size());
    for (const Placed& p : list) barred_.emplace_back(p.bottom - offset - size, p.top - offset);
  };
  for (int node = width_ + slots.lower; node > 0; node /= 2) bar(cover_[node]);
  for (int at = slots.lower + 1; at < slots.upper; ++at) bar(begin_[at]);
}

std::int64_t FirstFit::choose(bool best_fit) {
  std::sort(barred_.begin(), barred_.end());
  std::int64_t base = 0, tightest = -1, spare = std::numeric_limits<std::int64_t>::max();
  for (const auto& [from, to] : barred_) {
    if (from >= base) {  // [base, from] is free
      if (!best_fit) return base;
      if (from - base < spare) {
        spare = from - base;
        tightest = base;
      }
    }
    base = std::max(base, to);
  }
  return tightest >= 0 ? tightest : base;
}

void FirstFit::put(const Slots& slots, Placed placed) {
  begin_[slots.lower].push_back(placed);
  int low = width_ + slots.lower, high = width_ + slots.upper;
  for (; low < high; low /= 2, high /= 2) {
    if (low % 2) cover_[low++].push_back(placed);
    if (high % 2) cover_[--high].push_back(placed);
  }
}

std::vector<int> FirstFit::blame(const std::vector<int>& order, const Result& result,
                                 std::int64_t target) const {
  std::vector<int> next = order;
  std::stable_partition(next.begin(), next.end(), [&](int i) {
    return std::any_of(items_[i].rects.begin(), items_[i].rects.end(),
                       [&](const PackRect& r) { return result.offsets[i] + r.offset + r.size > target; });
  });
  return next;
}

}  // namespace hyperoffload
