// Prices, and the pattern of each unit that gains most at them (offload_lp.h). In scaled units.
#pragma once

#include <utility>
#include <vector>

#include "planner/bound/offload_lp.h"

namespace hyperoffload {

struct Prices {
  Prices() = default;
  Prices(std::size_t slots, std::size_t boundaries)
      : memory(boundaries, 0), read(slots, 0), write(slots, 0), hbm_read(slots, 0), hbm_write(slots, 0),
        hbm_both(slots, 0) {}
  std::vector<double> memory;  // by boundary
  std::vector<double> read, write, hbm_read, hbm_write, hbm_both;  // by slot
  double second = 1;  // what no slot's prices exceed; other than one only where bytes are asked
  double start = 0;  // of a unit that starts in the pool, of those that count; below 0: at most so many may

  double of_time(std::size_t slot) const {
    return read[slot] + write[slot] + hbm_read[slot] + hbm_write[slot] + hbm_both[slot];
  }
  Prices mixed(const Prices& other, double weight) const;
};

struct Priced {
  Prices prices;     // scaled down to where they prove something
  double limit = 0;  // proven by them
  std::vector<std::pair<int, Pattern>> patterns;
};

class PatternPricer {
  struct Span {  // slots
    int first = -1, last = -1;
  };

 public:
  PatternPricer(const OffloadLp& lp, double byte_scale) : lp_(lp), byte_(byte_scale) {}
  // Patterns to begin with: one a unit that clears all it can, and one that takes its turn on the links.
  std::vector<std::pair<int, Pattern>> seeds() const;
  Priced price(Prices prices) const;

  // What patterns gain at given prices.
  class At {
   public:
    At(const PatternPricer& pricer, const Prices& prices);
    double gain(int unit, const Pattern& pattern) const;
    double best(int unit, Pattern& pattern) const;  // 0 and no pattern if none gains
    // Of each of several windows that its store may end in; nothing for a unit that needs none.
    void best_by_store(int unit, std::vector<std::pair<int, Pattern>>& patterns) const;

   private:
    double load_price(const LpUnit& unit, int slot) const {
      return unit.bytes * (unit.read_cost * read_[slot] + hbm_load_[slot]);
    }
    double store_price(const LpUnit& unit, int slot) const {
      return unit.bytes * (unit.write_cost * write_[slot] + hbm_store_[slot]);
    }
    double relief(const LpUnit& unit, int from, int to) const {
      return to < from ? 0 : unit.bytes * (relief_[to + 1] - relief_[from]);
    }
    static Span all_stores(const LpUnit& unit) { return {unit.stored_from, unit.gaps.back().last}; }
    Pattern::Away away(const LpUnit& unit, const LpGap& gap, int from, bool absent, double& gain) const;
    double whole(const LpUnit& unit, std::size_t gap, bool absent, Pattern::Away& best) const;
    double stored(const LpUnit& unit, Pattern& pattern, Span stores) const;
    double from_pool(const LpUnit& unit, Pattern& pattern) const;

    const OffloadLp& lp_;
    std::vector<double> relief_;  // prefix sums of the memory price
    std::vector<double> read_, write_, hbm_load_, hbm_store_;
    double start_ = 0;
  };

 private:
  void make_valid(Prices& prices) const;
  std::vector<std::vector<Span>> latest_loads() const;
  std::vector<Span> earliest_stores() const;

  const OffloadLp& lp_;
  const double byte_;
};

}  // namespace hyperoffload
