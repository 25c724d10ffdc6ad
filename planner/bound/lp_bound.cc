#include "planner/bound/lp_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "planner/bound/engine_view.h"
#include "planner/bound/offload_lp.h"
#include "planner/bound/subset_sum.h"
#include "planner/bound/window_bound.h"

namespace hyperoffload {
namespace {

class LpBound {
 public:
  LpBound(const FlatGraph& graph, double ideal, int iterations, const LpBoundOptions& options)
      : graph_(graph),
        ideal_(ideal),
        iterations_(iterations),
        options_(options),
        steady_(options.steady && iterations > 1 && graph.engines == 1 &&
                std::count(graph.in_pool.begin(), graph.in_pool.end(), 0) == graph.ops) {}
  Bound run(LpBoundStats& stats);

 private:
  struct Grid {
    std::vector<int> positions;
    int turn = 0;  // positions from here on are those of the next turn of a circle
    // The first slot that ends at the position or behind it; that ends behind it.
    int slot_to(int position) const { return slot_behind(position - 1); }
    int slot_behind(int position) const {
      const bool next = turn > 0 && position + 1 >= turn;
      return static_cast<int>(
          std::upper_bound(positions.begin(), positions.end(), position - (next ? turn : 0)) - positions.begin() +
          (next ? positions.size() : 0));
    }
  };
  Grid choose_grid(const EngineView& view, const std::vector<std::int64_t>& excess, int limit) const;
  std::vector<std::int64_t> excess_over(const EngineView& view, std::int64_t hbm) const;
  std::vector<std::int64_t> whole_capacity(const EngineView& view, std::int64_t hbm) const;
  OffloadLp program(const EngineView& view, const std::vector<std::int64_t>& excess, int boundaries,
                    bool any_placement, bool circle = false) const;
  void add_slots(const EngineView& view, const Grid& grid, OffloadLp& lp) const;
  void add_units(const EngineView& view, const Grid& grid, bool any_placement, OffloadLp& lp) const;
  LpOutcome solve_program(const OffloadLp& lp, const LpLimits& limits, LpBoundStats& stats) const;
  double least_end(const EngineView& view, LpBoundStats& stats) const;
  std::int64_t least_hbm(const EngineView& view, std::int64_t known, LpBoundStats& stats) const;

  const FlatGraph& graph_;
  const double ideal_;
  const int iterations_;
  const LpBoundOptions& options_;
  const bool steady_;
};

std::vector<std::int64_t> LpBound::excess_over(const EngineView& view, std::int64_t hbm) const {
  std::vector<std::int64_t> excess = view.resident;
  for (std::int64_t& bytes : excess) bytes -= hbm;
  if (options_.whole_tensors && graph_.engines == 1 && !steady_) {
    const auto capacity = whole_capacity(view, hbm);
    for (std::size_t p = 0; p < excess.size(); ++p) excess[p] += hbm - capacity[p];
  }
  return excess;
}

// By position: the working set and the most that whole idle tensors can take beside it.
std::vector<std::int64_t> LpBound::whole_capacity(const EngineView& view, std::int64_t hbm) const {
  std::vector<std::vector<std::int64_t>> enter(view.resident.size() + 1), leave(view.resident.size() + 1);
  for (const Stay& stay : view.stays)
    for (const IdleGap& gap : stay.gaps)
      if (gap.after + 1 < gap.until) {
        enter[gap.after + 1].push_back(graph_.bytes[stay.tensor]);
        leave[gap.until].push_back(graph_.bytes[stay.tensor]);
      }
  std::vector<std::int64_t> capacity(view.resident.size(), hbm), idle;
  SubsetSums sums;
  for (std::size_t p = 0; p < view.resident.size(); ++p) {
    for (std::int64_t bytes : leave[p]) idle.erase(std::find(idle.begin(), idle.end(), bytes));
    idle.insert(idle.end(), enter[p].begin(), enter[p].end());
    if (view.resident[p] <= hbm) continue;
    const std::int64_t room = hbm - view.working_set[p / 2];
    capacity[p] = view.working_set[p / 2] + sums.largest_up_to(idle, room);
  }
  return capacity;
}

// All positions of a short trace; of a long one, by equal shares of its places, those with the most excess.
LpBound::Grid LpBound::choose_grid(const EngineView& view, const std::vector<std::int64_t>& excess,
                                   int limit) const {
  Grid grid;
  const int count = static_cast<int>(view.resident.size());
  if (count <= limit) {
    grid.positions.resize(count);
    std::iota(grid.positions.begin(), grid.positions.end(), 0);
    return grid;
  }
  for (int k = 0; k < limit; ++k) {
    const auto from = static_cast<int>(static_cast<std::int64_t>(count) * k / limit),
               to = static_cast<int>(static_cast<std::int64_t>(count) * (k + 1) / limit);
    grid.positions.push_back(static_cast<int>(std::max_element(excess.begin() + from, excess.begin() + to) -
                                              excess.begin()));
  }
  return grid;
}

void LpBound::add_slots(const EngineView& view, const Grid& grid, OffloadLp& lp) const {
  const NpuMachine& m = graph_.machine;
  const double b = m.hbm_bandwidth, read = std::min(m.read_bandwidth, b), write = std::min(m.write_bandwidth, b);
  lp.slots.assign(grid.positions.size() + (lp.circle ? 0 : 1), {0, 0, 0, 0});
  std::vector<char> read_held(lp.slots.size(), 0), write_held = read_held, both_held = read_held;
  for (int place = 0; place < view.places; ++place) {
    const OpCost& cost = graph_.cost[view.op[place]];
    const double d = cost.alone.value, left = std::max(0.0, b * d - static_cast<double>(cost.hbm_bytes.value));
    const int s = lp.slot(grid.slot_to(2 * place + 1));
    LpSlot& slot = lp.slots[s];
    slot.seconds += d;
    slot.read_bytes += std::min(read * d, left);
    slot.write_bytes += std::min(write * d, left);
    slot.both_bytes += std::min((read + write) * d, left);
    read_held[s] |= left < read * d;
    write_held[s] |= left < write * d;
    both_held[s] |= left < (read + write) * d;
  }
  for (std::size_t s = 0; s < lp.slots.size(); ++s) {
    if (!read_held[s]) lp.slots[s].read_bytes = -1;
    if (!write_held[s]) lp.slots[s].write_bytes = -1;
    if (!both_held[s] && read + write <= b) lp.slots[s].both_bytes = -1;
  }
  for (const ForcedWait& wait : view.waits) {
    const int from = grid.slot_behind(wait.from), to = grid.slot_to(wait.to);
    if (from < to) {
      lp.waits.push_back({from, to, wait.seconds});
      continue;
    }
    LpSlot& slot = lp.slots[from];
    slot.seconds += wait.seconds;
    for (double LpSlot::*bytes : {&LpSlot::read_bytes, &LpSlot::write_bytes, &LpSlot::both_bytes})
      if (slot.*bytes >= 0) slot.*bytes += b * wait.seconds;  // it may be ops that HBM slows
  }
}

// `any_placement`: as if nothing were bound to start in the pool.
void LpBound::add_units(const EngineView& view, const Grid& grid, bool any_placement, OffloadLp& lp) const {
  const NpuMachine& m = graph_.machine;
  const bool held = std::any_of(lp.slots.begin(), lp.slots.end(), [](const LpSlot& s) {
    return s.read_bytes >= 0 || s.write_bytes >= 0 || s.both_bytes >= 0;
  });
  const double read = 1 / std::min(m.read_bandwidth, m.hbm_bandwidth),
               write = 1 / std::min(m.write_bandwidth, m.hbm_bandwidth);
  const bool latency = !held && (m.read_latency > 0 || m.write_latency > 0);
  std::map<std::vector<int>, std::size_t> known;
  std::vector<std::int64_t> largest;  // by unit
  const auto add = [&](const Stay& stay, std::vector<LpGap> gaps, bool pool_start, bool pool_only) {
    const int from = stay.stored_from == Stay::kClean ? LpUnit::kClean : grid.slot_behind(stay.stored_from);
    const std::int64_t bytes = graph_.bytes[stay.tensor];
    std::vector<int> key{from, pool_start, pool_only, latency ? std::ilogb(static_cast<double>(bytes)) : 0};
    for (const LpGap& gap : gaps) key.insert(key.end(), {gap.first, gap.last, gap.close, gap.loads});
    const auto [it, fresh] = known.try_emplace(key, lp.units.size());
    if (fresh) {
      lp.units.push_back({0, read, write, from, pool_start, pool_only, std::move(gaps)});
      largest.push_back(0);
    }
    lp.units[it->second].bytes += static_cast<double>(bytes);
    largest[it->second] = std::max(largest[it->second], bytes);
  };
  std::vector<int> over{0};  // prefix sums: boundaries without room for all
  for (int turn = 0; turn < lp.turns(); ++turn)
    for (double excess : lp.excess) over.push_back(over.back() + (excess > 0));
  for (const Stay& stay : view.stays) {
    const bool clean = stay.stored_from == Stay::kClean, pool_only = stay.pool_only && !any_placement;
    std::vector<LpGap> gaps;
    for (std::size_t g = 0; g < stay.gaps.size(); ++g) {
      const IdleGap& idle = stay.gaps[g];
      const LpGap gap{grid.slot_behind(idle.after), grid.slot_to(idle.until) - 1, grid.slot_to(idle.close),
                      idle.loads};
      const bool useful = gap.first <= gap.last && over[gap.last + 1] > over[gap.first];
      if (useful && clean) add(stay, {gap}, false, false);
      if ((useful && !clean) || (stay.pool_start && g == 0)) gaps.push_back(gap);
    }
    const bool needed = std::any_of(gaps.begin(), gaps.end(), [&](const LpGap& gap) {
      return gap.first <= gap.last && over[gap.last + 1] > over[gap.first];
    });
    if (!clean && (needed || pool_only)) add(stay, std::move(gaps), stay.pool_start, pool_only);
  }
  for (std::size_t u = 0; u < lp.units.size() && latency; ++u) {
    lp.units[u].read_cost += m.read_latency / static_cast<double>(largest[u]);
    lp.units[u].write_cost += m.write_latency / static_cast<double>(largest[u]);
  }
}

OffloadLp LpBound::program(const EngineView& view, const std::vector<std::int64_t>& excess, int boundaries,
                           bool any_placement, bool circle) const {
  OffloadLp lp;
  Grid grid = choose_grid(view, excess, boundaries);
  lp.circle = circle;
  if (circle) grid.turn = 2 * view.places;
  for (int p : grid.positions) lp.excess.push_back(static_cast<double>(excess[p]));
  lp.hbm_bandwidth = graph_.machine.hbm_bandwidth;
  lp.time_scale = ideal_ > 0 ? ideal_ : 1;
  add_slots(view, grid, lp);
  add_units(view, grid, any_placement, lp);
  return lp;
}

LpOutcome LpBound::solve_program(const OffloadLp& lp, const LpLimits& limits, LpBoundStats& stats) const {
  const LpOutcome outcome = solve(lp, limits);
  ++stats.programs;
  if (outcome.columns >= stats.columns) {
    stats.boundaries = static_cast<int>(lp.excess.size());
    stats.units = static_cast<int>(lp.units.size());
    stats.rows = outcome.rows;
    stats.columns = outcome.columns;
    stats.rounds = outcome.rounds;
  }
  return outcome;
}

double LpBound::least_end(const EngineView& view, LpBoundStats& stats) const {
  const auto excess = excess_over(view, graph_.machine.hbm);
  const OffloadLp lp = program(view, excess, std::max(2, options_.boundaries), false, steady_);
  const LpOutcome outcome = solve_program(lp, {60, 1e-4, 1e-5 * ideal_}, stats);
  stats.stall_upper = std::max(stats.stall_upper, view.alone + outcome.upper - ideal_);
  return view.alone + outcome.lower;
}

// The least stall falls with the capacity, ever less steeply: from a capacity known to be too small, the
// prices that prove a stall there also prove that zero stall takes so many bytes more. Again from there; on
// coarse boundaries first, where it costs little.
std::int64_t LpBound::least_hbm(const EngineView& view, std::int64_t known, LpBoundStats& stats) const {
  const double slack = std::max(0.0, ideal_ - view.alone) + 1e-11 * ideal_;
  for (int part : {4, 1}) {
    for (int step = 0; step < 40; ++step) {
      std::vector<std::int64_t> excess = view.resident;
      for (std::int64_t& bytes : excess) bytes -= known;
      const OffloadLp lp = program(view, excess, std::max(8, options_.boundaries / part), true);
      const LpOutcome outcome = solve_program(lp, {60, 0.05, 1e-4 * ideal_}, stats);
      if (outcome.lower <= slack || outcome.seconds_per_byte <= 0) break;
      const double more = (outcome.lower - slack) / outcome.seconds_per_byte;
      // Bytes are whole; a thousand-millionth for what rounding may have added.
      known += static_cast<std::int64_t>(std::ceil(more - 1e-9 * (static_cast<double>(known) + more)));
      if (more < 1e-5 * static_cast<double>(known)) break;
    }
    if (static_cast<int>(view.resident.size()) <= options_.boundaries / 4) break;
  }
  return known;
}

Bound LpBound::run(LpBoundStats& stats) {
  Bound bound = window_bound(graph_, ideal_, iterations_);
  bound.method = "lp";
  double end = 0;
  for (int e = 0; e < graph_.engines; ++e) {
    const EngineView view(graph_, e, iterations_, steady_);
    if (view.places == 0 || view.stays.empty()) continue;
    const std::int64_t working = *std::max_element(view.working_set.begin(), view.working_set.end());
    if (options_.stall && working <= graph_.machine.hbm) end = std::max(end, least_end(view, stats));
    if (options_.hbm && !steady_) bound.hbm_peak = Bytes(least_hbm(view, std::max(working, bound.hbm_peak.value), stats));
  }
  // Rounded in the bound's disfavour: a proof must survive the last bits.
  const double stall = end * (1 - 1e-12) - ideal_;
  if (stall > 2e-12 * ideal_) bound.stall = std::max(bound.stall, Seconds(stall));
  return bound;
}

}  // namespace

Bound lp_bound(const FlatGraph& graph, double ideal, int iterations, const LpBoundOptions& options,
               LpBoundStats* stats) {
  LpBoundStats ignored;
  return LpBound(graph, ideal, iterations, options).run(stats ? *stats : ignored);
}

}  // namespace hyperoffload
