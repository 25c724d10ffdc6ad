// The planner's walk of time against the reference replay: the same thousands of random cases that the
// SimGrid replay has to pass, to 1e-9. Prediction equals simulation because both equal the reference.
#include <algorithm>
#include <cmath>

#include "planner/analysis/flat_graph.h"
#include "planner/cost/walk.h"
#include "sim/model/error.h"
#include "test/support/catch.h"
#include "test/support/replay_property.h"

using namespace hyperoffload;

namespace {

RunRecord walk_as_replay(const Graph& graph, const Plan& plan, const Hardware& hardware, int iterations) {
  const FlatGraph flat(graph, hardware);
  WalkOptions options;
  options.iterations = iterations;
  options.record = WalkRecord::kEverything;
  const Walk walk = walk_plan(flat, plan, options);
  if (walk.stuck) throw InfeasibleError("the walk gets stuck");
  RunRecord record;
  record.iterations = iterations;
  record.full = true;
  record.pool_peak = Bytes(walk.pool_peak);
  record.npus.resize(1);
  NpuRecord& npu = record.npus[0];
  npu.hbm_peak = Bytes(walk.hbm_peak);
  for (const OpWalk& op : walk.ops)
    npu.ops.push_back({op.iteration, OpId(op.op), Seconds(op.ready), Seconds(op.resident), Seconds(op.start),
                       Seconds(op.end), Seconds(0), TensorId::none(), -1});
  for (const TransferWalk& t : walk.transfers) {
    const Action& action = plan.actions[static_cast<std::size_t>(t.action)];
    const Direction direction =
        action.kind == ActionKind::kPrefetch ? Direction::kPoolToHbm : Direction::kHbmToPool;
    npu.transfers.push_back({direction, t.iteration, action.tensor, action.from, action.to, Seconds(t.queued),
                             Seconds(t.start), Seconds(t.flow_start), Seconds(std::isinf(t.end) ? t.start : t.end), t.action});
  }
  for (int i = 0; i < iterations; ++i) {
    Seconds end;
    for (const OpWalk& op : walk.ops)
      if (op.iteration == i) end = std::max(end, Seconds(op.end));
    const Seconds start = i == 0 ? Seconds(0) : npu.iteration_end.back();
    npu.iteration_start.push_back(start);
    npu.iteration_end.push_back(end);
  }
  return record;
}

}  // namespace

TEST_CASE("the planner's walk and the reference agree on thousands of random plans") {
  const PropertyReport report = compare_plans(1, 3000, 2, walk_as_replay);
  INFO(report.failures << " of " << report.cases << " differ; the smallest:\n" << report.smallest_failure);
  CHECK(report.failures == 0);
}
