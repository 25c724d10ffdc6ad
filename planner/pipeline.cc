#include "planner/pipeline.h"

#include <algorithm>
#include <cmath>

#include "planner/passes/cancel_redundant.h"
#include "planner/passes/choose_evictions.h"
#include "planner/passes/place_transfers.h"
#include "sim/model/check.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

// Steady behaviour shows in the third iteration: the first two differ by what is marked `first`.
constexpr int kJudgedIterations = 3;

// Work of a search by effort, in ops and units per pass summed over passes: about 1 s for the default on
// one slow core, so that the same input gives the same plan on every machine.
constexpr double kWork[] = {0, 1.2e6, 25e6};

struct Attempt {
  WrittenPlan written;
  Walk walk;
  bool better_than(const Attempt& other) const {
    if (walk.last_iteration != other.walk.last_iteration)
      return walk.last_iteration < other.walk.last_iteration;
    return walk.total < other.walk.total;
  }
};

class Search {
 public:
  Search(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options)
      : graph_(graph), ideal_(ideal), options_(options), rank_(rank_by_name(*graph.graph)) {
    for (int t = 0; t < graph.tensors; ++t)
      transfer_seconds_ +=
          2 * (graph.machine.load_seconds(graph.bytes[t]) + graph.machine.store_seconds(graph.bytes[t]));
  }
  Found run();

 private:
  // Nothing more to win, or no work left.
  bool finished() const { return good_enough() || work_left_ <= 0; }
  bool good_enough() const {
    return best_ && best_->walk.last_iteration - ideal_.last_iteration <=
                        options_.least_stall + 1e-9 * ideal_.last_iteration;
  }
  const Walk& attempt(const Liveness& liveness, const StepClock& clock, Lead lead,
                      ColdStart cold_start = ColdStart::kStoreFirst);
  bool valid(const Plan& plan);
  void search(std::int64_t piece_bytes);
  StepClock smoothed(const Walk& walk, int window) const;
  std::int64_t piece_size(int parts) const;

  const FlatGraph& graph_;
  const Walk& ideal_;
  const SearchOptions& options_;
  const std::vector<std::int32_t> rank_;
  double transfer_seconds_ = 0;
  int passes_ = 0;
  double work_left_ = 0;
  std::optional<Attempt> best_;
  std::int64_t best_piece_bytes_ = 0, piece_bytes_ = 0;
  std::optional<InfeasibleError> infeasible_;
  std::string first_fault_;
  Walk last_;
};

const Walk& Search::attempt(const Liveness& liveness, const StepClock& clock, Lead lead,
                            ColdStart cold_start) {
  EvictionLedger ledger(graph_, liveness, clock);
  last_ = {};
  try {
    if (lead == Lead::kOnDemand)
      choose_on_demand(graph_, liveness, clock, rank_, ledger);
    else
      choose_evictions(graph_, liveness, clock, rank_, cold_start, ledger);
  } catch (const InfeasibleError& error) {  // other pieces or another timeline may yet do
    if (!infeasible_) infeasible_ = error;
    last_.stuck = WalkStuck{};
    return last_;
  }
  if (lead != Lead::kOnDemand) cancel_redundant(graph_, liveness, ledger);
  const Placements placements = place_transfers(graph_, liveness, clock, rank_, ledger, lead);
  Attempt attempt;
  attempt.written = write_plan(graph_, liveness, clock, rank_, placements);
  attempt.walk =
      walk_plan(graph_, attempt.written.plan,
                {std::min(options_.iterations, kJudgedIterations), WalkRecord::kLastIteration, false});
  ++passes_;
  work_left_ -= graph_.ops + liveness.units();
  last_ = attempt.walk;
  if (!attempt.walk.stuck && (!best_ || attempt.better_than(*best_)) && valid(attempt.written.plan)) {
    best_ = std::move(attempt);
    best_piece_bytes_ = piece_bytes_;
  }
  return last_;
}

bool Search::valid(const Plan& plan) {
  const CheckLimits limits{Bytes(graph_.machine.hbm), Bytes(graph_.machine.pool)};
  const auto broken = check_plan(*graph_.graph, plan, limits, options_.iterations);
  if (broken.empty()) return true;
  if (first_fault_.empty()) first_fault_ = broken.front().message;
  return false;
}

std::int64_t Search::piece_size(int parts) const {
  const std::int64_t largest = *std::max_element(graph_.bytes.begin(), graph_.bytes.end());
  const Machine& m = graph_.machine;
  const double worth = 50 * std::max(m.read_latency * m.read_bandwidth, m.write_latency * m.write_bandwidth);
  return std::max<std::int64_t>({(largest + parts - 1) / parts, static_cast<std::int64_t>(worth), 1});
}

// The walked timeline with its stalls spread over `window` ops.
StepClock Search::smoothed(const Walk& walk, int window) const {
  const StepClock guide(graph_, ideal_, transfer_seconds_), walked(graph_, walk, transfer_seconds_);
  const int count = guide.positions();
  std::vector<double> stall(count + 1, 0.0);
  Ticks before = 0;
  for (int p = 1; p < count; ++p) {
    const Ticks delay = walked.start(p) - guide.start(p);
    stall[p] = static_cast<double>(std::max<Ticks>(0, delay - before));
    before = std::max(before, delay);
  }
  std::vector<Ticks> extra(count, 0);
  double sum = 0, given = 0;
  std::vector<double> prefix(count + 1, 0.0);
  for (int p = 0; p < count; ++p) prefix[p + 1] = prefix[p] + stall[p];
  for (int p = 1; p < count; ++p) {
    const int lo = std::max(1, p - window / 2), hi = std::min(count, p + window / 2 + 1);
    sum += (prefix[hi] - prefix[lo]) / window;
    extra[p] = static_cast<Ticks>(sum - given);
    given += static_cast<double>(extra[p]);
  }
  return guide.delayed(extra);
}

void Search::search(std::int64_t piece_bytes) {
  piece_bytes_ = piece_bytes;
  const Liveness liveness(graph_, {options_.iterations > 1, piece_bytes});
  const StepClock guide(graph_, ideal_, transfer_seconds_);
  attempt(liveness, guide, Lead::kLate);
  if (good_enough()) return;
  struct Seed {
    double time;
    ColdStart cold_start;
    Walk walk;
  };
  std::vector<Seed> seeds;
  // A cold pass has two ways to begin; a repeated body none.
  std::vector<ColdStart> starts{ColdStart::kStoreFirst};
  if (options_.iterations == 1) starts.push_back(ColdStart::kPoolFirst);
  const auto seed = [&](const StepClock& clock) {
    for (ColdStart cold_start : starts) {
      const Walk& walk = attempt(liveness, clock, Lead::kEager, cold_start);
      if (!walk.stuck) seeds.push_back({walk.last_iteration, cold_start, walk});
      if (finished()) return;
    }
  };
  seed(guide);
  if (piece_bytes == 0 && !good_enough()) attempt(liveness, guide, Lead::kOnDemand);
  if (finished()) return;
  for (double factor : {1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 2.6, 3.3}) {
    seed(guide.stretched(factor));
    if (finished()) return;
  }
  std::stable_sort(seeds.begin(), seeds.end(), [](const Seed& a, const Seed& b) { return a.time < b.time; });
  if (seeds.size() > 2) seeds.resize(2);
  for (const Seed& first : seeds)
    for (int window : {1, 3, 9, 21}) {
      Walk walk = first.walk;
      for (int round = 0; round < 4; ++round) {
        const StepClock clock =
            window == 1 ? StepClock(graph_, walk, transfer_seconds_) : smoothed(walk, window);
        const Walk& next = attempt(liveness, clock, Lead::kEager, first.cold_start);
        if (finished()) return;
        if (next.stuck || next.last_iteration >= walk.last_iteration) break;
        walk = next;
      }
    }
}

Found Search::run() {
  work_left_ = kWork[std::clamp(options_.effort, 0, 2)];
  search(0);
  for (int parts = 16; parts >= 4 && !finished(); parts /= 2) {
    // Pieces pay if there is work left for several passes over them.
    const Liveness cut(graph_, {options_.iterations > 1, piece_size(parts)});
    if (8.0 * (graph_.ops + cut.units()) > work_left_) continue;
    search(piece_size(parts));
    break;
  }
  if (!best_ && infeasible_) throw *infeasible_;
  if (!best_ && graph_.engines > 1)
    throw InfeasibleError("no plan found that can't get stuck in any timing of the overlapping engines: " +
                          first_fault_);
  if (!best_) throw InfeasibleError("no plan found that keeps every rule; the last resort fails because " + first_fault_);
  return {std::move(best_->written), std::move(best_->walk), best_piece_bytes_, passes_};
}

}  // namespace

Found search_plan(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options) {
  return Search(graph, ideal, options).run();
}

}  // namespace hyperoffload
