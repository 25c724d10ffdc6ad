// Bytes taken in both tiers while a walk goes on, by tensor: how much is resident in HBM, how much of
// the pool is the tensor's own (valid or stale), as allocated: each piece that the plan's actions cut is
// one allocation. Pieces only need their ranges remembered in the pool, where a later store reuses bytes;
// in HBM a valid plan moves what is wholly there or wholly absent.
// Bytes as int64. All O(1) but for stores of pieces, O(pieces of the tensor).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "sim/model/plan.h"
#include "sim/model/residency.h"

namespace hyperoffload {

class WalkMemory {
 public:
  // `watch`, if any, is told who comes into HBM and goes.
  WalkMemory(const FlatGraph& graph, const Plan& plan, const std::vector<char>& starts_in_pool,
             Residency* watch = nullptr);

  std::int64_t hbm_free() const { return hbm_ - hbm_used_; }
  std::int64_t pool_free() const { return graph_.machine.pool - pool_used_; }
  std::int64_t hbm_used() const { return hbm_used_; }
  std::int64_t pool_used() const { return pool_used_; }
  std::int64_t in_hbm(int tensor) const { return resident_[tensor]; }
  std::int64_t in_pool(int tensor) const { return own_[tensor]; }  // its pool bytes, valid or stale
  std::int64_t hbm_peak() const { return hbm_peak_; }
  std::int64_t pool_peak() const { return pool_peak_; }

  // What an op takes at its start: bytes born at it or missing of what it only writes, and workspace.
  std::int64_t need(int op) const;
  void start_op(int op);
  void end_op(int op);  // its workspace
  void take_input(int tensor);

  std::int64_t need(const Action& action) const;  // of the tier a transfer fills
  void start_transfer(const Action& action);
  void detach(const Action& action);
  void die(int tensor);

 private:
  std::int64_t missing(int op, int tensor) const {
    return graph_.in_pool[op] ? whole_[tensor] - own_[tensor] : graph_.bytes[tensor] - resident_[tensor];
  }
  std::int64_t workspace(int op) const {
    return graph_.in_pool[op] ? graph_.machine.pool_bytes(graph_.workspace[op]) : graph_.workspace[op];
  }
  std::int64_t fresh(int tensor, std::int64_t from, std::int64_t to) const;
  void take_hbm(std::int64_t bytes) { hbm_peak_ = std::max(hbm_peak_, hbm_used_ += bytes); }
  void take_pool(std::int64_t bytes) { pool_peak_ = std::max(pool_peak_, pool_used_ += bytes); }

  const FlatGraph& graph_;
  const Plan& plan_;
  const std::int64_t hbm_;
  Residency* const watch_;
  std::int64_t hbm_used_ = 0, pool_used_ = 0, hbm_peak_ = 0, pool_peak_ = 0;
  std::vector<std::int64_t> resident_, own_;
  std::vector<std::int64_t> whole_;               // what it takes in the pool
  std::vector<std::vector<std::int64_t>> cuts_;  // offsets within tensors that actions cut; else empty
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> own_ranges_;  // pieces; sorted, disjoint
};

}  // namespace hyperoffload
