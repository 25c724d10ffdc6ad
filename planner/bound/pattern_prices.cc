#include "planner/bound/pattern_prices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hyperoffload {

// Bytes stored at different times come back at different times, too: with one pattern a unit and round, such a mixture took
// 60 to 110 rounds on a circle; with eight 7 to 11, in a quarter of the time. A cold pass gained nothing.
constexpr int kWindows = 8;

Prices Prices::mixed(const Prices& other, double weight) const {
  Prices result = *this;
  const auto mix = [&](std::vector<double> Prices::*of) {
    for (std::size_t i = 0; i < (result.*of).size(); ++i)
      (result.*of)[i] = (1 - weight) * (this->*of)[i] + weight * (other.*of)[i];
  };
  for (auto of : {&Prices::memory, &Prices::read, &Prices::write, &Prices::hbm_read, &Prices::hbm_write,
                  &Prices::hbm_both})
    mix(of);
  result.second = (1 - weight) * second + weight * other.second;
  result.start = (1 - weight) * start + weight * other.start;
  return result;
}

PatternPricer::At::At(const PatternPricer& pricer, const Prices& prices) : lp_(pricer.lp_) {
  const double time = lp_.time_scale, hbm = 1 / (lp_.hbm_bandwidth * time);
  relief_.push_back(0);
  start_ = prices.start;
  for (int turn = 0; turn < lp_.turns(); ++turn) {
    for (double price : prices.memory) relief_.push_back(relief_.back() + price / pricer.byte_);
    for (std::size_t s = 0; s < prices.read.size(); ++s) {
      read_.push_back(prices.read[s] / time);
      write_.push_back(prices.write[s] / time);
      hbm_load_.push_back((prices.hbm_read[s] + prices.hbm_both[s]) * hbm);
      hbm_store_.push_back((prices.hbm_write[s] + prices.hbm_both[s]) * hbm);
    }
  }
}

double PatternPricer::At::gain(int u, const Pattern& pattern) const {
  const LpUnit& unit = lp_.units[u];
  double gain = pattern.store >= 0 ? -store_price(unit, pattern.store) : 0;
  if (lp_.counts(u, pattern)) gain += start_;
  for (const Pattern::Away& away : pattern.away) {
    gain += relief(unit, away.from, away.to);
    if (away.load >= 0) gain -= load_price(unit, away.load);
  }
  return gain;
}

// The best load for a gap that is gone from boundary `from` on (`absent`: has been all along, so that it may
// come before the first boundary, too).
Pattern::Away PatternPricer::At::away(const LpUnit& unit, const LpGap& gap, int from, bool absent,
                                      double& gain) const {
  if (!gap.loads) {
    gain = relief(unit, from, gap.last);
    return {from, gap.last, -1};
  }
  gain = -std::numeric_limits<double>::infinity();
  Pattern::Away best{from, from - 1, -1};
  for (int slot = gap.close; slot >= std::max(gap.opens, from + (absent ? 0 : 1)); --slot) {
    const int to = std::min(slot - 1, gap.last);
    const double here = relief(unit, from, to) - load_price(unit, slot);
    if (here > gain) {
      gain = here;
      best = {from, to, slot};
    }
  }
  return best;
}

double PatternPricer::At::whole(const LpUnit& unit, std::size_t g, bool absent, Pattern::Away& best) const {
  double gain = 0;
  const LpGap& gap = unit.gaps[g];
  if (!absent && (gap.last < gap.first || (g == 0 && unit.first_stays))) return 0;
  best = away(unit, gap, gap.first, absent, gain);
  return absent ? gain : std::max(0.0, gain);
}

// Which gaps gain by themselves, and if a store is needed, when it ends best: the gap it falls into is gone
// from there on, later ones wholly, earlier ones not at all.
double PatternPricer::At::stored(const LpUnit& unit, Pattern& pattern, Span stores) const {
  const bool clean = unit.stored_from == LpUnit::kClean;
  double best = 0, later = 0;  // gain of the gaps behind the store
  int store = -1;
  const auto consider = [&](int slot, double gain) {
    if (slot < stores.first || slot > stores.last || gain - store_price(unit, slot) <= best) return;
    best = gain - store_price(unit, slot);
    store = slot;
  };
  Pattern::Away ignored;
  for (std::size_t g = unit.gaps.size(); g-- > 0;) {
    const LpGap& gap = unit.gaps[g];
    const double all = whole(unit, g, false, ignored);
    if (!clean && later <= 0 && all <= 0) continue;  // a part of a gap gains less than the whole
    if (!clean && g == 0 && unit.first_stays) {
      for (int slot = gap.last; slot >= unit.stored_from; --slot) consider(slot, later);
    } else if (!clean) {
      double load = gap.loads ? -std::numeric_limits<double>::infinity() : 0;
      if (gap.loads)
        for (int slot = gap.close; slot > std::max(gap.last, gap.opens - 1); --slot)
          load = std::max(load, -load_price(unit, slot));
      for (int slot = gap.last; slot > gap.first; --slot) {
        consider(slot, later + std::max(0.0, relief(unit, slot, gap.last) + load));
        if (gap.loads && slot >= gap.opens) load = std::max(load, -relief(unit, slot, gap.last) - load_price(unit, slot));
      }
      const int from = g > 0 ? unit.gaps[g - 1].last + 1 : unit.stored_from;
      for (int slot = gap.first; slot >= from; --slot) consider(slot, later + all);
    }
    later += all;
  }
  if (!clean && store < 0) return 0;
  pattern.store = store;
  for (std::size_t g = unit.first_stays ? 1 : 0; g < unit.gaps.size(); ++g) {
    const LpGap& gap = unit.gaps[g];
    const int from = std::max(gap.first, store);
    if (from > gap.last) continue;
    double gain = 0;
    const Pattern::Away part = away(unit, gap, from, false, gain);
    if (gain > 0) pattern.away.push_back(part);
  }
  return clean ? later : best;
}

// It starts in the pool, with a copy.
double PatternPricer::At::from_pool(const LpUnit& unit, Pattern& pattern) const {
  double total = unit.counts ? start_ : 0;
  for (std::size_t g = 0; g < unit.gaps.size(); ++g) {
    Pattern::Away part;
    const double gain = whole(unit, g, g == 0, part);
    total += gain;
    if (g == 0 || gain > 0) pattern.away.push_back(part);
  }
  return total;
}

double PatternPricer::At::best(int u, Pattern& pattern) const {
  const LpUnit& unit = lp_.units[u];
  if (unit.pool_only) return from_pool(unit, pattern);
  const double kept = stored(unit, pattern, all_stores(unit));
  if (!unit.pool_start) return kept;
  Pattern other;
  const double moved = from_pool(unit, other);
  if (moved <= kept) return kept;
  pattern = std::move(other);
  return moved;
}

void PatternPricer::At::best_by_store(int u, std::vector<std::pair<int, Pattern>>& patterns) const {
  const LpUnit& unit = lp_.units[u];
  if (unit.stored_from == LpUnit::kClean || unit.pool_only) return;
  const Span all = all_stores(unit);
  const int slots = all.last + 1 - all.first;
  for (int window = 0; window < kWindows; ++window) {
    const Span part{all.first + slots * window / kWindows, all.first + slots * (window + 1) / kWindows - 1};
    Pattern pattern;
    stored(unit, pattern, part);
    if (!pattern.away.empty()) patterns.emplace_back(u, std::move(pattern));
  }
}

// By unit and gap: its load's slots if all are loaded one after another, as late as can be.
std::vector<std::vector<PatternPricer::Span>> PatternPricer::latest_loads() const {
  struct Load {
    int close, unit, gap, turn;  // slots of turns before
  };
  const int count = static_cast<int>(lp_.slots.size()), least = lp_.circle ? -count : 0;
  std::vector<Load> loads;
  std::vector<std::vector<Span>> slots;
  for (std::size_t u = 0; u < lp_.units.size(); ++u) {
    slots.emplace_back(lp_.units[u].gaps.size());
    for (std::size_t g = 0; g < lp_.units[u].gaps.size(); ++g) {
      const LpGap& gap = lp_.units[u].gaps[g];
      const int close = lp_.slot(gap.close);
      if (gap.loads) loads.push_back({close, static_cast<int>(u), static_cast<int>(g), gap.close - close});
    }
  }
  std::stable_sort(loads.begin(), loads.end(), [](const Load& a, const Load& b) { return a.close > b.close; });
  int slot = count - 1;
  double left = lp_.slots.back().seconds;
  for (const Load& load : loads) {
    const LpUnit& unit = lp_.units[load.unit];
    if (load.close < slot) {
      slot = load.close;
      left = lp_.slots[slot].seconds;
    }
    double seconds = unit.bytes * unit.read_cost;
    slots[load.unit][load.gap].last = std::max(0, slot + load.turn);
    while (seconds > left && slot > least) {
      seconds -= left;
      left = lp_.slots[lp_.slot(--slot)].seconds;
    }
    left -= seconds;
    slots[load.unit][load.gap].first = std::max(0, slot + load.turn);
  }
  return slots;
}

// By unit: its store's slots if all are stored one after another, as early as can be.
std::vector<PatternPricer::Span> PatternPricer::earliest_stores() const {
  std::vector<int> order;
  std::vector<Span> slots(lp_.units.size());
  const auto from = [&](int u) { return lp_.slot(lp_.units[u].stored_from); };
  for (std::size_t u = 0; u < lp_.units.size(); ++u)
    if (lp_.units[u].stored_from != LpUnit::kClean) order.push_back(static_cast<int>(u));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return from(a) < from(b); });
  const int end = lp_.turns() * static_cast<int>(lp_.slots.size());
  int slot = 0;
  double left = lp_.slots[0].seconds;
  for (int u : order) {
    const LpUnit& unit = lp_.units[u];
    const int turn = unit.stored_from - from(u);
    if (from(u) > slot) {
      slot = from(u);
      left = lp_.slots[slot].seconds;
    }
    double seconds = unit.bytes * unit.write_cost;
    slots[u].first = std::min(slot + turn, end - 1);
    while (seconds > left && slot + 1 < end) {
      seconds -= left;
      left = lp_.slots[lp_.slot(++slot)].seconds;
    }
    left -= seconds;
    slots[u].last = std::min(slot + turn, end - 1);
  }
  return slots;
}

std::vector<std::pair<int, Pattern>> PatternPricer::seeds() const {
  constexpr int kMost = 6;  // slots of one transfer that get a pattern each
  const std::vector<std::vector<Span>> loads = latest_loads();
  const std::vector<Span> stores = earliest_stores();
  std::vector<std::pair<int, Pattern>> result;
  for (std::size_t u = 0; u < lp_.units.size(); ++u) {
    const LpUnit& unit = lp_.units[u];
    // `late`: how many slots before its latest a load is.
    const auto pattern = [&](int store, bool from_pool, int late, bool spread) {
      Pattern made;
      made.store = store;
      for (std::size_t g = unit.first_stays && !from_pool ? 1 : 0; g < unit.gaps.size(); ++g) {
        const LpGap& gap = unit.gaps[g];
        const bool absent = from_pool && g == 0;
        const int from = std::max(gap.first, store);
        if (from > gap.last && !absent) continue;
        const int load = !spread ? gap.close : std::max({loads[u][g].last - late, loads[u][g].first, gap.opens});
        if (!gap.loads)
          made.away.push_back({from, gap.last, -1});
        else if (load > from || (absent && load == from))
          made.away.push_back({from, std::min(load - 1, gap.last), load});
      }
      if (!made.away.empty()) result.emplace_back(static_cast<int>(u), std::move(made));
    };
    int wide = 0;
    for (const Span& load : loads[u]) wide = std::max(wide, std::min(load.last - load.first, kMost));
    const bool clean = unit.stored_from == LpUnit::kClean;
    const Span store = clean ? Span{-1, -1} : stores[u];
    if (!unit.pool_only) pattern(clean ? -1 : unit.stored_from, false, 0, false);
    if (unit.pool_start) pattern(-1, true, 0, false);
    for (int late = 0; late <= wide; ++late) {
      if (unit.pool_start) pattern(-1, true, late, true);
      if (unit.pool_only) continue;
      for (int s = store.first; s <= std::min(store.last, store.first + kMost); ++s) pattern(s, false, late, true);
    }
  }
  return result;
}

// No price may ask for more than a second of time costs.
void PatternPricer::make_valid(Prices& prices) const {
  for (std::size_t s = 0; s < prices.read.size(); ++s) {
    const double sum = prices.of_time(s);
    if (sum <= prices.second) continue;
    for (auto* of : {&prices.read, &prices.write, &prices.hbm_read, &prices.hbm_write, &prices.hbm_both})
      (*of)[s] *= prices.second / sum;
  }
}

Priced PatternPricer::price(Prices prices) const {
  make_valid(prices);
  Priced result;
  const double time = lp_.time_scale;
  double sum = 0, size = 0;  // `size`: of the terms, for what rounding may have added
  const auto add = [&](double term) {
    sum += term;
    size += std::abs(term);
  };
  if (prices.start != 0) add(prices.start * (prices.start > 0 ? lp_.starts.least : lp_.starts.most));
  for (std::size_t b = 0; b < prices.memory.size(); ++b) add(prices.memory[b] * lp_.excess[b] / byte_);
  for (std::size_t s = 0; s < prices.read.size(); ++s) {
    const LpSlot& slot = lp_.slots[s];
    add(-(prices.read[s] + prices.write[s]) * slot.seconds * lp_.question.link_share / time);
    add(-(prices.hbm_read[s] * slot.read_bytes + prices.hbm_write[s] * slot.write_bytes +
          prices.hbm_both[s] * slot.both_bytes) /
        lp_.hbm_bandwidth / time);
  }
  for (const LpWait& wait : lp_.waits) {
    double here = 0;
    for (int s = wait.from; s <= wait.to; ++s) here = std::max(here, prices.of_time(s));
    add(-here * wait.seconds / time);
  }
  const At at(*this, prices);
  for (std::size_t u = 0; u < lp_.units.size(); ++u) {
    Pattern pattern;
    add(-at.best(static_cast<int>(u), pattern));
    if (!pattern.away.empty()) result.patterns.emplace_back(static_cast<int>(u), std::move(pattern));
    if (lp_.circle) at.best_by_store(static_cast<int>(u), result.patterns);
  }
  const LpQuestion& asked = lp_.question;
  const double memory = std::accumulate(prices.memory.begin(), prices.memory.end(), 0.0);
  if (asked.bytes)
    add(-prices.second * asked.most_seconds / time);
  else if (asked.more_bytes != 0)
    add(-memory * asked.more_bytes / byte_);
  result.limit = sum - 1e-13 * size;
  if (asked.bytes) result.limit /= std::max(1.0, memory);
  result.prices = std::move(prices);
  return result;
}

}  // namespace hyperoffload
