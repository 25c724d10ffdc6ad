// What one engine's own timeline says for sure about every tensor: where it lies idle, and what it takes to
// be elsewhere then. The input of the linear relaxation (lp_bound.h).
//
// Positions: 2k is the start of the op at place k of the engine, 2k + 1 its end (what it frees not yet
// freed). Own accesses keep a tensor in HBM from 2k to 2k + 1. An access of another engine, or of an op in
// the pool, happens somewhere between two positions, `done` (its own engine's last op that is surely over
// when it starts) and `next` (the first that surely starts behind it): its reads are left out, its writes
// begin a new version. An *idle gap* holds the positions strictly between `after` and `until`; if it
// `loads`, the bytes must be back by `close`. A *stay* is one version of a tensor, from a write to the next:
// within it one store serves all its gaps. `stored_from`: its store ends behind that position; kClean: it has
// a pool copy. `pool_start`: a cold pass may begin with it in the pool instead, with a copy; `pool_only`: must.
// `circle`: the iteration's end is its start (one engine, no ops in the pool); positions go on past the end, where
// 2 x places + p is p of the next turn.
// `known_after`: a load for a read begins no earlier than the end of the op that tells of it, unless a later read of the same
// bytes is known earlier (IdleGap::known).
// O(ops + dependencies + accesses).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/analysis/flat_graph.h"

namespace hyperoffload {

struct IdleGap {
  int after, until, close;  // positions
  bool loads;
  int known = -1;  // position before which its load doesn't begin
};

struct Stay {
  static constexpr int kClean = -2;
  int tensor;
  int stored_from;  // -1: from the iteration's start
  bool pool_start = false, pool_only = false;
  std::vector<IdleGap> gaps;
};

// Waiting that other engines force on this one, whatever moves: somewhere behind `from`, before `to`.
struct ForcedWait {
  int from, to;  // positions; -1: the iteration's start; 2 x places: its end
  double seconds;
};

struct EngineView {
  EngineView(const FlatGraph& graph, int engine, int iterations, bool circle = false, bool known_after = false);

  int places = 0;
  std::vector<std::int32_t> op;           // by place
  std::vector<std::int64_t> working_set;  // by place: bytes in HBM from its start to its end
  std::vector<std::int64_t> resident;     // by position: the same, and all that lies idle
  std::vector<Stay> stays;
  std::vector<ForcedWait> waits;  // disjoint
  double alone = 0;               // ops and forced waits: least time of an iteration

  // By position: bytes over that capacity if nothing leaves.
  std::vector<std::int64_t> excess(std::int64_t hbm) const;

 private:
  struct Around {
    int done, next;  // positions
  };
  void place_others(const FlatGraph& graph, int engine);
  void find_waits(const FlatGraph& graph, int engine);
  std::vector<int> known(const FlatGraph& graph, int engine, int tensor) const;
  void add_tensor(const FlatGraph& graph, int engine, int tensor);
  void add_circle(const FlatGraph& graph, int tensor);
  void add_gap(Stay& stay, IdleGap gap) const;
  void add_idle(const IdleGap& gap, std::int64_t bytes);
  void keep(const FlatGraph& graph, Stay stay);

  int iterations_;
  bool circle_, known_after_;
  std::vector<Around> around_;  // by op of other engines or in the pool
};

// With the stays in order of their first use, ties by the tensors' rank: of several solutions the solver takes one by the
// order of units, and that must not be the file's.
EngineView in_time(EngineView view, const std::vector<std::int32_t>& rank);

}  // namespace hyperoffload
