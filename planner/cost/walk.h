// The planner's own exact walk of time over a plan, for one NPU: the judge between candidate plans and
// the source of predictions.
//
// Event by event it keeps every rule of docs/semantics.md: engines, dependencies, queues, pieces,
// scopes, inputs, workspace, both tiers' capacity, ops in the pool, and HBM bandwidth shared max-min
// between ops and copies. It trusts the plan to be valid (check_plan judges that) but not to be free
// of deadlock: a walk that gets stuck says where. Times in seconds from 0, iterations count from 0.
// When an iteration starts in the very state the one before started in, the walk jumps to the last
// iteration: a long run costs little more than two or three.
// O(events x (engines + accesses of the op)); millions of ops a second on one engine.
// Weakness: other NPUs on a shared port are not seen, only an equal share (NpuMachine::estimate).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "sim/model/plan.h"
#include "sim/model/residency.h"

namespace hyperoffload {

enum class WalkRecord { kNothing, kLastIteration, kEverything };

class WalkMemory;

struct WalkOptions {
  int iterations = 1;
  WalkRecord record = WalkRecord::kNothing;
  bool unlimited = false;  // the ideal run: everything where it is needed, no transfers, room without end
  // Called as each op of the last iteration has taken its bytes, with what is taken then; with op -1 as the
  // iteration begins and whenever its inputs or a transfer have taken theirs.
  std::function<void(int op, const WalkMemory& memory)> on_take{};
  Residency* watch = nullptr;  // told who comes into HBM and goes, in all iterations: none is skipped
};

struct OpWalk {
  int iteration = 0;
  int op = 0;
  double ready = 0;     // engine free, dependencies done, iteration open
  double resident = 0;  // earlier actions on what it accesses done, too
  double start = 0;     // room was there, too
  double end = 0;
  int waited_action = -1;  // the action it waited for last; -1: none
};

struct TransferWalk {
  int iteration = 0;  // of the plan's body
  int action = 0;
  double queued = 0;  // head of its queue, what it waits for done
  double start = 0;   // room was there, too
  double flow_start = 0;
  double end = 0;  // infinite: still under way when the last op ends
};

struct WalkStuck {
  int iteration = 0;
  int op = -1;  // the first op that can't start; -1: the iteration's inputs
  std::int64_t short_bytes = 0;
};

struct Walk {
  std::optional<WalkStuck> stuck;
  double first_iteration = 0, last_iteration = 0, total = 0;
  double last_start = 0;  // when the last iteration starts
  std::int64_t hbm_peak = 0, pool_peak = 0;
  std::vector<OpWalk> ops;              // in order of start
  std::vector<TransferWalk> transfers;  // in order of start; kLastIteration: from the body before it on
};

Walk walk_plan(const FlatGraph& graph, const Plan& plan, const WalkOptions& options);

}  // namespace hyperoffload
