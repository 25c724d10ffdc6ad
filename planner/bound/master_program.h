// The master program of offload_lp.h: the patterns found so far as columns, kept in Clp between rounds. Its prices are
// what patterns are looked for by; its solution is the relaxation's by those patterns.
// Scaled: seconds by OffloadLp::time_scale, bytes by `byte_scale`. Memory: the columns' entries, four a transfer.
#pragma once

#include <ClpSimplex.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "planner/bound/offload_lp.h"
#include "planner/bound/pattern_prices.h"

namespace hyperoffload {

// Row numbers of the master program; -1: no such row. A boundary's memory row is what is away there, less what is
// away beyond the excess (a column), less the same of the limited boundary before: so that a gap has two entries,
// however long it is. Its price is the difference of its row's and the next one's.
struct MasterRows {
  std::vector<int> memory, read, write, hbm_read, hbm_write, hbm_both, wait, unit;
  std::vector<int> limited;  // by boundary: limited ones before it
  int starts = -1, seconds = -1;
};

class MasterProgram {
 public:
  MasterProgram(const OffloadLp& lp, double byte_scale);
  void add(const std::vector<std::pair<int, Pattern>>& patterns);
  bool solve(double work);  // false: that many pivots x rows aren't enough
  double objective() const { return clp_.objectiveValue(); }
  void read_solution(LpOutcome& out) const;
  void fix_start(int unit, bool in_pool);
  void free_start(int unit);
  void excess_changed();
  void starts_changed();
  void ask_question();
  Prices prices();
  double unit_price(int unit) const {  // what its best pattern so far gains
    const double price = -clp_.getRowPrice()[rows_.unit[unit]];
    return lp_.units[unit].pool_only ? price : std::max(0.0, price);
  }
  int rows() const { return clp_.numberRows(); }
  int columns() const { return clp_.numberColumns(); }
  double work() const { return static_cast<double>(clp_.numberIterations()) * rows(); }  // of the last solve

 private:
  int row(double lower, double upper) {
    lower_.push_back(lower);
    upper_.push_back(upper);
    return static_cast<int>(lower_.size()) - 1;
  }
  void add_rows();
  void add_time();
  void add_over();
  void add_capacity();
  void away(int from, int to, double value);
  void add_column(double cost, double upper);
  void entry(int row, double value) {  // of the column that comes next
    if (row < 0 || value == 0) return;
    index_.push_back(row);
    value_.push_back(value);
  }
  void slot_time(int slot);
  void flush();

  const OffloadLp& lp_;
  const double time_, byte_;  // scales
  MasterRows rows_;
  std::vector<int> memory_;  // rows of limited boundaries
  std::vector<double> lower_, upper_;
  ClpSimplex clp_;
  int time_columns_ = 0;
  bool bounds_changed_ = false;
  std::vector<std::pair<int, Pattern>> patterns_;  // by column behind those
  // Columns not given to Clp yet.
  std::vector<int> start_{0}, index_;
  std::vector<double> value_, cost_, column_upper_;
};

}  // namespace hyperoffload
