// The linear program's schedule (bound/lp_bound.h) to the letter, for the search of the least HBM and for repeated bodies:
// which bytes of which tensor are away in which gap, from when on, and from when on they come back.
//
// The program is that of what a plan can say: tensors start a cold pass in the pool or in HBM as a whole,
// what starts in HBM stays till it is used, and inputs make no room while the first op runs (what stands behind nothing
// may come before them). Tensors are cut where its shares end (cuts), so that nothing is rounded but bytes; take_evictions
// takes just these evictions, and place_by_replay holds each load back till its slot. One pass or a body that repeats.
// The same capacity as the program's leaves no room for whole pieces: solve it for a little less (0.05-0.2 %).
// What may start in the pool is rounded in the order of use, never to more than the shares so far: else the link could not
// bring it in time, whatever HBM there is. (Each to the nearer side fails on every even chain.)
// One engine, no ops in the pool, no `known_after`, at most kScheduledOps ops; pinned tensors and the pool's capacity are
// unknown to it. O(solves of the program): 0.1-1 s for 100 ops, up to 3 s for kScheduledOps. Weakness: no guide for what has to wait long anyway.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "planner/analysis/liveness.h"
#include "planner/cost/step_clock.h"
#include "planner/passes/fill_forward.h"

namespace hyperoffload {

inline constexpr int kScheduledOps = 250;
bool can_schedule(const FlatGraph& graph, const Liveness& liveness);

struct ScheduleGuide {
  struct Away {  // positions; the gap is named by the access before it
    std::int32_t tensor, open, from, back;  // back: -1: never
    double share;
  };
  std::vector<Away> away;     // by gap, the first to leave first
  std::vector<double> waits;  // by position: seconds before it
};

// One program, warm all along. For the least HBM it is first asked for the least capacity itself, and the tree of starts
// (bound/branch_starts.h) for those that take least; then, with these, for schedules at capacities from there on. A body that
// repeats has no starts to decide.
class ScheduleProgram {
 public:
  // `graph.machine.hbm`: schedules are asked for this capacity and larger ones. can_schedule() says yes.
  ScheduleProgram(const FlatGraph& graph, const Liveness& liveness, const std::vector<std::int32_t>& rank, double ideal);
  ~ScheduleProgram();
  // The least bytes of HBM at which the program stalls no longer than `enough` seconds, with starts that are whole.
  // About three programs a try.
  std::int64_t decide(double enough, int tries);
  // `room`: a share of HBM and bandwidth that is left.
  ScheduleGuide at(std::int64_t hbm, double room);

 private:
  class Scheduler;
  std::unique_ptr<Scheduler> scheduler_;
};

// By tensor, where shares begin and end, to multiples of `grain` bytes.
std::vector<std::vector<std::int64_t>> cuts(const ScheduleGuide& guide, const FlatGraph& graph, std::int64_t grain);

Filled evictions_of(const ScheduleGuide& guide, const Liveness& liveness, const StepClock& ideal);

}  // namespace hyperoffload
