// Lifetimes, versions and gaps: what could be elsewhere, when, and what it would take.
//
// Glossary. *Position*: 0 is an iteration's start (its inputs), s + 1 is op s, P = ops + 1 positions;
// P + p is p of the next iteration. *Gap*: the positions strictly between two accesses of a tensor in
// HBM (`open`, `close`), in which it may leave HBM. With one iteration a persistent tensor also has the
// gap before its first access (open = -1: it may start in the pool, free of charge) and the one after
// its last (close = P: it need not come back). With more, these two are one gap that wraps around
// (close >= P). Where ops in the pool access the tensor in a gap, it must leave. *Version*: the gaps
// from one write to the next; the tensor is stored at most once a version, whichever of its gaps are
// used. *Piece*: a part of a tensor that moves on its own, all equal but for cuts; a gap of one piece is a *unit*, the
// thing the passes choose. *Anchor*: the position a transfer stands behind; 0 (or P, ...): the start.
// All indices are flat. O(ops + accesses + units).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "planner/analysis/overlap.h"

namespace hyperoffload {

struct Gap {
  std::int32_t tensor;
  std::int32_t open;   // position of the access before it; -1: none
  std::int32_t close;  // position of the access after it; > open
  std::int32_t until;  // behind the last position it can free
  std::int32_t version;
  std::int32_t first_unit;
  bool loads;             // the access after it reads: the bytes must come back
  bool next_turn;         // lies in the iteration after its version's write
  bool must_leave;        // an op in the pool accesses the tensor
  std::int32_t leave_by;  // then: position of the first write there, and of the last
  std::int32_t resume;  // no load stands behind an earlier position: that last write, or the op that tells what is read
};

struct Version {
  std::int32_t tensor;
  std::int32_t written;          // position of the write; -1: none since the iteration's start
  bool clean;                    // written in the pool: a valid copy is there
  std::int32_t first_gap, gaps;  // in the order in which they come
  std::int32_t first_slot;       // first of its tensor's pieces in arrays by (version, piece)
};

struct LivenessOptions {
  bool repeats = false;          // more than one iteration
  std::int64_t piece_bytes = 0;  // no piece is larger; 0: whole tensors
  std::vector<std::vector<std::int64_t>> cuts = {};  // by tensor, or none: where it is cut in any case; ascending, inside it
};

class Liveness {
 public:
  Liveness(const FlatGraph& graph, const LivenessOptions& options);

  int positions = 0;
  bool repeats = false;
  bool reads_known_late = false;        // some op has `known_after`
  std::vector<Gap> gaps;                // by tensor, in the order of their versions
  std::vector<Version> versions;        // by tensor
  std::vector<std::int32_t> gap_begin;  // by tensor, and one more
  std::vector<std::int32_t> pieces;     // by tensor
  std::vector<std::int32_t> gap_of_unit;
  std::vector<std::int64_t> resident;       // by position: bytes and charges if nothing ever leaves
  std::vector<std::int64_t> working_set;    // by position: bytes and charges that must be there
  std::vector<std::int64_t> pool_resident;  // by position: in the pool whatever leaves HBM
  std::vector<char> pool_only;              // by tensor: never accessed in HBM
  std::vector<char> pool_touched;           // by tensor: accessed by ops in the pool
  int slots = 0;                            // (version, piece) pairs

  int units() const { return static_cast<int>(gap_of_unit.size()); }
  const Gap& gap(int unit) const { return gaps[gap_of_unit[unit]]; }
  int piece_of(int unit) const { return unit - gap(unit).first_unit; }
  std::int64_t piece_from(int tensor, int piece) const;  // first byte
  std::int64_t piece_bytes(int tensor, int piece) const {
    return piece_from(tensor, piece + 1) - piece_from(tensor, piece);
  }
  std::int64_t unit_bytes(int unit) const { return unit_bytes_[unit]; }
  int slot(int unit) const { return versions[gap(unit).version].first_slot + piece_of(unit); }
  // Whether the unit has a valid pool copy when its gap opens without being stored for it: written in
  // the pool, or unwritten since it started there (given which units are evicted), or, in a repeated
  // body, unwritten ever.
  bool clean(const FlatGraph& graph, const std::vector<char>& evicted, int unit) const;

  // From where a load behind `anchor` counts.
  int counts_from(int anchor) const {
    if (anchor < 0) return 0;
    const int start = anchor / positions * positions;  // of its iteration
    return start + overlap_.counts_from[anchor - start];
  }
  // The first anchor from `position` on, before `close`, behind which a load leaves `position` free; or
  // `close` if there is none.
  int anchor_freeing(int position, int close) const;
  // The latest position from which a load can count that is anchored within (floor, anchor].
  int latest_count(int anchor, int floor) const;

 private:
  struct Touch {
    int position;
    bool reads, writes, pool;
  };
  struct Between {  // of ops in the pool, on the axis of the gap
    bool any = false;
    int first_write = -1, last_write = -1;
  };
  void reserve(const FlatGraph& graph, const LivenessOptions& options);
  void find_touches(const FlatGraph& graph, int tensor, std::vector<Touch>& list) const;
  void add_lifetime(const FlatGraph& graph, int tensor, const std::vector<Touch>& list);
  void add_gaps(const FlatGraph& graph, int tensor, const std::vector<Touch>& list);
  void add_gaps_once(int tensor, bool persistent, const std::vector<Touch>& list,
                     const std::vector<int>& hbm);
  void add_gaps_circle(int tensor, const std::vector<Touch>& list, const std::vector<int>& hbm);
  void begin_version(int tensor, int written, bool clean);
  void add_gap(int tensor, int open, int close, bool loads, bool next_turn, const Between& between);
  void add_pool_residents(const FlatGraph& graph);
  void add_working_sets(const FlatGraph& graph);
  void add_pinned(const FlatGraph& graph);

  std::vector<std::int64_t> bytes_, unit_bytes_;
  std::vector<std::vector<std::int64_t>> piece_from_;  // by tensor, with its end; only with cuts
  std::vector<std::int32_t> known_;  // by position: that of the op after which its reads are known; -1: from the start
  Overlap overlap_;
};

}  // namespace hyperoffload
