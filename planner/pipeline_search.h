// The search behind pipeline.h: what its steps share. pipeline.cc chooses, places and judges; pipeline_program.cc follows
// the linear program; pipeline_moving.cc moves whole tensors in pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "planner/best_plan.h"
#include "planner/passes/choose_evictions.h"
#include "planner/passes/lp_guide.h"
#include "planner/passes/place_transfers.h"
#include "planner/passes/schedule_guide.h"
#include "planner/passes/swap_evictions.h"
#include "planner/pipeline.h"
#include "sim/model/error.h"

namespace hyperoffload {

// A stall so close to the proven least one, as a share of the ideal time, ends the search.
inline constexpr double kNearlyNothing = 1e-4;

// What a placement came to: seconds of the (last) iteration and the timeline with its stalls.
struct Tried {
  double seconds = std::numeric_limits<double>::infinity();
  std::optional<StepClock> timeline;
};

class PlanSearch {
 public:
  PlanSearch(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options);
  Found run();

 private:
  using Given = std::shared_ptr<const std::vector<Eviction>>;
  struct Seed {
    Score score = Score::kFarthestUse;
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
  Tried attempt(const Liveness& liveness, const StepClock& clock, Lead lead, Score score = Score::kFarthestUse,
                const std::vector<Eviction>& given = {}, bool cancel = true);
  Tried place(const Liveness& liveness, const StepClock& clock, Lead lead, std::unique_ptr<const EvictionLedger> ledger);
  Tried place_replayed(const Liveness& liveness, const StepClock& clock, const EvictionLedger& ledger);
  const Walk& judge(const Liveness& liveness, const StepClock& clock, const Placements& placements);
  void search(std::int64_t piece_bytes);
  void search_pieces();
  void move_in_pieces();
  bool learn_contention();
  std::vector<Score> scores() const;
  void spread(const Liveness& liveness, std::vector<Seed>& seeds);
  void follow_lp(const Liveness& liveness, std::vector<Seed>& seeds);
  void transcribe(const LpGuide& guide);
  void search_guided(const ScheduleGuide& schedule);
  void follow(const ScheduleGuide& schedule);
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

}  // namespace hyperoffload
