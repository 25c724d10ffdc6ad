// The steps of the search that follow the linear program.
#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "planner/passes/replay_placement.h"
#include "planner/passes/write_guide.h"
#include "planner/pipeline_search.h"

namespace hyperoffload {
namespace {

// The linear program's guide by effort: one pass leaves it a hundredth of a second.
constexpr GuideEffort kGuideEffort[] = {{0, 6e6}, {50, 6e7}, {400, 6e8}};

// HBM and bandwidth that schedules leave to whole pieces.
constexpr double kScheduleRooms[] = {0, 0.001, 0.002, 0.005, 0.02};

}  // namespace

// The linear program's own schedule. It knows of one pass, and nothing of pinned tensors.
void PlanSearch::transcribe(const LpGuide& guide) {
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
void PlanSearch::follow_lp(const Liveness& liveness, std::vector<Seed>& seeds) {
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
  // What is superfluous on the guide's timeline may yet make room for an early load.
  const auto follow = [&](const StepClock& clock) {
    for (const bool cancel : {true, false}) {
      Tried tried = attempt(liveness, clock, Lead::kEager, {}, *given, cancel);
      keep(seeds, {{}, std::move(tried), given, cancel});
      if (finished()) return true;
    }
    return false;
  };
  if (follow(rounded.clock)) return;
  // A stream keeps its link busy all round the circle: the program's times leave whole pieces no slack.
  if (liveness.repeats && (follow(rounded.clock.stretched(1.04)) || follow(rounded.clock.stretched(1.15)))) return;
  follow(*guide_);
}

void PlanSearch::search_guided(const ScheduleGuide& schedule) {
  const Liveness whole(graph_, {options_.iterations > 1, 0});
  attempt(whole, *guide_, Lead::kLate);
  if (good_enough()) return;
  follow(schedule);
}

// To the letter.
void PlanSearch::follow(const ScheduleGuide& schedule) {
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

// Of a repeated body; one pass has transcribe().
void PlanSearch::follow_schedules() {
  const Liveness whole(graph_, {options_.iterations > 1, 0});
  if (!whole.repeats || !lp_ || finished() || !can_schedule(graph_, whole)) return;
  if (std::count(graph_.stays.begin(), graph_.stays.end(), 1) > 0) return;
  const std::int64_t working = *std::max_element(whole.working_set.begin(), whole.working_set.end());
  const auto less = [&](double room) { return graph_.machine.hbm - static_cast<std::int64_t>(room * static_cast<double>(graph_.machine.hbm)); };
  FlatGraph least = graph_;
  least.machine.hbm = std::max(working, less(std::end(kScheduleRooms)[-1]));
  ScheduleProgram program(least, whole, rank_, ideal_seconds_);
  for (double room : kScheduleRooms) {
    if (finished() || less(room) < working) return;
    follow(program.at(graph_.machine.hbm, room));
  }
}

}  // namespace hyperoffload
