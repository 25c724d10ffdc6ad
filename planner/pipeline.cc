#include "planner/pipeline_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/passes/cancel_redundant.h"
#include "planner/passes/fill_forward.h"
#include "planner/passes/late_changes.h"
#include "planner/passes/replay_placement.h"
#include "planner/passes/spread_evictions.h"
#include "planner/passes/write_plan.h"

namespace hyperoffload {
namespace {

// Work of a search by effort, in ops and units per pass summed over passes: about 1 s for the default on
// one slow core, so that the same input gives the same plan on every machine.
constexpr double kWork[] = {0, 1.2e6, 25e6};

// Loads that are tried behind earlier ops, and copies behind later ones, by effort.
constexpr int kLateTries[] = {0, 60, 1000};

// Ops and units that exchanges of whole tensors may replay, by effort (about 0.4 s), beside the search's work: a replay
// is cheap. Fewer exchanges than so many gain nothing.
constexpr double kSwapWork[] = {0, 4e6, 4e7};
constexpr int kFewSwaps = 500;

// Pieces a tensor, on average, that evictions of a long trace are spread over.
constexpr std::int64_t kFewPieces = 2;

// Timelines that are planned on again.
constexpr std::size_t kSeeds = 4;

}  // namespace

PlanSearch::PlanSearch(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options)
    : graph_(graph),
      options_(options),
      rank_(rank_by_name(*graph.graph)),
      ideal_seconds_(ideal.last_iteration),
      enough_stall_(options.enough_stall),
      best_(graph, options.iterations, kWork[std::clamp(options.effort, 0, 2)]) {
  double transfers = 0;
  for (int t = 0; t < graph.tensors; ++t)
    transfers +=
        2 * (graph.machine.load_seconds(graph.bytes[t]) + graph.machine.store_seconds(graph.bytes[t]));
  transfer_seconds_ = transfers;
  guide_.emplace(graph, ideal, transfers);
}

Tried PlanSearch::attempt(const Liveness& liveness, const StepClock& clock, Lead lead, Score score,
                      const std::vector<Eviction>& given, bool cancel) {
  auto ledger = std::make_unique<EvictionLedger>(graph_, liveness, clock);
  try {
    if (lead == Lead::kOnDemand)
      choose_on_demand(graph_, liveness, clock, rank_, *ledger);
    else
      best_.spend(0.2 * static_cast<double>(choose_evictions(graph_, liveness, clock, rank_, score, *ledger, given)));
  } catch (const InfeasibleError& error) {  // other pieces or another timeline may yet do
    if (!infeasible_) infeasible_ = error;
    return {};
  }
  if (lead != Lead::kOnDemand && cancel && uses(SearchStep::kCancel)) cancel_redundant(graph_, liveness, *ledger);
  return place(liveness, clock, lead, std::move(ledger));
}

Tried PlanSearch::place(const Liveness& liveness, const StepClock& clock, Lead lead, std::unique_ptr<const EvictionLedger> ledger) {
  best_.spend(graph_.ops + liveness.units());
  if (lead == Lead::kEager && uses(SearchStep::kReplay))
    if (Tried tried = place_replayed(liveness, clock, *ledger); tried.timeline) return tried;
  const Placements placements = place_transfers(graph_, liveness, clock, rank_, *ledger, lead);
  ledger.reset();  // a tenth of the memory at its peak, which is in the checks
  const Walk& walk = judge(liveness, clock, placements);
  if (walk.stuck) return {};
  return {walk.last_iteration, StepClock(graph_, walk, transfer_seconds_)};
}

// By the replay; where the plan turns out slower than that, by the firm one, too.
Tried PlanSearch::place_replayed(const Liveness& liveness, const StepClock& clock, const EvictionLedger& ledger) {
  Tried best;
  for (const bool firm : {false, true}) {
    auto replayed = place_by_replay(graph_, liveness, clock, *guide_, rank_, ledger, firm);
    if (!replayed) break;
    const double seconds = replayed->clock.seconds(replayed->clock.period());
    if (liveness.units() == static_cast<int>(liveness.gaps.size()) && seconds < whole_seconds_) {
      whole_seconds_ = seconds;
      whole_ = {replayed->placements.evicted, clock, replayed->clock.period()};
    }
    if (seconds >= best_.seconds() * (1 - 1e-9)) {
      if (!best.timeline) best = {seconds, std::move(replayed->clock)};
      break;
    }
    const Walk& walk = judge(liveness, replayed->clock, replayed->placements);
    if (!walk.stuck && walk.last_iteration < best.seconds) best = {walk.last_iteration, std::move(replayed->clock)};
    if (!walk.stuck && walk.last_iteration <= seconds * (1 + 1e-6)) break;
    best_.spend(graph_.ops + liveness.units());
  }
  return best;
}

// The walk holds until the next one is judged.
const Walk& PlanSearch::judge(const Liveness& liveness, const StepClock& clock, const Placements& placements) {
  const Walk& walk = best_.judge(write_plan(graph_, liveness, clock, rank_, placements));
  if (liveness.units() == static_cast<int>(liveness.gaps.size()) && !walk.stuck)
    whole_best_ = std::min(whole_best_, walk.last_iteration);
  return walk;
}

// What a piece takes on the link is at least so many latencies.
std::int64_t PlanSearch::piece_size(int parts, double latencies) const {
  const std::int64_t largest = *std::max_element(graph_.bytes.begin(), graph_.bytes.end());
  const NpuMachine& m = graph_.machine;
  const double worth = latencies * std::max(m.read_latency * m.read_bandwidth, m.write_latency * m.write_bandwidth);
  return std::max<std::int64_t>(
      {(largest + parts - 1) / parts, static_cast<std::int64_t>(worth), m.allocation.granularity.value, 1});
}

std::vector<Score> PlanSearch::scores() const {
  if (!uses(SearchStep::kLatestReload)) return {Score::kFarthestUse};
  return {Score::kFarthestUse, Score::kFarthestReload};
}

void PlanSearch::search(std::int64_t piece_bytes) {
  const Liveness liveness(graph_, {options_.iterations > 1, piece_bytes});
  const StepClock& guide = *guide_;
  attempt(liveness, guide, Lead::kLate);
  if (good_enough()) return;
  std::vector<Seed> seeds;
  const auto seed = [&](const StepClock& clock) {
    for (const Score score : scores()) {
      Tried tried = attempt(liveness, clock, Lead::kEager, score);
      keep(seeds, {score, std::move(tried)});
      if (good_enough()) return;
      // Long traces afford few passes, so the best comes early.
      if (graph_.ops > kGuidedOps && !lp_tried_ && !finished() && uses(SearchStep::kSpread)) spread(liveness, seeds);
      if (graph_.ops > kGuidedOps && !lp_tried_ && uses(SearchStep::kLp)) follow_lp(liveness, seeds);
      if (finished()) return;
    }
  };
  seed(guide);
  if (piece_bytes == 0 && !good_enough()) attempt(liveness, guide, Lead::kOnDemand);
  if (finished()) return;
  if (uses(SearchStep::kFill))
    if (const auto filled = fill_forward(graph_, liveness, guide, rank_)) {
      best_.spend(graph_.ops + liveness.units());
      Tried tried = attempt(liveness, filled->clock, Lead::kEager, {}, filled->evictions);
      keep(seeds, {{}, std::move(tried)});
      if (finished()) return;
    }
  if (uses(SearchStep::kLp) && (graph_.ops <= kGuidedOps || piece_bytes > 0)) follow_lp(liveness, seeds);
  if (finished()) return;
  for (double factor : {1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 2.6, 3.3}) {
    if (!uses(SearchStep::kStretch)) break;
    // What is slower by far than the best plan has nothing to teach (Llama decode's best comes of one 1.12x slower).
    if (factor * ideal_seconds_ > 1.5 * best_.seconds()) break;
    seed(guide.stretched(factor));
    if (finished()) return;
  }
  if (uses(SearchStep::kFeedback)) replan(liveness, std::move(seeds));
}

void PlanSearch::spread(const Liveness& liveness, std::vector<Seed>& seeds) {
  const std::int64_t least = piece_size(std::numeric_limits<int>::max());
  // Where copies hold ops up all along, the link has more time than the ops' own: again with that. False: once is enough.
  const auto spread_on = [&](const Liveness& units) {
    const auto filled = spread_evictions(graph_, units, *guide_, least);
    if (!filled) return false;
    keep(seeds, {{}, attempt(units, filled->clock, Lead::kEager, {}, filled->evictions)});
    return !good_enough() && learn_contention();
  };
  if (!spread_on(liveness)) return;
  // In pieces, where they are few: a little larger than what the latency is worth.
  const std::int64_t piece = least + least / 3;
  std::int64_t pieces = 0;
  for (const std::int64_t bytes : graph_.bytes) pieces += bytes / piece + 1;
  const bool cut = uses(SearchStep::kPieces) && pieces <= kFewPieces * graph_.tensors;
  const Liveness again(graph_, {liveness.repeats, cut ? piece : 0});
  for (int rounds = 0; rounds < (cut ? 3 : 1) && spread_on(again); ++rounds) {}
}

// The best few, by time, each time once: timelines take memory.
void PlanSearch::keep(std::vector<Seed>& seeds, Seed seed) {
  if (!seed.tried.timeline) return;
  const auto at = std::upper_bound(seeds.begin(), seeds.end(), seed, [](const Seed& a, const Seed& b) {
    return a.tried.seconds < b.tried.seconds;
  });
  if (at != seeds.begin() && std::prev(at)->tried.seconds == seed.tried.seconds) return;
  seeds.insert(at, std::move(seed));
  if (seeds.size() > kSeeds) seeds.pop_back();
}

// Again on the timelines of the best seeds, as they are and with their stalls spread, while that helps.
void PlanSearch::replan(const Liveness& liveness, std::vector<Seed> seeds) {
  const std::vector<Eviction> nothing;
  for (const Seed& first : seeds)
    for (int window : {1, 3, 9, 21, 61, 181}) {
      if (window > 1 && !uses(SearchStep::kSmooth)) break;
      Tried now = first.tried;
      for (int round = 0; round < 4; ++round) {
        const StepClock clock = window == 1 ? *now.timeline : guide_->smoothed(*now.timeline, window);
        const std::vector<Eviction>& given = first.given ? *first.given : nothing;
        Tried next = attempt(liveness, clock, Lead::kEager, first.score, given, first.cancel);
        if (finished()) return;
        if (!next.timeline || next.seconds >= now.seconds) break;
        now = std::move(next);
      }
    }
}

// Pieces pay if there is work left for several passes over them: fine ones, else coarser ones; and finer ones yet
// where a short trace affords them.
void PlanSearch::search_pieces() {
  bool cut_once = false;
  for (int parts : {16, 8, 4, 64}) {
    if (finished() || !uses(SearchStep::kPieces)) break;
    if (parts < 16 && cut_once) continue;
    const Liveness cut(graph_, {options_.iterations > 1, piece_size(parts)});
    if (8.0 * (graph_.ops + cut.units()) > best_.work_left()) continue;
    cut_once = true;
    search(piece_size(parts));
  }
  // Tensors that 50 latencies leave in three parts or whole; the walk says whether smaller pieces pay.
  for (double latencies : {8.0, 2.0}) {
    if (finished() || !uses(SearchStep::kPieces) || piece_size(4, latencies) == piece_size(4)) break;
    const Liveness cut(graph_, {options_.iterations > 1, piece_size(16, latencies)});
    if (8.0 * (graph_.ops + cut.units()) <= best_.work_left()) search(piece_size(16, latencies));
  }
}

// Copies beside an op that wants all of HBM's bandwidth make it longer, which no placement looks at: from here on ops
// take what they took in the best plan. False if that is nothing new.
bool PlanSearch::learn_contention() {
  if (!best_.found() || graph_.engines > 1 || !uses(SearchStep::kContention)) return false;
  Walk packed;
  packed.ops = best_.walk().ops;
  for (OpWalk& op : packed.ops) {
    const double seconds = op.end - op.start;
    op.start = packed.last_iteration;
    op.end = packed.last_iteration += seconds;
  }
  const double known = guide_->seconds(guide_->period());
  if (std::abs(packed.last_iteration - known) <= kNearlyNothing * ideal_seconds_) return false;
  guide_.emplace(graph_, packed, transfer_seconds_);
  return true;
}

// Where pieces gained nothing.
void PlanSearch::swap_whole() {
  if (!whole_ || whole_best_ > best_.seconds() * (1 + 1e-9) || good_enough() || !uses(SearchStep::kSwap)) return;
  const Liveness whole(graph_, {options_.iterations > 1, 0});
  const double pass = graph_.ops + whole.units();
  const int tries = static_cast<int>(kSwapWork[effort()] / pass);
  if (tries < kFewSwaps) return;
  const auto swapped = swap_evictions(graph_, whole, *guide_, rank_, *whole_, tries, guide_->ticks(enough()));
  if (!swapped) return;
  judge(whole, swapped->clock, swapped->placements);
}

void PlanSearch::search_all() {
  search(0);
  if (options_.leave_whole) return move_in_pieces();
  search_pieces();
  if (uses(SearchStep::kTranscribe)) follow_schedules();
  swap_whole();
  for (int rounds = 0; rounds < 2 && !finished() && learn_contention(); ++rounds) search_pieces();
}

Found PlanSearch::run() {
  if (options_.guided)
    search_guided(*options_.guided);
  else
    search_all();
  if (best_.found() && uses(SearchStep::kHasten)) hasten(graph_, best_, enough(), kLateTries[effort()]);
  if (best_.found() && uses(SearchStep::kPostpone)) postpone(graph_, best_, enough(), kLateTries[effort()]);
  if (best_.found()) return {best_.take(), best_.take_walk()};
  if (infeasible_) throw *infeasible_;
  if (graph_.engines > 1)
    throw InfeasibleError("no plan found that can't get stuck in any timing of the overlapping engines: " +
                          best_.first_fault());
  throw InfeasibleError("no plan found that keeps every rule; the last resort fails because " + best_.first_fault());
}

const char* to_string(SearchStep step) {
  constexpr const char* kNames[kSearchSteps] = {"replay", "fill",   "stretch",       "feedback",  "smooth",
                                                "cancel", "latest-reload", "pieces", "lp",     "transcribe", "hasten", "contention",
                                                "postpone", "spread", "swap"};
  return kNames[static_cast<int>(step)];
}

Found search_plan(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options) {
  return PlanSearch(graph, ideal, options).run();
}

}  // namespace hyperoffload
