#include "planner/passes/choose_evictions.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>

#include "planner/passes/check_capacity.h"

namespace hyperoffload {
namespace {

// How many of the farthest candidates are compared when one has to stall. Cost grows with it, and the
// farthest is nearly always the cheapest.
constexpr int kCompared = 8;
// How often a gap whose store is late asks again as soon as that might help.
constexpr int kAsksFreely = 6;
// How often the best candidates are looked at again before one is taken: a cap on work, seldom reached.
constexpr int kLooks = 64;
constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

// A unit whose load starts before its use; putting it off is a stall, too, but moves no more bytes.
struct Early {
  int use;  // on the sweep's axis
  int rank;
  int unit;
  bool operator<(const Early& other) const {
    return std::tuple(use, -rank, unit) < std::tuple(other.use, -other.rank, other.unit);
  }
};

struct Candidate {
  std::int64_t reach;  // next use, or how late it could be reloaded (at most; in ticks), on the sweep's axis
  int next_use;        // on the sweep's axis
  bool costs;          // needs the link at all
  std::int64_t bytes;  // of a piece
  int rank;
  int gap;
  auto key() const { return std::tuple(reach, -next_use, !costs, bytes, -rank, gap); }
  bool operator<(const Candidate& other) const { return key() < other.key(); }
};

class Sweep {
 public:
  Sweep(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
        const std::vector<std::int32_t>& rank, Score score, EvictionLedger& ledger)
      : graph_(graph),
        liveness_(liveness),
        clock_(clock),
        rank_(rank),
        score_(score),
        ledger_(ledger),
        next_piece_(liveness.gaps.size()),
        back_(liveness.positions),
        opening_(liveness.positions + 1),
        asked_(liveness.gaps.size()),
        refused_use_(liveness.gaps.size(), -1) {}

  void take(const std::vector<Eviction>& given);
  std::int64_t run(bool on_demand);

 private:
  void relieve(int position);
  void relieve_on_demand(int position);
  bool evict_best(int position);
  void stall_cheapest(int position);
  void watch(int unit, int offset);
  void offer(int gap, int position);
  void refuse(const Candidate& candidate);
  Ticks axis_shift(int offset) const { return offset > 0 ? clock_.period() : 0; }
  Ticks axis_start(int position, int offset) const { return clock_.start(position) - axis_shift(offset); }
  // A gap's own axis may be one turn ahead of the sweep's.
  int on_axis(const Gap& gap, int position) const {
    return position > gap.open ? position : position + liveness_.positions;
  }
  bool whole(const Gap& gap) const { return gap.open < 0; }  // an initial placement is of the whole tensor
  int unit(int gap) const { return liveness_.gaps[gap].first_unit + next_piece_[gap]; }
  int pieces(int gap) const { return liveness_.pieces[liveness_.gaps[gap].tensor]; }
  Verdict evict_whole(const Gap& gap, int position);
  Verdict evict_piece(int gap, int position);
  bool start_in_pool(int tensor);

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& clock_;
  const std::vector<std::int32_t>& rank_;
  const Score score_;
  EvictionLedger& ledger_;
  std::vector<std::int32_t> next_piece_;            // by gap: pieces below it are evicted
  std::vector<std::vector<std::int32_t>> back_;     // units, by the position at which they are back early
  std::vector<std::vector<std::int32_t>> opening_;  // gaps, by the position from which they are offered
  std::priority_queue<Candidate> idle_, refused_;
  std::vector<std::int32_t> asked_;        // by gap: how often its store was late
  std::vector<std::int32_t> refused_use_;  // by gap: next use of its entry among the refused
  std::priority_queue<Early> early_;
  std::vector<std::int32_t> pending_;  // units evicted from a later position of their gap on
  bool pool_short_ = false;
  std::int64_t looked_ = 0;
};

void Sweep::take(const std::vector<Eviction>& given) {
  for (const Eviction& eviction : given) {
    const int g = liveness_.gap_of_unit[eviction.unit];
    const Gap& gap = liveness_.gaps[g];
    if (eviction.unit != unit(g) || eviction.position >= gap.until) continue;
    const int count = whole(gap) ? pieces(g) : 1;
    int done = 0;
    for (; done < count && ledger_.pool_has_room(eviction.unit + done); ++done)
      if (ledger_.evict(eviction.unit + done, eviction.position) != Verdict::kDone)
        ledger_.evict_exposed(eviction.unit + done, eviction.position);
    if (done < count) {
      while (done-- > 0) ledger_.restore(eviction.unit + done);
      continue;
    }
    for (int k = 0; k < count; ++k) {
      watch(unit(g), 0);
      if (gap.close > liveness_.positions && gap.open >= 0) watch(unit(g), liveness_.positions);
      ++next_piece_[g];
    }
  }
}

std::int64_t Sweep::run(bool on_demand) {
  for (std::size_t g = 0; g < liveness_.gaps.size(); ++g) {
    const Gap& gap = liveness_.gaps[g];
    if (gap.must_leave || (gap.open < 0 && graph_.bound_to_pool[gap.tensor])) {
      for (; next_piece_[g] < pieces(g); ++next_piece_[g]) {
        on_demand ? ledger_.evict_on_demand(unit(g)) : ledger_.evict_forced(unit(g));
        watch(unit(g), 0);
        if (gap.close > liveness_.positions && gap.open >= 0) watch(unit(g), liveness_.positions);
      }
      continue;
    }
    if (gap.open + 1 < liveness_.positions) opening_[gap.open + 1].push_back(static_cast<std::int32_t>(g));
    if (gap.close > liveness_.positions && gap.open >= 0) opening_[0].push_back(static_cast<std::int32_t>(g));
  }
  for (int p = 0; p < liveness_.positions; ++p) {
    for (int gap : opening_[p]) offer(gap, p);
    opening_[p] = {};
    for (int u : back_[p]) {
      const Gap& gap = liveness_.gap(u);
      early_.push({gap.close - (on_axis(gap, p) - p), rank_[gap.tensor], u});
    }
    back_[p] = {};
    on_demand ? relieve_on_demand(p) : relieve(p);
  }
  return looked_;
}

void Sweep::offer(int g, int position) {
  // What left as the sweep began, in the gap's other end, may not have been stored by now.
  for (int k = 0; k < next_piece_[g] && position > liveness_.gaps[g].open; ++k)
    if (const int u = liveness_.gaps[g].first_unit + k; ledger_.freed_from(u) > position)
      pending_.push_back(u);
  if (next_piece_[g] == pieces(g) || graph_.bytes[liveness_.gaps[g].tensor] == 0) return;
  const Gap& gap = liveness_.gaps[g];
  const int offset = on_axis(gap, position) - position;
  const int next_use = gap.close - offset;
  if (next_use <= position) return;
  std::int64_t reach = next_use;
  if (score_ == Score::kFarthestReload) reach = gap.loads ? axis_start(gap.close, offset) : kForever;
  idle_.push({reach, next_use, gap.loads || !ledger_.clean(unit(g)), liveness_.piece_bytes(gap.tensor, 0),
              rank_[gap.tensor], g});
}

// Once a gap and axis, however often it is offered again.
void Sweep::refuse(const Candidate& candidate) {
  if (refused_use_[candidate.gap] == candidate.next_use) return;
  refused_use_[candidate.gap] = candidate.next_use;
  refused_.push(candidate);
}

void Sweep::relieve(int position) {
  while (ledger_.bytes_at(position) > graph_.machine.hbm)
    if (!evict_best(position)) stall_cheapest(position);
}

void Sweep::relieve_on_demand(int position) {
  while (ledger_.bytes_at(position) > graph_.machine.hbm) {
    if (idle_.empty() || idle_.top().next_use <= position)
      throw_infeasible(graph_, liveness_, position, pool_short_);
    const int g = idle_.top().gap;
    const Gap& gap = liveness_.gaps[g];
    const bool room = next_piece_[g] < pieces(g) && ledger_.pool_has_room(unit(g));
    pool_short_ |= next_piece_[g] < pieces(g) && !room;
    if (!room || on_axis(gap, position) >= gap.until) {
      idle_.pop();
      continue;
    }
    do ledger_.evict_on_demand(unit(g));
    while (++next_piece_[g] < pieces(g) && whole(gap));
  }
}

Verdict Sweep::evict_whole(const Gap& gap, int position) {
  for (int k = 0; k < liveness_.pieces[gap.tensor]; ++k) {
    const Verdict verdict = ledger_.evict(gap.first_unit + k, position);
    if (verdict == Verdict::kDone) continue;
    while (k-- > 0) ledger_.restore(gap.first_unit + k);
    return verdict;
  }
  return Verdict::kDone;
}

// Lets a tensor that has left nowhere yet start in the pool, if its first load hides.
bool Sweep::start_in_pool(int tensor) {
  const int g = liveness_.gap_begin[tensor];
  const Gap& first = liveness_.gaps[g];
  if (!whole(first) || next_piece_[g] > 0 || !first.loads) return false;
  const Version& version = liveness_.versions[first.version];
  for (int other = g + 1; other < g + version.gaps; ++other)
    if (next_piece_[other] > 0) return false;
  if (evict_whole(first, 0) != Verdict::kDone) return false;
  do watch(unit(g), 0);
  while (++next_piece_[g] < pieces(g));
  return true;
}

Verdict Sweep::evict_piece(int g, int position) {
  const int tensor = liveness_.gaps[g].tensor;
  const bool choice = !liveness_.repeats && graph_.persistent[tensor] && !ledger_.clean(unit(g)) &&
                      liveness_.versions[liveness_.gaps[g].version].written < 0;
  const Verdict verdict = ledger_.evict(unit(g), position);
  if (verdict != Verdict::kStoreLate || !choice || !start_in_pool(tensor)) return verdict;
  return ledger_.evict(unit(g), position);
}

// Evicts one unit (or one whole tensor that then starts in the pool); false if none can be hidden.
bool Sweep::evict_best(int position) {
  int looks = 0;
  while (!idle_.empty()) {
    Candidate best = idle_.top();
    if (best.next_use <= position) {
      idle_.pop();
      continue;
    }
    const Gap& gap = liveness_.gaps[best.gap];
    if (next_piece_[best.gap] == pieces(best.gap)) {
      idle_.pop();
      continue;
    }
    const int at = on_axis(gap, position);
    // How late it can be reloaded only falls as the link fills: look again before taking it for the best.
    if (score_ == Score::kFarthestReload && gap.loads && looks < kLooks) {
      ++looks;
      ++looked_;
      const std::int64_t reach = ledger_.reload_start(unit(best.gap), at) - axis_shift(at - position);
      if (reach < best.reach) {
        best.reach = reach;
        idle_.pop();
        idle_.push(best);
        continue;
      }
    }
    ++looked_;
    const Verdict verdict = whole(gap) ? evict_whole(gap, at) : evict_piece(best.gap, at);
    if (verdict == Verdict::kDone) {
      do watch(unit(best.gap), at - position);
      while (++next_piece_[best.gap] < pieces(best.gap) && whole(gap));
      return true;
    }
    idle_.pop();
    pool_short_ |= verdict == Verdict::kNoPool;
    if (verdict == Verdict::kUseless || verdict == Verdict::kNoPool) continue;
    best.reach = best.next_use;
    refuse(best);
    if (verdict != Verdict::kStoreLate) continue;
    const Ticks late = at == position ? 0 : clock_.period();
    const Ticks stored = ledger_.store_end(unit(best.gap)) - (gap.next_turn ? clock_.period() : 0) - late;
    // When the link is behind, all who wait are told the same time and only one is served: the more often
    // one has been turned away, the later it asks again.
    const int patience = 1 << std::clamp(++asked_[best.gap] - kAsksFreely, 0, 20);
    const int wake = std::max(clock_.first_start_from(stored), position + patience);
    if (wake > position && wake < std::min(best.next_use, liveness_.positions))
      opening_[wake].push_back(best.gap);
  }
  return false;
}

// Remembers when an evicted unit is back, if that is before its use.
void Sweep::watch(int unit, int offset) {
  const int back = std::max(0, ledger_.freed_to(unit) - offset);
  if (back < liveness_.positions && ledger_.freed_to(unit) < liveness_.gap(unit).close)
    back_[back].push_back(unit);
}

void Sweep::stall_cheapest(int position) {
  looked_ += 2 * kCompared;
  const auto offset = [&](int u) { return on_axis(liveness_.gap(u), position) - position; };
  std::vector<Candidate> fresh;
  while (!refused_.empty() && refused_.top().next_use > position && fresh.size() < kCompared) {
    if (next_piece_[refused_.top().gap] < pieces(refused_.top().gap)) fresh.push_back(refused_.top());
    refused_.pop();
  }
  std::vector<Early> early;
  while (!early_.empty() && early_.top().use > position && early.size() < kCompared) {
    const Early top = early_.top();
    early_.pop();
    if (ledger_.freed_to(top.unit) - offset(top.unit) <= position) early.push_back(top);
  }
  int best = -1, best_gap = -1;
  Ticks least = 0;
  std::erase_if(pending_, [&](int u) { return ledger_.freed_from(u) <= position; });
  const auto compare = [&](int u, int gap) {
    if (position + offset(u) >= liveness_.gap(u).until) return;  // in use again, as good as
    const Ticks stall = ledger_.exposed(u, position + offset(u));
    if (best >= 0 && stall >= least) return;
    best = u;
    best_gap = gap;
    least = stall;
  };
  for (int u : pending_) compare(u, -1);
  for (const Early& candidate : early) compare(candidate.unit, -1);
  for (const Candidate& candidate : fresh) {
    if (ledger_.pool_has_room(unit(candidate.gap)))
      compare(unit(candidate.gap), candidate.gap);
    else
      pool_short_ = true;
  }
  if (best < 0) throw_infeasible(graph_, liveness_, position, pool_short_);
  for (const Candidate& candidate : fresh) refused_.push(candidate);
  for (const Early& candidate : early)
    if (candidate.unit != best) early_.push(candidate);
  if (best_gap < 0 && position + offset(best) < ledger_.freed_from(best))
    return ledger_.hurry(best, position);
  if (best_gap < 0) {
    ledger_.postpone(best, position + offset(best));
    return watch(best, offset(best));
  }
  const Gap& gap = liveness_.gaps[best_gap];
  do {
    ledger_.evict_exposed(unit(best_gap), on_axis(gap, position));
    watch(unit(best_gap), offset(best));
  } while (++next_piece_[best_gap] < pieces(best_gap) && whole(gap));
}

}  // namespace

// Most names differ in their first bytes: those are compared as numbers.
std::vector<std::int32_t> rank_by_name(const Graph& graph) {
  const auto name = [&](int t) -> const std::string& { return graph.tensors()[t].name; };
  struct Key {
    std::uint64_t first, second;
    std::int32_t tensor;
  };
  const auto bytes = [](const std::string& text, std::size_t from) {
    std::uint64_t value = 0;
    for (std::size_t i = from; i < from + 8; ++i) value = value << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
    return value;
  };
  std::vector<Key> order;
  order.reserve(graph.tensors().size());
  for (int t = 0; t < static_cast<int>(graph.tensors().size()); ++t)
    order.push_back({bytes(name(t), 0), bytes(name(t), 8), t});
  std::sort(order.begin(), order.end(), [&](const Key& a, const Key& b) {
    if (a.first != b.first) return a.first < b.first;
    return a.second != b.second ? a.second < b.second : name(a.tensor) < name(b.tensor);
  });
  std::vector<std::int32_t> rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i].tensor] = static_cast<std::int32_t>(i);
  return rank;
}

void take_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock, const std::vector<std::int32_t>& rank,
                    EvictionLedger& ledger, const std::vector<Eviction>& given) {
  Sweep(graph, liveness, clock, rank, Score::kFarthestUse, ledger).take(given);
  for (int u = 0; u < liveness.units(); ++u) {
    const Gap& gap = liveness.gap(u);
    if (gap.loads || ledger.evicted(u) || (gap.open >= 0 && !ledger.clean(u)) || !ledger.pool_has_room(u)) continue;
    ledger.evict(u, std::min(gap.open + 1, gap.until - 1));
  }
}

std::int64_t choose_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                              const std::vector<std::int32_t>& rank, Score score,
                              EvictionLedger& ledger, const std::vector<Eviction>& given) {
  Sweep sweep(graph, liveness, clock, rank, score, ledger);
  sweep.take(given);
  return sweep.run(false);
}

void choose_on_demand(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                      const std::vector<std::int32_t>& rank, EvictionLedger& ledger) {
  Sweep(graph, liveness, clock, rank, Score::kFarthestUse, ledger).run(true);
}

}  // namespace hyperoffload
