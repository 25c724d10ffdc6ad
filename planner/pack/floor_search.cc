#include "planner/pack/floor_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "planner/pack/sections.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kFirstNodes =
    1000;                   // of a try; with 200, 500 and 2000 A, G and K take up to 20x as many
constexpr int kOrders = 5;  // of candidates
constexpr int kTriesPerDoubling = 2 * kOrders;

// What a branch changed, to be taken back.
struct Change {
  enum Of { kFloor, kLeft, kBase, kSupport, kPlaced } of;
  int index;
  std::int64_t before;
};

class FloorSearch {
 public:
  FloorSearch(const std::vector<PackItem>& items, std::int64_t height)
      : at_(items),
        height_(height),
        blame_(at_.sections.size(), 0),
        dirty_(blame_.size()),
        touched_(blame_.size()) {}

  FloorSearchResult run(std::int64_t nodes);

 private:
  void restart();
  void rank_by(int order);
  bool solve(int from, int to);
  bool branch(int from, int to);
  int lowest_section(int from, int to) const;
  std::int64_t candidates(int section, std::vector<int>& list) const;
  bool place(int item);
  bool raise(int section, std::int64_t floor);
  bool raise_to_bases(int section);
  bool propagate();
  bool leaves_hole() const;
  void undo(std::size_t mark);
  void set(Change::Of of, int index, std::int64_t& value, std::int64_t now) {
    trail_.push_back({of, index, value});
    value = now;
  }
  bool over(bool fine) {  // ends a propagation
    for (int s : queue_) dirty_[s] = 0;
    for (int s : raised_) touched_[s] = 0;
    queue_.clear();
    raised_.clear();
    return fine;
  }

  const Sections at_;
  const std::int64_t height_;
  std::int64_t nodes_ = 0, allowed_ = 0;
  bool out_of_nodes_ = false;
  std::vector<std::int64_t> floor_, left_;    // by section: lowest base left, bytes to place
  std::vector<std::int64_t> base_, support_;  // by item: lowest base left, highest top placed under it
  std::vector<std::int64_t> placed_, offset_;
  std::vector<int> rank_;            // by item: place among candidates
  std::vector<std::int64_t> blame_;  // by section: branches it ended
  std::vector<Change> trail_;
  std::vector<char> dirty_, touched_;
  std::vector<int> queue_, raised_;
};

FloorSearchResult FloorSearch::run(std::int64_t nodes) {
  FloorSearchResult result;
  for (int round = 0; result.nodes < nodes; ++round) {
    restart();
    rank_by(round % kOrders);
    const std::int64_t once = std::max(kFirstNodes, 2 * static_cast<std::int64_t>(offset_.size()));
    allowed_ = std::min(once << std::min(round / kTriesPerDoubling, 30), nodes - result.nodes);
    nodes_ = 0;
    out_of_nodes_ = false;
    bool found =
        std::all_of(left_.begin(), left_.end(), [&](std::int64_t bytes) { return bytes <= height_; });
    found = found && solve(0, static_cast<int>(left_.size()));
    result.nodes += std::max<std::int64_t>(nodes_, 1);
    if (!found && out_of_nodes_) continue;
    result.verdict = found ? FloorSearchResult::Verdict::kFound : FloorSearchResult::Verdict::kImpossible;
    if (found) result.offsets = offset_;
    return result;
  }
  return result;
}

void FloorSearch::restart() {
  floor_.assign(at_.sections.size(), 0);
  left_ = at_.bytes;
  base_.assign(at_.size.size(), 0);
  support_ = placed_ = offset_ = base_;
  trail_.clear();
}

// Larger ones first, by what is large about them: its lifetime, its area, how full it gets beside it, its
// size.
void FloorSearch::rank_by(int order) {
  const std::size_t count = at_.size.size();
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::vector<Key> keys;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t size = at_.size[i], life = at_.life[i];
    // Areas may pass int64; only their order counts.
    const auto area = static_cast<std::int64_t>(static_cast<double>(size) * static_cast<double>(life) /
                                                static_cast<double>(at_.longest));
    std::int64_t fullest = 0;
    for (int s : at_.of_item[i]) fullest = std::max(fullest, at_.bytes[s]);
    switch (order) {
      case 0:
        keys.emplace_back(life, area, fullest);
        break;
      case 1:
        keys.emplace_back(area, life, fullest);
        break;
      case 2:
        keys.emplace_back(fullest, area, life);
        break;
      case 3:
        keys.emplace_back(fullest, life, area);
        break;
      default:
        keys.emplace_back(size, life, fullest);
        break;
    }
  }
  std::vector<int> items(count);
  std::iota(items.begin(), items.end(), 0);
  std::stable_sort(items.begin(), items.end(), [&](int a, int b) { return keys[a] > keys[b]; });
  rank_.resize(count);
  for (std::size_t i = 0; i < count; ++i) rank_[items[i]] = static_cast<int>(i);
}

// Splits sections [from, to) where no unplaced item crosses; the parts that ended most branches first.
bool FloorSearch::solve(int from, int to) {
  struct Part {
    std::int64_t blame;
    int from, to;
  };
  std::vector<Part> parts;
  int end = from;
  for (int s = from; s < to; ++s) {
    if (left_[s] == 0) continue;
    if (s >= end) parts.push_back({0, s, s});
    for (int i : at_.sections[s])
      if (!placed_[i]) end = std::max(end, at_.of_item[i].back() + 1);
    parts.back().to = end;
    parts.back().blame = std::max(parts.back().blame, blame_[s]);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.blame > b.blame; });
  return std::all_of(parts.begin(), parts.end(), [&](const Part& p) { return branch(p.from, p.to); });
}

bool FloorSearch::branch(int from, int to) {
  if (nodes_ >= allowed_) {
    out_of_nodes_ = true;
    return false;
  }
  ++nodes_;
  const int section = lowest_section(from, to);
  std::vector<int> list;
  const std::int64_t next = candidates(section, list);
  const std::size_t mark = trail_.size();
  for (int item : list) {
    if (place(item) && solve(from, to)) return true;
    undo(mark);
    if (out_of_nodes_) return false;
  }
  if (next == kMost) return false;
  if (over(raise(section, next) && propagate()) && solve(from, to)) return true;
  undo(mark);
  return false;
}

int FloorSearch::lowest_section(int from, int to) const {
  int best = -1;
  for (int s = from; s < to; ++s) {
    if (left_[s] == 0) continue;
    if (best < 0 || floor_[s] < floor_[best] || (floor_[s] == floor_[best] && blame_[s] > blame_[best]))
      best = s;
  }
  return best;
}

// Who can lie on the section's floor, into `list`; returns the next base that anyone can have if nobody does.
std::int64_t FloorSearch::candidates(int section, std::vector<int>& list) const {
  const std::int64_t floor = floor_[section];
  std::int64_t next = kMost;
  for (int i : at_.sections[section]) {
    if (placed_[i]) continue;
    if (base_[i] > floor) {
      next = std::min(next, base_[i]);
      continue;
    }
    // Above the floor it would lie on an item that isn't placed yet and isn't of this section either.
    for (int j : at_.beside[i])
      if (!placed_[j] && base_[j] + at_.size[j] < next && !at_.is_in(j, section))
        next = base_[j] + at_.size[j];
    const int twin = at_.twin[i];  // equal items in one order only
    if (support_[i] == floor && (twin < 0 || placed_[twin])) list.push_back(i);
  }
  std::sort(list.begin(), list.end(), [&](int a, int b) { return rank_[a] < rank_[b]; });
  return next;
}

bool FloorSearch::place(int item) {
  const std::int64_t base = base_[item], top = base + at_.size[item];
  set(Change::kPlaced, item, placed_[item], 1);
  offset_[item] = base;
  for (int s : at_.of_item[item]) set(Change::kLeft, s, left_[s], left_[s] - at_.size[item]);
  for (int j : at_.beside[item])
    if (!placed_[j] && support_[j] < top) set(Change::kSupport, j, support_[j], top);
  for (int s : at_.of_item[item])
    if (!raise(s, top) || !raise_to_bases(s)) return over(false);
  return over(propagate());
}

bool FloorSearch::raise(int section, std::int64_t floor) {
  if (floor <= floor_[section]) return true;
  set(Change::kFloor, section, floor_[section], floor);
  if (floor + left_[section] > height_) {
    ++blame_[section];
    return false;
  }
  if (!std::exchange(dirty_[section], 1)) queue_.push_back(section);
  if (!std::exchange(touched_[section], 1)) raised_.push_back(section);
  return true;
}

// To the least base of what is to be placed in it.
bool FloorSearch::raise_to_bases(int section) {
  std::int64_t least = kMost;
  for (int i : at_.sections[section]) {
    if (placed_[i]) continue;
    least = std::min(least, base_[i]);
    if (least <= floor_[section]) return true;
  }
  return least == kMost || raise(section, least);
}

// Floors raise bases, bases raise floors, until nothing changes.
bool FloorSearch::propagate() {
  while (!queue_.empty()) {
    const int section = queue_.back();
    queue_.pop_back();
    dirty_[section] = 0;
    for (int i : at_.sections[section]) {
      if (placed_[i] || base_[i] >= floor_[section]) continue;
      const std::int64_t before = base_[i];
      set(Change::kBase, i, base_[i], floor_[section]);
      for (int s : at_.of_item[i])
        if (floor_[s] >= before && floor_[s] < base_[i] && !raise_to_bases(s)) return false;
    }
  }
  return !leaves_hole();
}

// An unplaced item would fit under the floors, on what is placed: lowered into there it would only help.
bool FloorSearch::leaves_hole() const {
  for (int section : raised_)
    for (int i : at_.sections[section]) {
      const std::int64_t top = support_[i] + at_.size[i];
      if (placed_[i] || top > floor_[section]) continue;
      const auto& all = at_.of_item[i];
      if (std::all_of(all.begin(), all.end(), [&](int s) { return floor_[s] >= top; })) return true;
    }
  return false;
}

void FloorSearch::undo(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Change& c = trail_.back();
    std::vector<std::int64_t>* const values[] = {&floor_, &left_, &base_, &support_, &placed_};
    (*values[c.of])[c.index] = c.before;
  }
}

}  // namespace

bool are_boxes(const std::vector<PackItem>& items) {
  return std::all_of(items.begin(), items.end(), [](const PackItem& item) {
    return std::all_of(item.rects.begin(), item.rects.end(),
                       [&](const PackRect& r) { return r.offset == 0 && r.size == item.rects.front().size; });
  });
}

FloorSearchResult search_floors(const std::vector<PackItem>& items, std::int64_t height, std::int64_t nodes) {
  return FloorSearch(items, height).run(nodes);
}

}  // namespace hyperoffload
