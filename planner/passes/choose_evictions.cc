#include "planner/passes/choose_evictions.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <tuple>

#include "sim/model/check.h"

namespace hyperoffload {
namespace {

// How many of the farthest candidates are compared when one has to stall. Cost grows with it, and the
// farthest is nearly always the cheapest.
constexpr int kCompared = 8;

struct Candidate {
  int next_use;        // on the sweep's axis
  bool costs;          // needs the link at all
  std::int64_t bytes;  // of a piece
  int rank;
  int gap;
  auto key() const { return std::tuple(next_use, !costs, bytes, -rank, gap); }
  bool operator<(const Candidate& other) const { return key() < other.key(); }
};

class Sweep {
 public:
  Sweep(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
        const std::vector<std::int32_t>& rank, EvictionLedger& ledger)
      : graph_(graph),
        liveness_(liveness),
        clock_(clock),
        rank_(rank),
        ledger_(ledger),
        next_piece_(liveness.gaps.size()),
        opening_(liveness.positions + 1) {}

  void run();

 private:
  void open_gaps(int position);
  void relieve(int position);
  bool evict_best(int position);
  void evict_cheapest_stall(int position);
  void offer(int gap, int position);
  // A gap's own axis may be one turn ahead of the sweep's.
  int on_axis(const Gap& gap, int position) const {
    return position > gap.open ? position : position + liveness_.positions;
  }
  bool whole(const Gap& gap) const { return gap.open < 0; }  // an initial placement is of the whole tensor
  int unit(int gap) const { return liveness_.gaps[gap].first_unit + next_piece_[gap]; }
  int pieces(int gap) const { return liveness_.pieces[liveness_.gaps[gap].tensor]; }
  Verdict evict_whole(const Gap& gap, int position);

  const FlatGraph& graph_;
  const Liveness& liveness_;
  const StepClock& clock_;
  const std::vector<std::int32_t>& rank_;
  EvictionLedger& ledger_;
  std::vector<std::int32_t> next_piece_;            // by gap: pieces below it are evicted
  std::vector<std::vector<std::int32_t>> opening_;  // gaps, by the position from which they are offered
  std::priority_queue<Candidate> idle_, refused_;
};

void Sweep::run() {
  for (std::size_t g = 0; g < liveness_.gaps.size(); ++g) {
    const Gap& gap = liveness_.gaps[g];
    if (gap.open + 1 < liveness_.positions) opening_[gap.open + 1].push_back(static_cast<std::int32_t>(g));
    if (gap.close > liveness_.positions && gap.open >= 0) opening_[0].push_back(static_cast<std::int32_t>(g));
  }
  for (int p = 0; p < liveness_.positions; ++p) {
    for (int gap : opening_[p]) offer(gap, p);
    opening_[p] = {};
    relieve(p);
  }
}

void Sweep::offer(int g, int position) {
  if (next_piece_[g] == pieces(g)) return;
  const Gap& gap = liveness_.gaps[g];
  const int next_use = gap.close - (on_axis(gap, position) - position);
  if (next_use <= position) return;
  idle_.push({next_use, gap.loads || !ledger_.clean(unit(g)), liveness_.piece_bytes(gap.tensor, 0),
              rank_[gap.tensor], g});
}

void Sweep::relieve(int position) {
  while (ledger_.bytes_at(position) > graph_.machine.hbm)
    if (!evict_best(position)) evict_cheapest_stall(position);
}

Verdict Sweep::evict_whole(const Gap& gap, int position) {
  for (int k = 0; k < liveness_.pieces[gap.tensor]; ++k) {
    const Verdict verdict = ledger_.evict(gap.first_unit + k, position);
    if (verdict == Verdict::kDone) continue;
    while (k-- > 0) ledger_.restore(gap.first_unit + k);
    return verdict;
  }
  return Verdict::kDone;
}

// Evicts one unit (or one whole tensor that then starts in the pool); false if none can be hidden.
bool Sweep::evict_best(int position) {
  while (!idle_.empty() && idle_.top().next_use > position) {
    const Candidate best = idle_.top();
    const Gap& gap = liveness_.gaps[best.gap];
    if (next_piece_[best.gap] == pieces(best.gap)) {
      idle_.pop();
      continue;
    }
    const int at = on_axis(gap, position);
    const Verdict verdict = whole(gap) ? evict_whole(gap, at) : ledger_.evict(unit(best.gap), at);
    if (verdict == Verdict::kDone) {
      next_piece_[best.gap] += whole(gap) ? pieces(best.gap) : 1;
      return true;
    }
    idle_.pop();
    if (verdict == Verdict::kUseless) continue;
    refused_.push(best);
    if (verdict != Verdict::kStoreLate) continue;
    const Ticks late = at == position ? 0 : clock_.period();
    const int wake = clock_.first_start_from(ledger_.store_end(unit(best.gap)) -
                                             (gap.next_turn ? clock_.period() : 0) - late);
    if (wake > position && wake < std::min(best.next_use, liveness_.positions))
      opening_[wake].push_back(best.gap);
  }
  return false;
}

void Sweep::evict_cheapest_stall(int position) {
  std::vector<Candidate> compared;
  while (!refused_.empty() && refused_.top().next_use > position && compared.size() < kCompared) {
    if (next_piece_[refused_.top().gap] < pieces(refused_.top().gap)) compared.push_back(refused_.top());
    refused_.pop();
  }
  HYPER_CHECK(!compared.empty(), "nothing left to evict though the working set fits");
  const Candidate* best = nullptr;
  Ticks least = 0;
  for (const Candidate& candidate : compared) {
    const Ticks stall =
        ledger_.exposed(unit(candidate.gap), on_axis(liveness_.gaps[candidate.gap], position));
    if (best == nullptr || stall < least) {
      best = &candidate;
      least = stall;
    }
  }
  const Gap& gap = liveness_.gaps[best->gap];
  const int at = on_axis(gap, position);
  do ledger_.evict_exposed(unit(best->gap), at);
  while (++next_piece_[best->gap] < pieces(best->gap) && whole(gap));
  for (const Candidate& candidate : compared) refused_.push(candidate);
}

}  // namespace

std::vector<std::int32_t> rank_by_name(const Graph& graph) {
  std::vector<std::int32_t> order(graph.tensors().size()), rank(order.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return graph.tensors()[a].name < graph.tensors()[b].name; });
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<std::int32_t>(i);
  return rank;
}

void choose_evictions(const FlatGraph& graph, const Liveness& liveness, const StepClock& clock,
                      const std::vector<std::int32_t>& rank, EvictionLedger& ledger) {
  Sweep(graph, liveness, clock, rank, ledger).run();
}

}  // namespace hyperoffload
