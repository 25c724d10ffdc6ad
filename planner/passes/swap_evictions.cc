#include "planner/passes/swap_evictions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/passes/place_transfers.h"

namespace hyperoffload {
namespace {

// What a slower set may cost, as a share of the time without stalls: falls from the first to the second.
constexpr double kHot = 0.005, kCold = 0.0002;
// Of so many drawn candidates the best one leaves.
constexpr int kDrawn = 3;
// How often another stays for what leaves.
constexpr double kInstead = 0.7;
// How often a set is placed by the timeline that came out instead of the one before.
constexpr double kLearns = 0.25;

class Dice {
 public:
  double real() {  // splitmix64, in [0, 1)
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(real() * static_cast<double>(count)); }

 private:
  std::uint64_t state_ = 1;
};

class Swapper {
 public:
  Swapper(const FlatGraph& graph, const Liveness& liveness, const StepClock& ideal, const std::vector<std::int32_t>& rank,
          const SwapStart& start);
  std::optional<Replayed> run(int tries, Ticks enough);

 private:
  int P() const { return liveness_.positions; }
  bool leaves(int g) const { return evicted_[liveness_.gaps[g].first_unit] != 0; }
  // Calls visit(position) for each that the gap can free.
  template <typename Visit>
  void for_each_position(int g, Visit visit) const {
    const Gap& gap = liveness_.gaps[g];
    for (int p = std::max(0, gap.open + 1); p < gap.until; ++p) visit(p < P() ? p : p - P());
  }
  void toggle(int g);
  void change(int g);
  void make_room(int position, int kept);
  void keep_instead(int left);
  double worth(int g) const;
  std::optional<Replayed> replay(const StepClock& clock);

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& ideal_;
  const std::vector<std::int32_t>& rank_;
  StepClock clock_, timeline_;  // what the set is placed by, what came of it
  Ticks now_;
  std::vector<char> evicted_;
  std::vector<std::int64_t> bytes_;            // by position
  std::vector<std::int32_t> open_;             // gaps whose fate is open, in an order that knows no file
  std::vector<std::vector<std::int32_t>> at_;  // by position: those
  std::vector<std::int32_t> changed_;
  Dice dice_;
};

Swapper::Swapper(const FlatGraph& graph, const Liveness& liveness, const StepClock& ideal,
                 const std::vector<std::int32_t>& rank, const SwapStart& start)
    : graph_(graph),
      liveness_(liveness),
      ideal_(ideal),
      rank_(rank),
      clock_(start.clock),
      timeline_(start.clock),
      now_(start.period),
      evicted_(start.evicted),
      bytes_(liveness.resident),
      at_(liveness.positions) {
  for (std::size_t g = 0; g < liveness.gaps.size(); ++g) {
    const Gap& gap = liveness.gaps[g];
    const int number = static_cast<int>(g);
    if (leaves(number)) for_each_position(number, [&](int p) { bytes_[p] -= graph.bytes[gap.tensor]; });
    if (gap.must_leave || (gap.open < 0 && graph.bound_to_pool[gap.tensor]) || graph.bytes[gap.tensor] == 0) continue;
    open_.push_back(number);
  }
  std::sort(open_.begin(), open_.end(), [&](int a, int b) {
    const auto key = [&](const Gap& gap) { return std::tuple(gap.open, gap.close, rank_[gap.tensor]); };
    return key(liveness.gaps[a]) < key(liveness.gaps[b]);
  });
  for (int g : open_) for_each_position(g, [&](int p) { at_[p].push_back(g); });
}

void Swapper::toggle(int g) {
  char& leaves = evicted_[liveness_.gaps[g].first_unit];
  leaves = leaves == 0;
  const std::int64_t bytes = graph_.bytes[liveness_.gaps[g].tensor];
  for_each_position(g, [&](int p) { bytes_[p] += leaves != 0 ? -bytes : bytes; });
  changed_.push_back(g);
}

// Positions it would relieve for what it takes on the link.
double Swapper::worth(int g) const {
  const Gap& gap = liveness_.gaps[g];
  double relieved = 0;
  for_each_position(g, [&](int p) { relieved += bytes_[p] > graph_.machine.hbm; });
  const int unit = gap.first_unit;
  const double cost = (gap.loads ? graph_.machine.load_seconds(graph_.bytes[gap.tensor]) : 0) +
                      (liveness_.clean(graph_, evicted_, unit) ? 0 : graph_.machine.store_seconds(graph_.bytes[gap.tensor]));
  return relieved * static_cast<double>(graph_.bytes[gap.tensor]) / (cost + 1e-9 * ideal_.seconds(ideal_.period()));
}

void Swapper::make_room(int position, int kept) {
  std::vector<std::int32_t> candidates;
  while (bytes_[position] > graph_.machine.hbm) {
    candidates.clear();
    for (int g : at_[position])
      if (g != kept && !leaves(g)) candidates.push_back(g);
    if (candidates.empty()) return;
    int best = -1;
    double most = -1;
    for (int k = 0; k < kDrawn; ++k) {
      const int g = candidates[dice_.below(candidates.size())];
      if (const double here = worth(g); here > most) {
        most = here;
        best = g;
      }
    }
    toggle(best);
  }
}

// One that was away beside it.
void Swapper::keep_instead(int left) {
  std::vector<std::int32_t> beside;
  for_each_position(left, [&](int p) {
    for (int g : at_[p])
      if (g != left && leaves(g)) beside.push_back(g);
  });
  if (beside.empty()) return;
  const int g = beside[dice_.below(beside.size())];
  toggle(g);
  for_each_position(g, [&](int p) { make_room(p, g); });
}

void Swapper::change(int g) {
  const bool keep = leaves(g);
  toggle(g);
  if (keep)
    for_each_position(g, [&](int p) { make_room(p, g); });
  else if (dice_.real() < kInstead)
    keep_instead(g);
}

std::optional<Replayed> Swapper::replay(const StepClock& clock) {
  for (std::int64_t bytes : bytes_)
    if (bytes > graph_.machine.hbm) return std::nullopt;
  EvictionLedger ledger(graph_, liveness_, clock);
  for (int u = 0; u < liveness_.units(); ++u) {
    if (evicted_[u] == 0) continue;
    if (!ledger.pool_has_room(u)) return std::nullopt;
    ledger.evict_on_demand(u);
  }
  return place_by_replay(graph_, liveness_, clock, ideal_, rank_, ledger);
}

std::optional<Replayed> Swapper::run(int tries, Ticks enough) {
  std::optional<Replayed> best;
  Ticks least = now_;
  if (open_.empty()) return best;
  const double period = static_cast<double>(ideal_.period());
  for (int k = 0; k < tries && least > enough; ++k) {
    const double left = 1 - static_cast<double>(k) / tries, heat = period * (kCold + (kHot - kCold) * left * left * left);
    changed_.clear();
    const bool learns = dice_.real() < kLearns;
    if (!learns || dice_.real() < 0.5) change(open_[dice_.below(open_.size())]);
    std::optional<Replayed> next = replay(learns ? timeline_ : clock_);
    const double slower = next ? static_cast<double>(next->clock.period() - now_) : 0;
    if (!next || (slower > 0 && slower >= 2 * heat * dice_.real())) {
      for (const std::vector<std::int32_t> back(changed_.rbegin(), changed_.rend()); int g : back) toggle(g);
      continue;
    }
    now_ = next->clock.period();
    if (learns) clock_ = timeline_;
    timeline_ = next->clock;
    if (now_ < least) {
      least = now_;
      best = std::move(next);
    }
  }
  return best;
}

}  // namespace

std::optional<Replayed> swap_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& ideal,
                                       const std::vector<std::int32_t>& rank, const SwapStart& start, int tries,
                                       Ticks enough) {
  return Swapper(graph, liveness, ideal, rank, start).run(tries, enough);
}

}  // namespace hyperoffload
