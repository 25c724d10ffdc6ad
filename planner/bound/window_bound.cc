#include "planner/bound/window_bound.h"

#include <algorithm>
#include <cmath>

#include "planner/bound/engine_line.h"

namespace hyperoffload {
namespace {

// Pairs of a grid of this many places see what windows of doubling length miss; all pairs of a short trace.
constexpr int kGrid = 256;

struct Window {
  int begin, end;              // places
  std::int64_t reads, writes;  // bytes demanded
};

// All windows of one engine, by their end.
class Windows {
 public:
  explicit Windows(const EngineLine& line);
  template <class Visit>
  void ending_at(int end, Visit visit) const {
    for (std::size_t k = 0; k < reads_.size(); ++k)
      if (const int begin = end - (1 << k); begin >= 0)
        visit(Window{begin, end, reads_[k][begin], writes_[k][begin]});
    if (end % step_ != 0 && end != places_) return;
    const std::size_t column = column_of(end);
    for (std::size_t row = 0; row < column; ++row)
      visit(Window{places_of_[row], end, grid_reads_[row * places_of_.size() + column],
                   grid_writes_[row * places_of_.size() + column]});
  }

 private:
  std::size_t column_of(int place) const { return (place + step_ - 1) / step_; }  // first at or behind it
  std::vector<std::int64_t> grid(const std::vector<Demand>& demands) const;

  int places_, step_;
  std::vector<std::vector<std::int64_t>> reads_, writes_;  // by length 2^k, by begin
  std::vector<int> places_of_;                             // by row or column of the grid
  std::vector<std::int64_t> grid_reads_, grid_writes_;
};

Windows::Windows(const EngineLine& line)
    : places_(line.places), step_(std::max(1, (line.places + kGrid - 1) / kGrid)) {
  if (step_ > 1)
    for (int length = 1; length <= places_; length *= 2) {
      reads_.push_back(line.by_begin(line.reads, length));
      writes_.push_back(line.by_begin(line.writes, length));
    }
  for (int place = 0; place < places_; place += step_) places_of_.push_back(place);
  places_of_.push_back(places_);
  grid_reads_ = grid(line.reads);
  grid_writes_ = grid(line.writes);
}

std::vector<std::int64_t> Windows::grid(const std::vector<Demand>& demands) const {
  const std::size_t n = places_of_.size();
  std::vector<std::int64_t> sums((n + 1) * (n + 1), 0);
  const auto at = [&](std::size_t row, std::size_t column) -> std::int64_t& {
    return sums[row * (n + 1) + column];
  };
  for (const Demand& d : demands) {
    // Rows and columns whose places lie in the two ranges; the last one is the end, behind all steps.
    const std::size_t row = column_of(d.begin_from), rows = column_of(d.begin_to + 1);
    const std::size_t column = column_of(d.end_from),
                      columns = d.end_to == places_ ? n : column_of(d.end_to + 1);
    if (row >= rows || column >= columns) continue;
    at(row, column) += d.bytes;
    at(rows, column) -= d.bytes;
    at(row, columns) -= d.bytes;
    at(rows, columns) += d.bytes;
  }
  std::vector<std::int64_t> result(n * n);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t c = 0; c < n; ++c) {
      if (r > 0) at(r, c) += at(r - 1, c);
      if (c > 0) at(r, c) += at(r, c - 1);
      if (r > 0 && c > 0) at(r, c) -= sums[(r - 1) * (n + 1) + c - 1];
      result[r * n + c] = at(r, c);
    }
  return result;
}

class WindowBound {
 public:
  WindowBound(const FlatGraph& graph, double ideal, int iterations)
      : graph_(graph), ideal_(ideal), iterations_(iterations) {
    lines_.reserve(graph.engines);
    for (int e = 0; e < graph.engines; ++e) lines_.emplace_back(graph, e);
  }
  Bound run();

 private:
  double span(const EngineLine& line, const Window& window) const;
  double cold_start(const EngineLine& line, int place) const;
  double latencies(double latency, std::int64_t bytes, std::int64_t largest) const {
    return latency * std::ceil(static_cast<double>(bytes) / static_cast<double>(largest));
  }
  std::vector<std::int64_t> bound_to_pool(int engine) const;
  void find_earliest_and_tails();
  double least_end() const;
  std::int64_t least_hbm() const;
  std::int64_t least_hbm(int engine, const Window& window) const;

  const FlatGraph& graph_;
  const double ideal_;
  const int iterations_;
  std::vector<EngineLine> lines_;
  std::vector<Windows> windows_;
  std::vector<double> earliest_, tail_;  // by op: from the iteration's start, to its end; ops alone
};

// Least time from the window's first start to its last.
double WindowBound::span(const EngineLine& line, const Window& w) const {
  const NpuMachine& m = graph_.machine;
  const double alone = line.time[w.end] - line.time[w.begin];
  const std::int64_t load = w.reads - (m.hbm - line.only_writes[w.begin]),
                     store = w.writes - (m.hbm - line.born[w.end]);
  double least = alone;
  if (store > 0)
    least = std::max(least, latencies(m.write_latency, store, line.largest) +
                                static_cast<double>(store) / std::min(m.write_bandwidth, m.hbm_bandwidth));
  if (load <= 0) return least;
  const double link = std::min(m.read_bandwidth, m.hbm_bandwidth), bytes = static_cast<double>(load);
  least = std::max(least, latencies(m.read_latency, load, line.largest) + bytes / link);
  const double over = bytes - (line.free_bytes[w.end] - line.free_bytes[w.begin]);
  const double slow = std::min(std::max(over, 0.0), line.slow_bytes[w.end] - line.slow_bytes[w.begin]);
  return std::max(least, alone + slow / m.hbm_bandwidth + std::max(0.0, over - slow) / link);
}

// Least time from the iteration's start, in a single pass, to move what can't all be in HBM by then.
double WindowBound::cold_start(const EngineLine& line, int place) const {
  const NpuMachine& m = graph_.machine;
  const std::int64_t moved = line.touched[place] - (m.hbm - line.born[place]);
  if (moved <= 0) return 0;
  return static_cast<double>(moved) / std::min(m.read_bandwidth + m.write_bandwidth, m.hbm_bandwidth);
}

// By place: what a cold pass must load before it, of tensors that start in the pool whatever the plan.
std::vector<std::int64_t> WindowBound::bound_to_pool(int engine) const {
  std::vector<std::int64_t> bytes(lines_[engine].places + 1, 0);
  for (int t = 0; t < graph_.tensors; ++t) {
    const auto accesses = graph_.graph->accesses(TensorId(t));
    if (iterations_ > 1 || !graph_.bound_to_pool[t] || accesses.empty() || !accesses.front().reads) continue;
    const int op = accesses.front().op.value;
    if (graph_.engine(op) == engine && !graph_.in_pool[op]) bytes[graph_.place(op)] += graph_.bytes[t];
  }
  for (std::size_t p = 1; p < bytes.size(); ++p) bytes[p] += bytes[p - 1];
  return bytes;
}

void WindowBound::find_earliest_and_tails() {
  earliest_.assign(graph_.ops, 0);
  tail_.assign(graph_.ops, 0);
  for (int op = 0; op < graph_.ops; ++op)
    graph_.graph->for_each_before(OpId(op), [&](OpId d) {
      earliest_[op] = std::max(earliest_[op], earliest_[d.index()] + graph_.cost[d.index()].alone.value);
    });
  for (int op = graph_.ops - 1; op >= 0; --op) {
    tail_[op] += graph_.cost[op].alone.value;
    graph_.graph->for_each_before(OpId(op),
                                  [&](OpId d) { tail_[d.index()] = std::max(tail_[d.index()], tail_[op]); });
  }
}

double WindowBound::least_end() const {
  std::vector<std::vector<double>> start(graph_.engines);
  std::vector<std::vector<std::int64_t>> bound;
  std::vector<double> end(graph_.ops, 0);
  for (int e = 0; e < graph_.engines; ++e) {
    start[e].assign(lines_[e].places + 1, 0);
    bound.push_back(bound_to_pool(e));
  }
  const auto reach = [&](int e, int place, double at) {
    if (bound[e][place] > 0)
      at = std::max(at, graph_.machine.read_latency +
                            static_cast<double>(bound[e][place]) /
                                std::min(graph_.machine.read_bandwidth, graph_.machine.hbm_bandwidth));
    if (iterations_ == 1) at = std::max(at, cold_start(lines_[e], place));
    windows_[e].ending_at(
        place, [&](const Window& w) { at = std::max(at, start[e][w.begin] + span(lines_[e], w)); });
    return start[e][place] = at;
  };
  double last = 0;
  for (int op = 0; op < graph_.ops; ++op) {
    const int e = graph_.engine(op), place = graph_.place(op);
    double at = place > 0 ? end[lines_[e].op[place - 1]] : 0;
    for (OpId d : graph_.graph->cross_engine_deps(OpId(op))) at = std::max(at, end[d.index()]);
    end[op] = reach(e, place, at) + graph_.cost[op].alone.value;
    last = std::max(last, end[op]);
  }
  for (int e = 0; e < graph_.engines; ++e)
    if (lines_[e].places > 0) last = std::max(last, reach(e, lines_[e].places, end[lines_[e].op.back()]));
  return last;
}

// What HBM must hold if the window is to take no longer than the ideal allows.
std::int64_t WindowBound::least_hbm(int engine, const Window& w) const {
  const EngineLine& line = lines_[engine];
  const NpuMachine& m = graph_.machine;
  const double latest = w.end < line.places ? ideal_ - tail_[line.op[w.end]] : ideal_;
  const double time = latest - earliest_[line.op[w.begin]];
  const double slack = std::max(0.0, time - (line.time[w.end] - line.time[w.begin]));
  const double link = std::min(m.read_bandwidth, m.hbm_bandwidth);
  const double loads = std::min(line.free_bytes[w.end] - line.free_bytes[w.begin] + link * slack,
                                link * std::max(0.0, time - m.read_latency));
  const double stores = std::min(m.write_bandwidth, m.hbm_bandwidth) * std::max(0.0, time - m.write_latency);
  // Rounded in the bound's disfavour: a proof must survive the last bit.
  const auto less = [](std::int64_t bytes, double moved) {
    return bytes - static_cast<std::int64_t>(std::min(9e18, std::floor(moved * (1 + 1e-12))));
  };
  return std::max(less(w.reads, loads) + line.only_writes[w.begin],
                  less(w.writes, stores) + line.born[w.end]);
}

std::int64_t WindowBound::least_hbm() const {
  std::int64_t least = graph_.input_bytes;
  for (int op = 0; op < graph_.ops; ++op) least = std::max(least, graph_.working_set(op));
  for (int e = 0; e < graph_.engines; ++e)
    for (int place = 1; place <= lines_[e].places; ++place)
      windows_[e].ending_at(place, [&](const Window& w) { least = std::max(least, least_hbm(e, w)); });
  return least;
}

Bound WindowBound::run() {
  find_earliest_and_tails();
  for (const EngineLine& line : lines_) windows_.emplace_back(line);
  const double stall = least_end() * (1 - 1e-12) - ideal_;
  Bound bound;
  // Engines that share HBM can end earlier when one of them waits: only on one engine is the ideal the least.
  bound.stall = Seconds(std::abs(stall) <= 2e-12 * ideal_ || (graph_.engines == 1 && stall < 0) ? 0 : stall);
  bound.hbm_peak = Bytes(least_hbm());
  bound.method = "window";
  return bound;
}

}  // namespace

Bound window_bound(const FlatGraph& graph, double ideal, int iterations) {
  return WindowBound(graph, ideal, iterations).run();
}

}  // namespace hyperoffload
