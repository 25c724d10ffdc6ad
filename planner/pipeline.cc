#include "planner/pipeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "planner/best_plan.h"
#include "planner/passes/cancel_redundant.h"
#include "planner/passes/choose_evictions.h"
#include "planner/passes/fill_forward.h"
#include "planner/passes/late_changes.h"
#include "planner/passes/lp_guide.h"
#include "planner/passes/place_transfers.h"
#include "planner/passes/replay_placement.h"
#include "planner/passes/schedule_guide.h"
#include "planner/passes/spread_evictions.h"
#include "planner/passes/swap_evictions.h"
#include "planner/passes/write_guide.h"
#include "planner/passes/write_plan.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

// Work of a search by effort, in ops and units per pass summed over passes: about 1 s for the default on
// one slow core, so that the same input gives the same plan on every machine.
constexpr double kWork[] = {0, 1.2e6, 25e6};

// Loads that are tried behind earlier ops, and copies behind later ones, by effort.
constexpr int kLateTries[] = {0, 60, 1000};

// The linear program's guide by effort: one pass leaves it a hundredth of a second.
constexpr GuideEffort kGuideEffort[] = {{0, 6e6}, {50, 6e7}, {400, 6e8}};

// Starts that a schedule looks at again, by effort.
constexpr int kStartTries[] = {0, 50, 200};

// HBM and bandwidth that schedules leave to whole pieces.
constexpr double kScheduleRooms[] = {0, 0.001, 0.002, 0.005, 0.02};

// Ops and units that exchanges of whole tensors may replay, by effort (about 0.4 s), beside the search's work: a replay
// is cheap. Fewer exchanges than so many gain nothing.
constexpr double kSwapWork[] = {0, 4e6, 4e7};
constexpr int kFewSwaps = 500;

// A stall so close to the proven least one, as a share of the ideal time, ends the search.
constexpr double kNearlyNothing = 1e-4;

// Timelines that are planned on again.
constexpr std::size_t kSeeds = 4;

// What a placement came to: seconds of the (last) iteration and the timeline with its stalls.
struct Tried {
  double seconds = std::numeric_limits<double>::infinity();
  std::optional<StepClock> timeline;
};

class Search {
 public:
  Search(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options)
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
  Found run();

 private:
  using Given = std::shared_ptr<const std::vector<Eviction>>;
  struct Seed {
    SweepOrder order;
    Tried tried;
    Given given = {};  // what the linear program moves, to be kept
    bool cancel = true;
  };

  int effort() const { return std::clamp(options_.effort, 0, 2); }
  bool uses(SearchStep step) const { return (options_.skip >> static_cast<int>(step) & 1U) == 0; }
  // Nothing more to win, or no work left.
  bool finished() const { return good_enough() || best_.no_work_left(); }
  bool good_enough() const { return best_.found() && best_.seconds() <= enough(); }
  // Seconds of an iteration that nothing beats; one pass is content with next to nothing more.
  double enough() const {
    const double close = effort() == 0 ? kNearlyNothing : 1e-9;
    return ideal_seconds_ + enough_stall_ + close * ideal_seconds_;
  }
  Tried attempt(const Liveness& liveness, const StepClock& clock, Lead lead, SweepOrder order = {},
                const std::vector<Eviction>& given = {}, bool cancel = true);
  Tried place(const Liveness& liveness, const StepClock& clock, Lead lead, const EvictionLedger& ledger);
  Tried place_replayed(const Liveness& liveness, const StepClock& clock, const EvictionLedger& ledger);
  const Walk& judge(const Liveness& liveness, const StepClock& clock, const Placements& placements);
  void search(std::int64_t piece_bytes);
  void search_pieces();
  bool learn_contention();
  std::vector<SweepOrder> orders() const;
  void spread(const Liveness& liveness, std::vector<Seed>& seeds);
  void follow_lp(const Liveness& liveness, std::vector<Seed>& seeds);
  void transcribe(const LpGuide& guide);
  void search_guided(const ScheduleGuide& schedule);
  void follow(const ScheduleGuide& schedule);
  void follow_schedule(const Liveness& whole, double room, std::vector<char>& starts);
  void follow_schedules();
  void swap_whole();
  void search_all();
  static void keep(std::vector<Seed>& seeds, Seed seed);
  void replan(const Liveness& liveness, std::vector<Seed> seeds);
  std::int64_t piece_size(int parts, double latencies = 50) const;

  const FlatGraph& graph_;
  const SearchOptions& options_;
  const std::vector<std::int32_t> rank_;
  const double ideal_seconds_;
  double transfer_seconds_ = 0;
  double enough_stall_;
  std::optional<SwapStart> whole_;  // of whole tensors, the best so far
  double whole_seconds_ = std::numeric_limits<double>::infinity(), whole_best_ = whole_seconds_;
  std::optional<LpGuide> lp_;
  bool lp_tried_ = false;
  std::optional<StepClock> guide_;  // the ops' own times; in the end those beside copies
  BestPlan best_;
  std::optional<InfeasibleError> infeasible_;
};

Tried Search::attempt(const Liveness& liveness, const StepClock& clock, Lead lead, SweepOrder order,
                      const std::vector<Eviction>& given, bool cancel) {
  EvictionLedger ledger(graph_, liveness, clock);
  try {
    if (lead == Lead::kOnDemand)
      choose_on_demand(graph_, liveness, clock, rank_, ledger);
    else
      best_.spend(0.2 * static_cast<double>(choose_evictions(graph_, liveness, clock, rank_, order, ledger, given)));
  } catch (const InfeasibleError& error) {  // other pieces or another timeline may yet do
    if (!infeasible_) infeasible_ = error;
    return {};
  }
  if (lead != Lead::kOnDemand && cancel && uses(SearchStep::kCancel)) cancel_redundant(graph_, liveness, ledger);
  return place(liveness, clock, lead, ledger);
}

Tried Search::place(const Liveness& liveness, const StepClock& clock, Lead lead, const EvictionLedger& ledger) {
  best_.spend(graph_.ops + liveness.units());
  if (lead == Lead::kEager && uses(SearchStep::kReplay))
    if (Tried tried = place_replayed(liveness, clock, ledger); tried.timeline) return tried;
  const Walk& walk = judge(liveness, clock, place_transfers(graph_, liveness, clock, rank_, ledger, lead));
  if (walk.stuck) return {};
  return {walk.last_iteration, StepClock(graph_, walk, transfer_seconds_)};
}

// By the replay; where the plan turns out slower than that, by the firm one, too.
Tried Search::place_replayed(const Liveness& liveness, const StepClock& clock, const EvictionLedger& ledger) {
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
const Walk& Search::judge(const Liveness& liveness, const StepClock& clock, const Placements& placements) {
  const Walk& walk = best_.judge(write_plan(graph_, liveness, clock, rank_, placements));
  if (liveness.units() == static_cast<int>(liveness.gaps.size()) && !walk.stuck)
    whole_best_ = std::min(whole_best_, walk.last_iteration);
  return walk;
}

// What a piece takes on the link is at least so many latencies.
std::int64_t Search::piece_size(int parts, double latencies) const {
  const std::int64_t largest = *std::max_element(graph_.bytes.begin(), graph_.bytes.end());
  const NpuMachine& m = graph_.machine;
  const double worth = latencies * std::max(m.read_latency * m.read_bandwidth, m.write_latency * m.write_bandwidth);
  return std::max<std::int64_t>(
      {(largest + parts - 1) / parts, static_cast<std::int64_t>(worth), m.allocation.granularity.value, 1});
}

// A cold pass has two ways to begin; a repeated body none.
std::vector<SweepOrder> Search::orders() const {
  std::vector<SweepOrder> orders;
  for (Score score : {Score::kFarthestUse, Score::kFarthestReload}) {
    if (score == Score::kFarthestReload && !uses(SearchStep::kLatestReload)) continue;
    orders.push_back({score, ColdStart::kStoreFirst});
    if (options_.iterations == 1 && uses(SearchStep::kPoolFirst)) orders.push_back({score, ColdStart::kPoolFirst});
  }
  return orders;
}

void Search::search(std::int64_t piece_bytes) {
  const Liveness liveness(graph_, {options_.iterations > 1, piece_bytes});
  const StepClock& guide = *guide_;
  attempt(liveness, guide, Lead::kLate);
  if (good_enough()) return;
  std::vector<Seed> seeds;
  const auto seed = [&](const StepClock& clock) {
    for (const SweepOrder& order : orders()) {
      Tried tried = attempt(liveness, clock, Lead::kEager, order);
      keep(seeds, {order, std::move(tried)});
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

void Search::spread(const Liveness& liveness, std::vector<Seed>& seeds) {
  const auto filled = spread_evictions(graph_, liveness, *guide_, piece_size(std::numeric_limits<int>::max()));
  if (filled) keep(seeds, {{}, attempt(liveness, filled->clock, Lead::kEager, {}, filled->evictions)});
}

// The linear program's own schedule. It knows of one pass, and nothing of pinned tensors.
void Search::transcribe(const LpGuide& guide) {
  if (options_.iterations > 1 || std::count(graph_.stays.begin(), graph_.stays.end(), 1) > 0) return;
  for (int parts : {16, 64, 256}) {
    double seconds = std::numeric_limits<double>::infinity();
    for (std::vector<int> first;;) {
      if (finished()) return;
      Plan plan = write_guide(graph_, guide, piece_size(parts), first);
      best_.spend(graph_.ops + static_cast<double>(plan.actions.size()));
      const Walk& walk = best_.judge(std::move(plan));
      if (walk.stuck || walk.last_iteration >= seconds * (1 - 1e-6)) break;
      seconds = walk.last_iteration;
      const std::size_t known = first.size();
      for (const OpWalk& op : walk.ops)
        if (op.start > op.resident && std::find(first.begin(), first.end(), op.op) == first.end()) first.push_back(op.op);
      const bool more = first.size() > known;
      if (!more) break;
    }
  }
}

// What the linear program would move, on its timeline and on the ops' own.
void Search::follow_lp(const Liveness& liveness, std::vector<Seed>& seeds) {
  const bool first = !std::exchange(lp_tried_, true);
  if (first) lp_ = lp_guide(graph_, liveness, rank_, ideal_seconds_, kGuideEffort[effort()]);
  if (!lp_) return;
  if (!options_.exact) enough_stall_ = std::max(enough_stall_, lp_->least_stall + kNearlyNothing * ideal_seconds_);
  if (first && !lp_->flows.empty() && uses(SearchStep::kTranscribe)) {
    transcribe(*lp_);
    for (const LpGuide& guide : lp_->with_margin) transcribe(guide);
  }
  Filled rounded = round_guide(*lp_, liveness, *guide_);
  const auto given = std::make_shared<const std::vector<Eviction>>(std::move(rounded.evictions));
  std::vector<StepClock> clocks{rounded.clock, *guide_};
  // A stream keeps its link busy all round the circle: the program's times leave whole pieces no slack.
  if (liveness.repeats) clocks.insert(clocks.begin() + 1, {rounded.clock.stretched(1.04), rounded.clock.stretched(1.15)});
  // What is superfluous on the guide's timeline may yet make room for an early load.
  for (const StepClock& clock : clocks)
    for (const bool cancel : {true, false}) {
      Tried tried = attempt(liveness, clock, Lead::kEager, {}, *given, cancel);
      keep(seeds, {{}, std::move(tried), given, cancel});
      if (finished()) return;
    }
}

// The best few, by time, each time once: timelines take memory.
void Search::keep(std::vector<Seed>& seeds, Seed seed) {
  if (!seed.tried.timeline) return;
  const auto at = std::upper_bound(seeds.begin(), seeds.end(), seed, [](const Seed& a, const Seed& b) {
    return a.tried.seconds < b.tried.seconds;
  });
  if (at != seeds.begin() && std::prev(at)->tried.seconds == seed.tried.seconds) return;
  seeds.insert(at, std::move(seed));
  if (seeds.size() > kSeeds) seeds.pop_back();
}

void Search::search_guided(const ScheduleGuide& schedule) {
  const Liveness whole(graph_, {options_.iterations > 1, 0});
  attempt(whole, *guide_, Lead::kLate);
  if (good_enough()) return;
  follow(schedule);
}

// The program's schedule for a little less HBM and bandwidth.
void Search::follow_schedule(const Liveness& whole, double room, std::vector<char>& starts) {
  FlatGraph less = graph_;
  less.machine.hbm -= static_cast<std::int64_t>(room * static_cast<double>(less.machine.hbm));
  less.machine.read_bandwidth *= 1 - room;
  less.machine.write_bandwidth *= 1 - room;
  const auto schedule = schedule_guide(less, whole, rank_, ideal_seconds_, kStartTries[effort()], starts);
  if (schedule) follow(*schedule);
}

// To the letter.
void Search::follow(const ScheduleGuide& schedule) {
  const std::int64_t pays = piece_size(std::numeric_limits<int>::max());
  const std::int64_t least = std::max<std::int64_t>(1, graph_.machine.allocation.granularity.value);
  // The last: only those pieces that the program asks for, however small, since latency makes them dear.
  for (const auto& [piece, grain] :
       {std::pair{piece_size(32), pays}, {piece_size(128), pays}, {piece_size(1), least}}) {
    const Liveness liveness(graph_, {options_.iterations > 1, piece, cuts(schedule, graph_, grain)});
    const Filled filled = evictions_of(schedule, liveness, *guide_);
    EvictionLedger ledger(graph_, liveness, filled.clock);
    take_evictions(graph_, liveness, filled.clock, rank_, ledger, filled.evictions);
    for (bool firm : {false, true}) {
      if (finished()) return;
      best_.spend(graph_.ops + liveness.units());
      const auto replayed =
          place_by_replay(graph_, liveness, filled.clock, *guide_, rank_, ledger, firm, &filled.evictions);
      if (!replayed) break;
      const Walk walk = judge(liveness, replayed->clock, replayed->placements);
      if (walk.last_iteration <= replayed->clock.seconds(replayed->clock.period()) * (1 + 1e-6)) break;
    }
  }
}

// Again on the timelines of the best seeds, as they are and with their stalls spread, while that helps.
void Search::replan(const Liveness& liveness, std::vector<Seed> seeds) {
  const std::vector<Eviction> nothing;
  for (const Seed& first : seeds)
    for (int window : {1, 3, 9, 21, 61, 181}) {
      if (window > 1 && !uses(SearchStep::kSmooth)) break;
      Tried now = first.tried;
      for (int round = 0; round < 4; ++round) {
        const StepClock clock = window == 1 ? *now.timeline : guide_->smoothed(*now.timeline, window);
        const std::vector<Eviction>& given = first.given ? *first.given : nothing;
        Tried next = attempt(liveness, clock, Lead::kEager, first.order, given, first.cancel);
        if (finished()) return;
        if (!next.timeline || next.seconds >= now.seconds) break;
        now = std::move(next);
      }
    }
}

// Pieces pay if there is work left for several passes over them: fine ones, else coarser ones; and finer ones yet
// where a short trace affords them.
void Search::search_pieces() {
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
bool Search::learn_contention() {
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

// Of a repeated body; one pass has transcribe().
void Search::follow_schedules() {
  if (options_.iterations == 1 || !lp_ || std::count(graph_.stays.begin(), graph_.stays.end(), 1) > 0) return;
  const Liveness whole(graph_, {true, 0});
  std::vector<char> starts;
  for (double room : kScheduleRooms) {
    if (finished()) return;
    follow_schedule(whole, room, starts);
  }
}

// Where pieces gained nothing.
void Search::swap_whole() {
  if (!whole_ || whole_best_ > best_.seconds() * (1 + 1e-9) || good_enough() || !uses(SearchStep::kSwap)) return;
  const Liveness whole(graph_, {options_.iterations > 1, 0});
  const double pass = graph_.ops + whole.units();
  const int tries = static_cast<int>(kSwapWork[effort()] / pass);
  if (tries < kFewSwaps) return;
  const auto swapped = swap_evictions(graph_, whole, *guide_, rank_, *whole_, tries, guide_->ticks(enough()));
  if (!swapped) return;
  judge(whole, swapped->clock, swapped->placements);
}

void Search::search_all() {
  search(0);
  search_pieces();
  if (uses(SearchStep::kTranscribe)) follow_schedules();
  swap_whole();
  for (int rounds = 0; rounds < 2 && !finished() && learn_contention(); ++rounds) search_pieces();
}

Found Search::run() {
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

}  // namespace

const char* to_string(SearchStep step) {
  constexpr const char* kNames[kSearchSteps] = {"replay", "fill",   "stretch",       "feedback",  "smooth",
                                                "cancel", "latest-reload", "pool-first", "pieces", "lp", "transcribe", "hasten", "contention",
                                                "postpone", "spread", "swap"};
  return kNames[static_cast<int>(step)];
}

Found search_plan(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options) {
  return Search(graph, ideal, options).run();
}

}  // namespace hyperoffload
