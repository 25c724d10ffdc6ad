// The search: choose evictions, place transfers, write the plan, walk it; again on other timelines.
//
// One pass plans on a guide timeline. Placing its transfers shows the stalls the guide didn't know; planning
// again on that timeline, on uniformly slowed ones, and with stalls smoothed over their neighbourhood gives
// other plans. The replay of a placement says what a plan is worth before it is written; the walk is the
// judge, and the first plan that can't be beaten (it meets the bound) ends the search.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/analysis/flat_graph.h"
#include "planner/cost/walk.h"
#include "planner/planner.h"

namespace hyperoffload {

// What a search consists of; each can be left out, to see what it is worth (scripts/planner_gap.sh).
enum class SearchStep {
  kReplay,        // time transfers by an event replay, not by the guide timeline alone
  kFill,          // start from evictions that keep the links busy, too
  kStretch,       // plan on uniformly slowed timelines
  kFeedback,      // plan again on the timeline that came out
  kSmooth,        // with its stalls spread over neighbours
  kCancel,        // take superfluous evictions back
  kLatestReload,  // evict what can be reloaded last, too
  kPieces,        // cut tensors
  kLp,            // round the solution of the linear program
  kTranscribe,    // write its schedule as it is, too, or follow it to the letter
  kHasten,        // let loads that ops wait for stand earlier, in the end
  kContention,    // plan again with ops as long as they are beside copies
  kPostpone,      // let copies that slow an op stand behind it, in the end
  kSpread,        // of long traces start from evictions that stand evenly in time, too
  kSwap,          // exchange which whole tensors leave, one at a time
};
inline constexpr int kSearchSteps = 15;
const char* to_string(SearchStep step);

struct SearchOptions {
  int iterations = 1;
  int effort = 1;
  std::uint32_t skip = 0;  // bits: 1 << SearchStep
  double enough_stall = 0;  // proven or all that is asked for: a plan that reaches it ends the search
  bool exact = false;       // what comes near the least proven does not
  const ScheduleGuide* guided = nullptr;  // nothing else
  bool leave_whole = false;  // no tensor stays in part: pieces leave together and come back one by one (skip kPieces and kTranscribe)
};

struct Found {
  Plan plan;
  Walk walk;
};

// The best plan found; HBM is exceeded somewhere and every position's working set fits. O(work of the effort), a few passes at
// least. InfeasibleError if no plan is found that keeps every rule.
Found search_plan(const FlatGraph& graph, const Walk& ideal, const SearchOptions& options);

}  // namespace hyperoffload
