#include "planner/pack/clique_bound.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <utility>

namespace hyperoffload {
namespace {

constexpr std::size_t kMostPieces = 8'000;
constexpr std::size_t kStarts = 40, kStride = 3;  // full instants next to each other are much alike
constexpr int kMoves = 400;
constexpr int kAway = 7;  // moves that a piece stays away, at least (as many more at random)

class Cliques {
 public:
  explicit Cliques(const std::vector<PackItem>& items) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::map<std::pair<std::int64_t, std::int64_t>, int> numbers;
      for (const PackRect& r : items[i].rects) {
        if (r.size == 0) continue;
        const auto [it, fresh] = numbers.try_emplace({r.offset, r.size}, static_cast<int>(bytes_.size()));
        if (fresh) bytes_.push_back(r.size);
        events.push_back({r.lower, true, it->second});
        events.push_back({r.upper, false, it->second});
      }
    }
    if (bytes_.size() > kMostPieces) return;
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tuple(a.at, a.begins, a.piece) < std::tuple(b.at, b.begins, b.piece);
    });
    words_ = (bytes_.size() + 63) / 64;
    meets_.resize(words_ * bytes_.size());
    follow(events);
  }

  std::int64_t heaviest() {
    std::stable_sort(full_.begin(), full_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::int64_t best = 0;
    for (std::size_t k = 0; k < std::min(full_.size(), kStarts * kStride); k += kStride)
      best = std::max(best, search(full_[k]));
    return best;
  }

 private:
  struct Event {
    std::int64_t at;
    bool begins;
    int piece;
  };

  // Who meets whom, and who is there at each instant before something goes.
  void follow(const std::vector<Event>& events) {
    std::vector<std::uint64_t> alive(words_);
    std::int64_t bytes = 0;
    bool grown = false;
    for (const Event& e : events) {
      const std::uint64_t bit = std::uint64_t{1} << (e.piece % 64);
      if (e.begins) {
        for (std::size_t w = 0; w < words_; ++w) meets_[words_ * e.piece + w] |= alive[w];
        alive[e.piece / 64] |= bit;
        bytes += bytes_[e.piece];
        grown = true;
        continue;
      }
      if (std::exchange(grown, false)) full_.emplace_back(bytes, alive);
      alive[e.piece / 64] &= ~bit;
      bytes -= bytes_[e.piece];
    }
    for (std::size_t a = 0; a < bytes_.size(); ++a)
      for (std::size_t w = 0; w < words_; ++w)
        for (std::uint64_t left = meets_[words_ * a + w]; left != 0; left &= left - 1) {
          const std::size_t b = 64 * w + static_cast<std::size_t>(std::countr_zero(left));
          meets_[words_ * b + a / 64] |= std::uint64_t{1} << (a % 64);
        }
  }

  bool meet(std::size_t a, std::size_t b) const { return meets_[words_ * a + b / 64] >> (b % 64) & 1U; }

  // `loss_` of a piece: bytes in the set that it doesn't meet.
  void change(std::size_t piece, bool joins) {
    in_[piece] = joins;
    const std::int64_t bytes = joins ? bytes_[piece] : -bytes_[piece];
    for (std::size_t p = 0; p < bytes_.size(); ++p)
      if (p != piece && !meet(piece, p)) loss_[p] += bytes;
  }

  std::int64_t search(const std::pair<std::int64_t, std::vector<std::uint64_t>>& start) {
    const std::size_t count = bytes_.size();
    in_.assign(count, 0);
    loss_.assign(count, 0);
    std::vector<int> away(count, 0);
    std::mt19937_64 random(1);
    for (std::size_t p = 0; p < count; ++p)
      if (start.second[p / 64] >> (p % 64) & 1U) change(p, true);
    std::int64_t now = start.first, best = now;
    for (int move = 1; move <= kMoves; ++move) {
      std::size_t joins = count;
      std::int64_t most = std::numeric_limits<std::int64_t>::min();
      for (std::size_t p = 0; p < count; ++p)
        if (!in_[p] && away[p] < move && bytes_[p] - loss_[p] > most) {
          most = bytes_[p] - loss_[p];
          joins = p;
        }
      if (joins == count) break;
      for (std::size_t p = 0; p < count; ++p)
        if (in_[p] && !meet(joins, p)) {
          change(p, false);
          away[p] = move + kAway + static_cast<int>(random() % (kAway + 1));
        }
      change(joins, true);
      now += most;
      best = std::max(best, now);
    }
    return best;
  }

  std::vector<std::int64_t> bytes_;  // by piece: distinct (item, offset, size)
  std::size_t words_ = 0;
  std::vector<std::uint64_t> meets_;                                      // words_ by piece
  std::vector<std::pair<std::int64_t, std::vector<std::uint64_t>>> full_;  // bytes, who is there
  std::vector<char> in_;
  std::vector<std::int64_t> loss_;
};

}  // namespace

std::int64_t clique_bound(const std::vector<PackItem>& items) {
  return std::max(live_peak(items), Cliques(items).heaviest());
}

}  // namespace hyperoffload
