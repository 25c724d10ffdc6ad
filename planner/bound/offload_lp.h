// The linear program behind lp_bound.h, solved by column generation: which share of each stay leaves HBM
// when, against the memory over capacity at each boundary and the time of each link in each slot.
//
// Boundaries 0..K-1 are instants of the timeline, slot s the time between boundary s-1 and s; slot K comes
// behind the last. A *pattern* of a unit says in which slot its store ends, and for each gap from which
// boundary on it is gone and in which slot it is loaded. Given prices for memory (by boundary) and for link
// time (by slot) the best pattern of a unit is found by one scan, so that ANY nonnegative prices prove a
// lower limit by weak duality:
//   sum(memory price x excess) - sum(link price x time) - sum over units of what its best pattern gains.
// Clp only looks for good prices, over the patterns found so far; `lower` is computed here from the prices,
// and holds whatever the solver's tolerances. Units: seconds and bytes; scaled inside.
// Where the least capacity is asked, memory prices that sum up to one and any price of a second prove by the same sum, less
// that price x the seconds allowed, how many bytes more are needed.
// On a circle the last boundary is followed by the first: there are K slots, slot 0 lies between the two, and
// units count on past K, where K + b is b of the next turn.
// Clp is given what is away from one boundary to the next, so that a pattern's column is as short as its list of
// transfers: with all its boundaries a gap across 774 of them made a program ten to thirty times slower.
// Cost: rounds x (sum of the gaps' lengths + one warm simplex).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace hyperoffload {

struct LpGap {
  int first, last;  // boundaries it is idle at; last < first: none
  int close;        // loads: by the end of this slot
  bool loads;
  int opens = 0;  // its load: in no earlier slot; at most `close`
};

struct LpUnit {
  static constexpr int kClean = -1;
  double bytes;
  double read_cost, write_cost;  // link seconds a byte
  int stored_from;               // first slot for its store; kClean: none is needed
  bool pool_start, pool_only;    // it may, it must start in the pool; then no store
  std::vector<LpGap> gaps;
  bool counts = false;       // LpStarts counts it
  bool first_stays = false;  // what starts in HBM stays there in the first gap: for plans that can't do else, no bound

  int gap_at(int boundary) const {  // the one that is idle there
    int g = 0;
    while (g + 1 < static_cast<int>(gaps.size()) && gaps[g + 1].first <= boundary) ++g;
    return g;
  }
};

struct LpSlot {
  double seconds = 0;  // at least
  // HBM bandwidth left for copies in that time, bytes in either direction and both; negative: no limit.
  double read_bytes = -1, write_bytes = -1, both_bytes = -1;
};

struct LpWait {  // seconds that lie somewhere in these slots
  int from, to;
  double seconds;
};

struct Pattern {
  struct Away {
    int from, to;  // boundaries
    int load;      // slot; -1: none
  };
  int store = -1;  // slot; -1: none
  std::vector<Away> away;
};

// Of the units that count, so many start in the pool: what branch_starts.h decides.
struct LpStarts {
  double least = 0, most = 1e18;
};

// Asked of a program with `capacity`, in place of the least seconds above slots and waits.
struct LpQuestion {
  bool bytes = false;      // the least capacity more at which these are at most `most_seconds`; else the seconds
  double most_seconds = 0;
  double more_bytes = 0;   // of capacity; of no use if that is asked
  double link_share = 1;   // of each slot; below 1 for plans that need room, no bound
};

struct OffloadLp {
  bool circle = false;
  bool capacity = false;       // it is a column, so that a question can be asked
  std::vector<LpSlot> slots;   // K + 1; on a circle K
  std::vector<double> excess;  // by boundary: bytes over capacity if nothing leaves; <= 0: no limit there
  std::vector<LpWait> waits;
  std::vector<LpUnit> units;
  LpStarts starts;
  LpQuestion question;
  double hbm_bandwidth = 1;
  double time_scale = 1;

  // A unit without a store starts in the pool.
  bool counts(int u, const Pattern& pattern) const { return units[u].counts && pattern.store < 0 && !pattern.away.empty(); }
  int turns() const { return circle ? 2 : 1; }
  int slot(int s) const {  // s from -K on
    const int count = static_cast<int>(slots.size());
    return (s + count) % count;
  }
};

struct LpShare {  // of a unit's bytes that go by a pattern
  int unit;
  double share;
  Pattern pattern;
};

// Rounds enough for the proof to reach what is known of a short trace's program (it may creep up for two hundred); a long
// one's ends within so few, or takes too long.
inline constexpr int kManyRounds = 250, kFewRounds = 60;

struct LpLimits {
  int rounds = kManyRounds;
  double tolerance = 1e-4;  // stop when the limits are this close, as a share of the upper one
  double seconds = 0;       // or this close; bytes, where these are asked
  double work = std::numeric_limits<double>::infinity();  // the most pivots x rows of the simplex
};

struct LpOutcome {
  double lower = 0;             // proven: seconds above all slots' and waits', or bytes (LpQuestion)
  double upper = 0;             // of the relaxation, by the patterns found
  double seconds_per_byte = 0;  // by the same prices, `lower` falls by this for every byte of capacity more
  int rounds = 0, rows = 0, columns = 0;
  double work = 0;       // pivots x rows
  bool complete = true;  // false: `work` ran out within the simplex, so that shares and waits mean nothing
  std::vector<LpShare> shares;  // of the relaxation's solution
  std::vector<double> waits;    // by slot: its seconds more
};

// By unit: the share of its bytes that is not stored; of one that may start in the pool, that which does.
std::vector<double> shares_not_stored(const OffloadLp& lp, const LpOutcome& outcome);

LpOutcome solve(const OffloadLp& lp, const LpLimits& limits);

// The same, several times over, each time with some units' start decided; goes on from where it was.
class OffloadSolver {
 public:
  explicit OffloadSolver(OffloadLp lp);
  ~OffloadSolver();
  LpOutcome solve(const LpLimits& limits);
  void fix_start(int unit, bool in_pool);
  void free_start(int unit);
  void set_starts(const LpStarts& starts);
  void ask(const LpQuestion& question);  // of a program with `capacity`
  // Where the program had a limit before, that is.
  void set_excess(std::vector<double> excess);
  const OffloadLp& lp() const { return lp_; }

 private:
  struct State;
  OffloadLp lp_;
  std::unique_ptr<State> state_;
};

std::string clp_version();  // the solver's, like "1.17.6"

}  // namespace hyperoffload
