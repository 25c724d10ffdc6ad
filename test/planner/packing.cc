#include "test/planner/packing.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>

namespace hyperoffload {

std::vector<PackItem> read_minimalloc(const std::string& path) {
  std::ifstream file(path);
  std::vector<PackItem> items;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    long long id, lower, upper, size;
    if (std::sscanf(line.c_str(), "%lld,%lld,%lld,%lld", &id, &lower, &upper, &size) == 4)
      items.push_back({{{lower, upper, 0, size}}});
  }
  return items;
}

std::vector<PackItem> random_full(Rng& rng, int count, int instants, int largest) {
  std::vector<PackItem> items;
  std::vector<std::int64_t> alive(static_cast<std::size_t>(instants));
  for (int i = 0; i < count; ++i) {
    const int first = rng.pick(0, instants - 1), last = rng.pick(first, instants - 1),
              size = rng.pick(1, largest);
    items.push_back({{{first, last + 1, 0, size}}});
    for (int at = first; at <= last; ++at) alive[static_cast<std::size_t>(at)] += size;
  }
  const std::int64_t peak = live_peak(items);
  for (int at = 0; at < instants; ++at)
    if (const std::int64_t rest = peak - alive[static_cast<std::size_t>(at)]; rest > 0)
      items.push_back({{{at, at + 1, 0, rest}}});
  return items;
}

std::string packing_fault(const std::vector<PackItem>& items, const std::vector<std::int64_t>& offsets,
                          std::int64_t height) {
  if (offsets.size() != items.size())
    return fmt::format("{} offsets for {} items", offsets.size(), items.size());
  struct Box {
    std::size_t item;
    std::int64_t lower, upper, bottom, top;
  };
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < items.size(); ++i)
    for (const PackRect& r : items[i].rects)
      boxes.push_back({i, r.lower, r.upper, offsets[i] + r.offset, offsets[i] + r.offset + r.size});
  for (std::size_t a = 0; a < boxes.size(); ++a) {
    if (boxes[a].bottom < 0 || boxes[a].top > height)
      return fmt::format("item {} lies at [{}, {}), outside of {}", boxes[a].item, boxes[a].bottom,
                         boxes[a].top, height);
    for (std::size_t b = 0; b < a; ++b)
      if (boxes[a].lower < boxes[b].upper && boxes[b].lower < boxes[a].upper &&
          boxes[a].bottom < boxes[b].top && boxes[b].bottom < boxes[a].top)
        return fmt::format("items {} and {} overlap", boxes[b].item, boxes[a].item);
  }
  return "";
}

}  // namespace hyperoffload
