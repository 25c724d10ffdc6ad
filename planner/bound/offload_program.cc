#include "planner/bound/offload_program.h"

#include <cmath>
#include <map>
#include <numeric>

namespace hyperoffload {

OffloadProgram::OffloadProgram(const FlatGraph& graph, const EngineView& view,
                               const std::vector<std::int64_t>& excess, const ProgramOptions& options)
    : turn_(options.circle ? 2 * view.places : 0) {
  choose_boundaries(excess, options.boundaries);
  lp.circle = options.circle;
  for (int p : positions) lp.excess.push_back(static_cast<double>(excess[p]));
  lp.hbm_bandwidth = graph.machine.hbm_bandwidth;
  lp.time_scale = options.time_scale > 0 ? options.time_scale : 1;
  add_slots(graph, view);
  add_units(graph, view, options);
}

// All positions of a short trace; of a long one, by equal shares of its places, those with the most excess.
void OffloadProgram::choose_boundaries(const std::vector<std::int64_t>& excess, int limit) {
  const int count = static_cast<int>(excess.size());
  if (count <= limit) {
    positions.resize(count);
    std::iota(positions.begin(), positions.end(), 0);
    return;
  }
  for (int k = 0; k < limit; ++k) {
    const auto from = static_cast<int>(static_cast<std::int64_t>(count) * k / limit),
               to = static_cast<int>(static_cast<std::int64_t>(count) * (k + 1) / limit);
    positions.push_back(
        static_cast<int>(std::max_element(excess.begin() + from, excess.begin() + to) - excess.begin()));
  }
}

void OffloadProgram::add_slots(const FlatGraph& graph, const EngineView& view) {
  const NpuMachine& m = graph.machine;
  const double b = m.hbm_bandwidth, read = std::min(m.read_bandwidth, b), write = std::min(m.write_bandwidth, b);
  lp.slots.assign(positions.size() + (lp.circle ? 0 : 1), {0, 0, 0, 0});
  std::vector<char> read_held(lp.slots.size(), 0), write_held = read_held, both_held = read_held;
  for (int place = 0; place < view.places; ++place) {
    const OpCost& cost = graph.cost[view.op[place]];
    const double d = cost.alone.value, left = std::max(0.0, b * d - static_cast<double>(cost.hbm_bytes.value));
    const int s = lp.slot(slot_to(2 * place + 1));
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
    const int from = slot_behind(wait.from), to = slot_to(wait.to);
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

void OffloadProgram::add_units(const FlatGraph& graph, const EngineView& view, const ProgramOptions& options) {
  const NpuMachine& m = graph.machine;
  const bool held = std::any_of(lp.slots.begin(), lp.slots.end(), [](const LpSlot& s) {
    return s.read_bytes >= 0 || s.write_bytes >= 0 || s.both_bytes >= 0;
  });
  const double read = 1 / std::min(m.read_bandwidth, m.hbm_bandwidth),
               write = 1 / std::min(m.write_bandwidth, m.hbm_bandwidth);
  const bool latency = !held && (m.read_latency > 0 || m.write_latency > 0);
  std::map<std::vector<int>, std::size_t> known;
  std::vector<std::int64_t> largest;  // by unit
  const auto add = [&](const Stay& stay, std::vector<LpGap> gaps, const std::vector<IdleGap>& idle, bool pool_start,
                       bool pool_only) {
    const bool clean = stay.stored_from == Stay::kClean || (!pool_start && stay.pool_start);
    const int from = clean ? LpUnit::kClean : slot_behind(stay.stored_from);
    const std::int64_t bytes = graph.bytes[stay.tensor];
    const bool apart = options.starts_apart && pool_start && !pool_only;
    std::vector<int> key{from, pool_start, pool_only, latency ? std::ilogb(static_cast<double>(bytes)) : 0,
                         apart ? stay.tensor : -1};
    for (const LpGap& gap : gaps) key.insert(key.end(), {gap.first, gap.last, gap.close, gap.loads, gap.opens});
    const auto [it, fresh] = known.try_emplace(key, lp.units.size());
    if (fresh) {
      lp.units.push_back({0, read, write, from, pool_start, pool_only, std::move(gaps), apart});
      largest.push_back(0);
      members.emplace_back();
    }
    members[it->second].push_back({stay.tensor, idle});
    lp.units[it->second].bytes += static_cast<double>(bytes);
    largest[it->second] = std::max(largest[it->second], bytes);
  };
  std::vector<int> over{0};  // prefix sums: boundaries without room for all
  for (int turn = 0; turn < lp.turns(); ++turn)
    for (double excess : lp.excess) over.push_back(over.back() + (excess > 0));
  for (const Stay& stay : view.stays) {
    const bool pool_only = stay.pool_only && !options.any_placement;
    const bool split = stay.pool_start && !pool_only && static_cast<int>(stay.gaps.size()) > options.most_gaps;
    const bool clean = stay.stored_from == Stay::kClean || split;
    std::vector<LpGap> gaps;
    std::vector<IdleGap> kept;
    for (std::size_t g = 0; g < stay.gaps.size(); ++g) {
      const IdleGap& idle = stay.gaps[g];
      LpGap gap{slot_behind(idle.after), slot_to(idle.until) - 1, slot_to(idle.close), idle.loads};
      if (idle.loads && idle.known > idle.after) gap.opens = std::min(slot_behind(idle.known), gap.close);
      if (gap.opens <= gap.first) gap.opens = 0;
      const bool useful = gap.first <= gap.last && over[gap.last + 1] > over[gap.first];
      if (useful && clean) add(stay, {gap}, {idle}, false, false);
      if ((!useful || clean) && (!stay.pool_start || split || g > 0)) continue;
      gaps.push_back(gap);
      kept.push_back(idle);
    }
    const bool needed = std::any_of(gaps.begin(), gaps.end(), [&](const LpGap& gap) {
      return gap.first <= gap.last && over[gap.last + 1] > over[gap.first];
    });
    if (!clean && (needed || pool_only)) add(stay, std::move(gaps), kept, stay.pool_start, pool_only);
  }
  for (std::size_t u = 0; u < lp.units.size() && latency; ++u) {
    lp.units[u].read_cost += m.read_latency / static_cast<double>(largest[u]);
    lp.units[u].write_cost += m.write_latency / static_cast<double>(largest[u]);
  }
}

}  // namespace hyperoffload
