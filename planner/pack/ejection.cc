#include "planner/pack/ejection.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace hyperoffload {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

}  // namespace

Ejection::Ejection(const std::vector<PackItem>& items)
    : items_(static_cast<int>(items.size())), of_item_(items.size()), life_(items.size()), extent_(items.size()) {
  struct Event {
    std::int64_t at;
    bool begins;
    int piece;
  };
  std::vector<Event> events;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> numbers;
    for (const PackRect& r : items[i].rects) {
      if (r.size == 0) continue;
      const auto [it, fresh] = numbers.try_emplace({r.offset, r.size}, static_cast<int>(pieces_.size()));
      if (fresh) {
        of_item_[i].push_back(it->second);
        pieces_.push_back({static_cast<int>(i), r.offset, r.size});
      }
      events.push_back({r.lower, true, it->second});
      events.push_back({r.upper, false, it->second});
      life_[i] += static_cast<double>(r.upper - r.lower);
      extent_[i] = std::max(extent_[i], r.offset + r.size);
    }
  }
  too_large_ = pieces_.size() > kMostPieces;
  if (too_large_) return;
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.at, a.begins, a.piece) < std::tuple(b.at, b.begins, b.piece);
  });
  words_ = (pieces_.size() + 63) / 64;
  meets_.resize(words_ * pieces_.size());
  std::vector<std::uint64_t> alive(words_);
  for (const Event& e : events) {
    const std::uint64_t bit = std::uint64_t{1} << (e.piece % 64);
    alive[e.piece / 64] = e.begins ? alive[e.piece / 64] | bit : alive[e.piece / 64] & ~bit;
    if (!e.begins) continue;
    std::uint64_t* const row = meets_.data() + words_ * static_cast<std::size_t>(e.piece);
    for (std::size_t w = 0; w < words_; ++w) row[w] |= alive[w];
  }
  // Whoever was there when it began meets it, too; an item meets none of its own.
  for (std::size_t a = 0; a < pieces_.size(); ++a) {
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t left = meets_[words_ * a + w]; left != 0; left &= left - 1) {
        const std::size_t b = 64 * w + static_cast<std::size_t>(std::countr_zero(left));
        meets_[words_ * b + a / 64] |= std::uint64_t{1} << (a % 64);
      }
  }
  for (std::size_t a = 0; a < pieces_.size(); ++a)
    for (int b : of_item_[pieces_[a].item])
      meets_[words_ * a + static_cast<std::size_t>(b) / 64] &= ~(std::uint64_t{1} << (b % 64));
}

std::vector<std::int64_t> Ejection::search(std::int64_t height, std::int64_t& scans) {
  if (too_large_) return {};
  random_.seed(1);
  const std::int64_t all = scans;
  constexpr Round kRounds[] = {{false, 0.5, 1}, {false, 1, 1}, {true, 0.3, 3}, {false, 0.3, 3}};
  for (const Round& round : kRounds)
    if (run(round, height, scans, all / static_cast<std::int64_t>(std::size(kRounds)))) return base_;
  return {};
}

bool Ejection::run(const Round& round, std::int64_t height, std::int64_t& scans, std::int64_t allowed) {
  weight_.assign(static_cast<std::size_t>(items_), 1);
  base_.assign(static_cast<std::size_t>(items_), 0);
  placed_.assign(static_cast<std::size_t>(items_), 0);
  bottoms_.clear();
  tops_.clear();
  waiting_.clear();
  std::vector<double> key(static_cast<std::size_t>(items_));
  for (int i = 0; i < items_; ++i) {
    key[i] = static_cast<double>(extent_[i]) * std::pow(life_[i], round.life);
    if (!of_item_[i].empty()) waiting_.push_back(i);
  }
  std::stable_sort(waiting_.begin(), waiting_.end(), [&](int a, int b) { return key[a] < key[b]; });
  scanned_ = 0;
  std::size_t unplaced_first = waiting_.size();  // the first order runs to its end before others are picked
  while (!waiting_.empty() && scanned_ < allowed) {
    std::size_t next = waiting_.size() - 1;
    if (round.random && unplaced_first == 0) next = random_() % waiting_.size();
    const int item = waiting_[next];
    if (extent_[item] > height) break;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(next));
    double cost = 0;
    const std::int64_t base = cheapest_base(item, height - extent_[item], cost);
    if (cost > 0) {
      make_room(item, base);
      weight_[item] += round.gain;
    }
    put(item, base);
    if (unplaced_first > 0) --unplaced_first;
  }
  scans -= scanned_;
  return waiting_.empty();
}

// The base in [0, last] where those that it overlaps weigh least, the lowest where it overlaps none.
template <class NextFrom, class NextTo>
std::int64_t Ejection::sweep(std::int64_t last, double& cost, NextFrom next_from, NextTo next_to) {
  double now = 0, best = std::numeric_limits<double>::infinity();
  std::int64_t where = 0, judged = -1;
  std::uint64_t ties = 0;
  const auto judge = [&](std::int64_t base) {
    judged = base;
    if (now < best - 0.5) {
      best = std::max(now, 0.0);
      where = base;
      ties = 1;
    } else if (now < best + 0.5 && random_() % ++ties == 0) {
      where = base;
    }
    return best < 0.5;
  };
  std::pair<std::int64_t, double> from = next_from(), to = next_to();
  while (true) {
    const std::int64_t at = std::min(from.first, to.first);
    if (judged < 0 && at > 0 && judge(0)) break;
    if (at >= last) break;
    for (; to.first == at; to = next_to()) now -= to.second;
    if (at >= 0 && at != judged && judge(at)) break;
    for (; from.first == at; from = next_from()) now += from.second;
  }
  if (best >= 0.5 && judged != last) {
    for (; to.first <= last; to = next_to()) now -= to.second;
    judge(last);
  }
  cost = best < 0.5 ? 0 : best;
  return where;
}

std::int64_t Ejection::cheapest_base(int item, std::int64_t last, double& cost) {
  constexpr std::pair<std::int64_t, double> kEnd{kMost, 0};
  if (of_item_[item].size() == 1) {
    const Piece& piece = pieces_[of_item_[item].front()];
    const std::uint64_t* const row = meets_.data() + words_ * static_cast<std::size_t>(of_item_[item].front());
    const auto next_of = [&](const std::vector<Edge>& edges, std::size_t& k, std::int64_t shift) {
      for (; k < edges.size(); ++k) {
        if (!meet(row, edges[k].piece)) continue;
        const Edge& edge = edges[k++];
        return std::pair(edge.at - shift, weight_[pieces_[edge.piece].item]);
      }
      return kEnd;
    };
    std::size_t b = 0, t = 0;
    const std::int64_t base = sweep(
        last, cost, [&] { return next_of(bottoms_, b, piece.offset + piece.size); },
        [&] { return next_of(tops_, t, piece.offset); });
    scanned_ += static_cast<std::int64_t>(b + t);
    return base;
  }
  from_.clear();
  to_.clear();
  for (int p : of_item_[item]) {
    const Piece& piece = pieces_[p];
    const std::uint64_t* const row = meets_.data() + words_ * static_cast<std::size_t>(p);
    for (const Edge& edge : bottoms_)
      if (meet(row, edge.piece))
        from_.emplace_back(edge.at - piece.offset - piece.size, weight_[pieces_[edge.piece].item]);
    for (const Edge& edge : tops_)
      if (meet(row, edge.piece)) to_.emplace_back(edge.at - piece.offset, weight_[pieces_[edge.piece].item]);
    scanned_ += static_cast<std::int64_t>(2 * bottoms_.size());
  }
  std::sort(from_.begin(), from_.end());
  std::sort(to_.begin(), to_.end());
  scanned_ += static_cast<std::int64_t>(4 * (from_.size() + to_.size()));
  std::size_t f = 0, t = 0;
  return sweep(
      last, cost, [&] { return f < from_.size() ? from_[f++] : kEnd; }, [&] { return t < to_.size() ? to_[t++] : kEnd; });
}

void Ejection::make_room(int item, std::int64_t base) {
  std::vector<int> out;
  for (int p : of_item_[item]) {
    const std::uint64_t* const row = meets_.data() + words_ * static_cast<std::size_t>(p);
    const std::int64_t bottom = base + pieces_[p].offset, top = bottom + pieces_[p].size;
    for (const Edge& edge : bottoms_) {
      if (edge.at >= top) break;
      const int other = pieces_[edge.piece].item;
      if (placed_[other] && meet(row, edge.piece) && edge.at + pieces_[edge.piece].size > bottom) {
        placed_[other] = 0;
        out.push_back(other);
      }
    }
    scanned_ += static_cast<std::int64_t>(bottoms_.size());
  }
  for (int other : out) take_out(other);
}

void Ejection::take_out(int item) {
  placed_[item] = 0;
  for (int p : of_item_[item]) {
    const std::int64_t bottom = base_[item] + pieces_[p].offset;
    bottoms_.erase(std::lower_bound(bottoms_.begin(), bottoms_.end(), Edge{bottom, p}));
    tops_.erase(std::lower_bound(tops_.begin(), tops_.end(), Edge{bottom + pieces_[p].size, p}));
  }
  waiting_.push_back(item);
}

void Ejection::put(int item, std::int64_t base) {
  base_[item] = base;
  placed_[item] = 1;
  for (int p : of_item_[item]) {
    const Edge bottom{base + pieces_[p].offset, p}, top{bottom.at + pieces_[p].size, p};
    bottoms_.insert(std::lower_bound(bottoms_.begin(), bottoms_.end(), bottom), bottom);
    tops_.insert(std::lower_bound(tops_.begin(), tops_.end(), top), top);
  }
}

}  // namespace hyperoffload
