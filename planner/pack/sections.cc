#include "planner/pack/sections.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hyperoffload {
namespace {

struct Event {
  std::int64_t at;
  bool begins;
  int item;
  bool operator<(const Event& other) const {  // ends come first
    return at != other.at ? at < other.at : begins != other.begins ? !begins : item < other.item;
  }
};

std::vector<Event> events_of(const std::vector<PackItem>& items) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < items.size(); ++i)
    for (const PackRect& r : items[i].rects) {
      events.push_back({r.lower, true, static_cast<int>(i)});
      events.push_back({r.upper, false, static_cast<int>(i)});
    }
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

std::int64_t section_entries(const std::vector<PackItem>& items) {
  std::int64_t alive = 0, sum = 0;
  bool grown = false;
  for (const Event& e : events_of(items)) {
    if (!e.begins && std::exchange(grown, false)) sum += alive;
    alive += e.begins ? 1 : -1;
    grown = grown || e.begins;
  }
  return sum;
}

// A set is maximal when an end follows a beginning.
Sections::Sections(const std::vector<PackItem>& items) : of_item(items.size()), beside(items.size()) {
  std::vector<int> alive;  // sorted
  bool grown = false;
  for (const Event& e : events_of(items)) {
    if (e.begins) {
      alive.insert(std::lower_bound(alive.begin(), alive.end(), e.item), e.item);
      grown = true;
      continue;
    }
    if (std::exchange(grown, false)) {
      for (int i : alive) of_item[i].push_back(static_cast<int>(sections.size()));
      sections.push_back(alive);
    }
    alive.erase(std::lower_bound(alive.begin(), alive.end(), e.item));
  }
  for (const PackItem& item : items) {
    size.push_back(item.rects.empty() ? 0 : item.rects.front().size);
    life.push_back(0);
    for (const PackRect& r : item.rects) life.back() += r.upper - r.lower;
    longest = std::max(longest, life.back());
  }
  for (const std::vector<int>& section : sections) {
    bytes.push_back(0);
    for (int i : section) bytes.back() += size[i];
  }
  std::map<std::pair<std::int64_t, std::vector<int>>, int> last;
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (int s : of_item[i]) beside[i].insert(beside[i].end(), sections[s].begin(), sections[s].end());
    std::sort(beside[i].begin(), beside[i].end());
    beside[i].erase(std::unique(beside[i].begin(), beside[i].end()), beside[i].end());
    std::erase(beside[i], static_cast<int>(i));
    const auto [it, fresh] = last.try_emplace({size[i], of_item[i]}, static_cast<int>(i));
    twin.push_back(fresh ? -1 : std::exchange(it->second, static_cast<int>(i)));
  }
}

bool Sections::is_in(int item, int section) const {
  return std::binary_search(of_item[item].begin(), of_item[item].end(), section);
}

}  // namespace hyperoffload
