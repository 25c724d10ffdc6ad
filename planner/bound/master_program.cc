#include "planner/bound/master_program.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hyperoffload {
namespace {

// Where bytes are asked, what the ideal time more costs, in those that are over capacity.
constexpr double kBeyond = 100;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

MasterProgram::MasterProgram(const OffloadLp& lp, double byte_scale) : lp_(lp), time_(lp.time_scale), byte_(byte_scale) {
  clp_.setLogLevel(0);
  clp_.scaling(0);
  add_rows();
  clp_.resize(0, 0);
  const std::vector<CoinBigIndex> none(lower_.size() + 1, 0);
  clp_.addRows(static_cast<int>(lower_.size()), lower_.data(), upper_.data(), none.data(), nullptr, nullptr);
  add_time();
  const int over = static_cast<int>(cost_.size());
  add_over();
  if (lp_.capacity) add_capacity();
  time_columns_ = static_cast<int>(cost_.size());
  flush();
  if (lp_.capacity) ask_question();
  clp_.createStatus();
  // To begin with nothing is away, and less than nothing beyond the excess.
  for (std::size_t k = 0; k < memory_.size(); ++k) {
    clp_.setRowStatus(memory_[k], ClpSimplex::isFixed);
    clp_.setColumnStatus(over + static_cast<int>(k), ClpSimplex::basic);
  }
  bounds_changed_ = false;
}

void MasterProgram::add_rows() {
  double before = 0;
  for (double excess : lp_.excess) {
    rows_.limited.push_back(static_cast<int>(memory_.size()));
    if (excess > 0) memory_.push_back(row((excess - before) / byte_, (excess - before) / byte_));
    rows_.memory.push_back(excess > 0 ? memory_.back() : -1);
    if (excess > 0) before = excess;
  }
  rows_.limited.push_back(static_cast<int>(memory_.size()));
  std::vector<char> loads(lp_.slots.size(), 0), stores = loads;  // by slot: may there be any?
  const auto mark = [&](std::vector<char>& slots, int from, int to) {
    for (int s = from; s <= to; ++s) slots[lp_.slot(s)] = 1;
  };
  for (const LpUnit& unit : lp_.units)
    for (const LpGap& gap : unit.gaps) {
      if (gap.loads) mark(loads, gap.first, gap.close);
      if (unit.stored_from != LpUnit::kClean) mark(stores, unit.stored_from, gap.last);
    }
  // What HBM leaves both directions is no limit where there is but one.
  for (std::size_t s = 0; s < lp_.slots.size(); ++s) {
    const LpSlot& slot = lp_.slots[s];
    const double seconds = slot.seconds / time_;
    rows_.read.push_back(loads[s] ? row(-kInfinity, seconds) : -1);
    rows_.write.push_back(stores[s] ? row(-kInfinity, seconds) : -1);
    const auto hbm = [&](bool any, double bytes) {
      return bytes < 0 || !any ? -1 : row(-kInfinity, bytes / lp_.hbm_bandwidth / time_);
    };
    rows_.hbm_read.push_back(hbm(loads[s], slot.read_bytes));
    rows_.hbm_write.push_back(hbm(stores[s], slot.write_bytes));
    rows_.hbm_both.push_back(hbm(loads[s] && stores[s], slot.both_bytes));
  }
  for (const LpWait& wait : lp_.waits) rows_.wait.push_back(row(wait.seconds / time_, wait.seconds / time_));
  if (std::any_of(lp_.units.begin(), lp_.units.end(), [](const LpUnit& u) { return u.counts; }))
    rows_.starts = row(lp_.starts.least, lp_.starts.most);
  if (lp_.capacity) rows_.seconds = row(-kInfinity, kInfinity);
  for (const LpUnit& unit : lp_.units) rows_.unit.push_back(row(unit.pool_only ? 1 : -kInfinity, 1));
}

void MasterProgram::slot_time(int slot) {
  for (const auto* rows : {&rows_.read, &rows_.write, &rows_.hbm_read, &rows_.hbm_write, &rows_.hbm_both})
    entry((*rows)[slot], -1);
}

void MasterProgram::add_over() {
  for (std::size_t k = 0; k < memory_.size(); ++k) {
    entry(memory_[k], -1);
    if (k + 1 < memory_.size()) entry(memory_[k + 1], 1);
    add_column(0, kInfinity);
  }
}

void MasterProgram::add_time() {
  for (int s = 0; s < static_cast<int>(lp_.slots.size()); ++s) {
    slot_time(s);
    entry(rows_.seconds, 1);
    add_column(1, kInfinity);
  }
  for (std::size_t w = 0; w < lp_.waits.size(); ++w)
    for (int s = lp_.waits[w].from; s <= lp_.waits[w].to; ++s) {
      slot_time(s);
      entry(rows_.wait[w], 1);
      add_column(0, kInfinity);
    }
}

void MasterProgram::away(int from, int to, double value) {
  const int count = static_cast<int>(lp_.excess.size());
  if (to >= count) {
    if (from < count) away(from, count - 1, value);
    away(std::max(0, from - count), to - count, value);
    return;
  }
  const std::size_t first = rows_.limited[from], end = to < from ? first : rows_.limited[to + 1];
  if (first == end) return;
  entry(memory_[first], value);
  if (end < memory_.size()) entry(memory_[end], -value);
}

// The last of the columns that are no patterns. Before it, dear, seconds beyond those allowed: the patterns found so far,
// or decided starts, may not do with fewer.
void MasterProgram::add_capacity() {
  entry(rows_.seconds, -1);
  add_column(0, kInfinity);
  if (!memory_.empty()) entry(memory_.front(), 1);  // of the others as the difference
  add_column(0, 0);
}

void MasterProgram::ask_question() {
  const LpQuestion& asked = lp_.question;
  const double more = asked.more_bytes / byte_;
  for (std::size_t s = 0; s < lp_.slots.size(); ++s) {
    clp_.setObjectiveCoefficient(static_cast<int>(s), asked.bytes ? 0 : 1);
    const double seconds = asked.link_share * lp_.slots[s].seconds / time_;
    for (const int row : {rows_.read[s], rows_.write[s]})
      if (row >= 0) clp_.setRowUpper(row, seconds);
  }
  clp_.setObjectiveCoefficient(time_columns_ - 2, asked.bytes ? kBeyond : 0);
  clp_.setObjectiveCoefficient(time_columns_ - 1, asked.bytes ? 1 : 0);
  clp_.setColumnBounds(time_columns_ - 1, asked.bytes ? 0 : more, asked.bytes ? kInfinity : more);
  clp_.setRowUpper(rows_.seconds, asked.bytes ? asked.most_seconds / time_ : kInfinity);
  bounds_changed_ = true;
}

// Entries of one row are one.
void MasterProgram::add_column(double cost, double upper) {
  const std::size_t from = start_.back();
  std::size_t kept = from;
  for (std::size_t i = from; i < index_.size(); ++i) {
    const auto same = std::find(index_.begin() + from, index_.begin() + kept, index_[i]);
    if (const std::size_t at = same - index_.begin(); at < kept) {
      value_[at] += value_[i];
    } else {
      index_[kept] = index_[i];
      value_[kept++] = value_[i];
    }
  }
  index_.resize(kept);
  value_.resize(kept);
  start_.push_back(static_cast<int>(index_.size()));
  cost_.push_back(cost);
  column_upper_.push_back(upper);
}

void MasterProgram::flush() {
  if (cost_.empty()) return;
  const std::vector<double> zero(cost_.size(), 0.0);
  clp_.addColumns(static_cast<int>(cost_.size()), zero.data(), column_upper_.data(), cost_.data(),
                  start_.data(), index_.data(), value_.data());
  start_.assign(1, 0);
  index_.clear();
  value_.clear();
  cost_.clear();
  column_upper_.clear();
}

void MasterProgram::add(const std::vector<std::pair<int, Pattern>>& patterns) {
  const double hbm = 1 / (lp_.hbm_bandwidth * time_);
  for (const auto& [u, pattern] : patterns) {
    const LpUnit& unit = lp_.units[u];
    const auto move = [&](int slot, const std::vector<int>& link, const std::vector<int>& shared, double cost) {
      const int s = lp_.slot(slot);
      entry(link[s], unit.bytes * cost / time_);
      entry(shared[s], unit.bytes * hbm);
      entry(rows_.hbm_both[s], unit.bytes * hbm);
    };
    if (pattern.store >= 0) move(pattern.store, rows_.write, rows_.hbm_write, unit.write_cost);
    for (const Pattern::Away& away : pattern.away) {
      this->away(away.from, away.to, unit.bytes / byte_);
      if (away.load >= 0) move(away.load, rows_.read, rows_.hbm_read, unit.read_cost);
    }
    entry(rows_.unit[u], 1);
    if (lp_.counts(u, pattern)) entry(rows_.starts, 1);
    add_column(0, kInfinity);
    patterns_.emplace_back(u, pattern);
  }
  flush();
}

// Patterns of the other kind are no longer to be had. (Without a store a unit starts in the pool.)
void MasterProgram::fix_start(int unit, bool in_pool) {
  clp_.setRowLower(rows_.unit[unit], in_pool ? 1 : -kInfinity);
  for (std::size_t p = 0; p < patterns_.size(); ++p)
    if (patterns_[p].first == unit)
      clp_.setColumnUpper(time_columns_ + static_cast<int>(p),
                          (patterns_[p].second.store < 0) == in_pool ? kInfinity : 0);
  bounds_changed_ = true;
}

void MasterProgram::free_start(int unit) {
  clp_.setRowLower(rows_.unit[unit], -kInfinity);
  for (std::size_t p = 0; p < patterns_.size(); ++p)
    if (patterns_[p].first == unit) clp_.setColumnUpper(time_columns_ + static_cast<int>(p), kInfinity);
  bounds_changed_ = true;
}

void MasterProgram::excess_changed() {
  double before = 0;
  for (std::size_t b = 0; b < lp_.excess.size(); ++b) {
    if (rows_.memory[b] < 0) continue;
    const double more = (lp_.excess[b] - before) / byte_;
    clp_.setRowBounds(rows_.memory[b], more, more);
    before = lp_.excess[b];
  }
  bounds_changed_ = true;
}

void MasterProgram::starts_changed() {
  if (rows_.starts < 0) return;
  clp_.setRowBounds(rows_.starts, lp_.starts.least, lp_.starts.most);
  bounds_changed_ = true;
}

bool MasterProgram::solve(double work) {
  constexpr int kStopped = 3;
  constexpr double kMost = std::numeric_limits<int>::max();
  clp_.setMaximumIterations(static_cast<int>(std::min(kMost, 1 + work / rows())));
  if (std::exchange(bounds_changed_, false))
    clp_.dual(0, 7);
  else
    clp_.primal(0, 7);
  if (clp_.status() == kStopped) return false;
  if (clp_.status() != 0) clp_.primal();
  return clp_.status() != kStopped;
}

void MasterProgram::read_solution(LpOutcome& out) const {
  const double* value = clp_.getColSolution();
  for (std::size_t s = 0; s < lp_.slots.size(); ++s) out.waits.push_back(std::max(0.0, value[s]) * time_);
  for (std::size_t p = 0; p < patterns_.size(); ++p)
    if (const double share = value[time_columns_ + p]; share > 1e-6)
      out.shares.push_back({patterns_[p].first, share, patterns_[p].second});
}

Prices MasterProgram::prices() {
  const double* dual = clp_.getRowPrice();
  Prices prices(lp_.slots.size(), lp_.excess.size());
  for (std::size_t b = 0; b < lp_.excess.size(); ++b)
    if (const int row = rows_.memory[b]; row >= 0)
      prices.memory[b] = std::max(0.0, dual[row] - (row < memory_.back() ? dual[row + 1] : 0));
  const auto take = [&](std::vector<double>& to, const std::vector<int>& rows) {
    for (std::size_t s = 0; s < rows.size(); ++s)
      if (rows[s] >= 0) to[s] = std::max(0.0, -dual[rows[s]]);
  };
  if (rows_.starts >= 0) prices.start = dual[rows_.starts];
  if (lp_.question.bytes) prices.second = std::max(0.0, -dual[rows_.seconds]);
  take(prices.read, rows_.read);
  take(prices.write, rows_.write);
  take(prices.hbm_read, rows_.hbm_read);
  take(prices.hbm_write, rows_.hbm_write);
  take(prices.hbm_both, rows_.hbm_both);
  return prices;
}

}  // namespace hyperoffload
