// Lifetimes, versions and gaps: what could be elsewhere, when, and what it would take.
//
// Glossary. *Position*: 0 is an iteration's start (its inputs), s + 1 is op s, P = ops + 1 positions;
// P + p is p of the next iteration. *Gap*: the positions strictly between two accesses of a tensor
// (`open`, `close`), in which it may leave HBM. With one iteration a persistent tensor also has the gap
// before its first access (open = -1: it may start in the pool, free of charge) and the one after its
// last (close = P: it need not come back). With more, these two are one gap that wraps around
// (close >= P). *Version*: the gaps from one write to the next; the tensor is stored at most once a
// version, whichever of its gaps are used. *Piece*: an equal part of a tensor that moves on its own;
// a gap of one piece is a *unit*, the thing the passes choose.
// All indices are flat. O(ops + accesses + units).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/analysis/flat_graph.h"

namespace hyperoffload {

struct Gap {
  std::int32_t tensor;
  std::int32_t open;   // position of the access before it; -1: none
  std::int32_t close;  // position of the access after it; > open
  std::int32_t version;
  std::int32_t first_unit;
  bool loads;      // the access after it reads: the bytes must come back
  bool next_turn;  // lies in the iteration after its version's write
};

struct Version {
  std::int32_t tensor;
  std::int32_t written;          // position of the write; -1: unwritten since the iteration's start
  std::int32_t first_gap, gaps;  // in the order in which they come
  std::int32_t first_slot;       // first of its tensor's pieces in arrays by (version, piece)
};

struct LivenessOptions {
  bool repeats = false;          // more than one iteration
  std::int64_t piece_bytes = 0;  // no piece is larger, but for whole tensors: 0
};

struct Liveness {
  Liveness(const FlatGraph& graph, const LivenessOptions& options);

  int positions = 0;
  bool repeats = false;
  std::vector<Gap> gaps;                  // by tensor, in program order
  std::vector<Version> versions;          // by tensor
  std::vector<std::int32_t> gap_begin;    // by tensor, and one more
  std::vector<std::int32_t> pieces;       // by tensor
  std::vector<std::int32_t> gap_of_unit;  // by unit
  std::vector<std::int64_t> resident;     // by position: bytes if nothing ever leaves
  std::vector<std::int64_t> working_set;  // by position: bytes that must be there
  int slots = 0;                          // (version, piece) pairs

  int units() const { return static_cast<int>(gap_of_unit.size()); }
  int piece_of(int unit) const { return unit - gaps[gap_of_unit[unit]].first_unit; }
  std::int64_t piece_from(int tensor, int piece) const;  // first byte
  std::int64_t piece_bytes(int tensor, int piece) const {
    return piece_from(tensor, piece + 1) - piece_from(tensor, piece);
  }
  // Behind the last position the gap can free. No action can stand between an iteration's start and its
  // first op, so what that op reads counts at position 0, too.
  int freed_until(const Gap& gap) const {
    return gap.loads && gap.close % positions == 1 ? gap.close - 1 : gap.close;
  }
  const Gap& gap(int unit) const { return gaps[gap_of_unit[unit]]; }
  std::int64_t unit_bytes(int unit) const { return piece_bytes(gap(unit).tensor, piece_of(unit)); }
  // Whether the unit has a valid pool copy when its gap opens without being stored for it: unwritten
  // since it started in the pool (given which units are evicted), or, in a repeated body, ever.
  bool clean(const FlatGraph& graph, const std::vector<char>& evicted, int unit) const;
  int slot(int unit) const { return versions[gaps[gap_of_unit[unit]].version].first_slot + piece_of(unit); }

 private:
  void add_tensor(const FlatGraph& graph, int tensor);
  std::vector<std::int64_t> bytes_;
};

}  // namespace hyperoffload
