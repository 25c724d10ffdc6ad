// What the search tries once its placements are done: copies behind ops that want all of HBM's bandwidth, and pieces
// that are small beside the link's latency.
#include "planner/decision_log.h"
#include "planner/passes/late_changes.h"
#include "planner/pipeline.h"
#include "planner/planner.h"
#include "sim/model/check_plan.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

double iteration(const Graph& g, const Hardware& h, PlannerOptions options) {
  const Plan plan = make_plan(g, h, options).plan;
  CHECK(check_plan(g, plan, {h.hbm_usable(), h.pool_capacity}, options.iterations).empty());
  return plan.prediction->iteration.value;
}

// w (20 B) leaves in part for x (20 B) each iteration, is overwritten, and has 100 s to be stored again; but the op
// right behind the write takes all of HBM's bandwidth.
Graph store_beside_a_hungry_op() {
  Toy t;
  const TensorId w = t.weight("w", 20), x = t.activation("x", 20);
  t.op(10, {w});
  t.op(10, {}, {x});
  t.op(10, {x});
  t.op(0, {}, {w});
  t.op(10, {});
  t.last().hbm_bytes = Bytes(10);
  t.op(100, {w});
  return t.build();
}

}  // namespace

TEST_CASE("planner: a store that has time stands behind an op that takes all of HBM's bandwidth") {
  const Graph g = store_beside_a_hungry_op();
  Hardware h = machine(30);
  h.hbm_bandwidth = BytesPerSecond(1);
  PlannerOptions options;
  options.iterations = 3;
  const double ideal = 10 + 10 + 10 + 0 + 10 + 100;
  CHECK(iteration(g, h, options) == Approx(ideal));
  options.skip = 1U << static_cast<int>(SearchStep::kPostpone);
  CHECK(iteration(g, h, options) > ideal + 1);
}

TEST_CASE("planner: a copy is in the way of the op that it makes longer, and moves behind it in its queue") {
  const Graph g = store_beside_a_hungry_op();
  Hardware h = machine(1000);
  h.hbm_bandwidth = BytesPerSecond(1);
  Plan plan;
  const auto store = [&](std::int64_t from, std::int64_t to, int after) {
    Action a = action(ActionKind::kStore, g, TensorId(std::size_t{0}), after);
    a.from = Bytes(from);
    a.to = Bytes(to);
    plan.actions.push_back(a);
  };
  store(0, 5, 3);    // runs beside op4, half as fast: 5 B take 10 s, and op4 5 s more
  store(5, 20, 4);   // beside op5, which wants no bandwidth
  const FlatGraph flat(g, h);
  const auto found = copies_in_the_way(flat, walk_plan(flat, plan, {1, WalkRecord::kLastIteration, false}));
  REQUIRE(found.size() == 1);
  CHECK(found[0] == std::pair(0, OpId(4)));
  const Plan moved = moved_behind(plan, 0, OpId(4));
  CHECK(moved.actions[0].from == Bytes(5));
  CHECK(moved.actions[1].after_op == OpId(4));
  CHECK(moved.actions[1].to == Bytes(5));
}

TEST_CASE("planner: a tensor of 50 latencies is cut where halves pay") {
  // Three weights of 1000 B in turns, 20 B/s and 1 s of latency, room for 2500 B. Whole: two loads of 51 s and two ops
  // of 10 s. In halves, by hand: w0's behind c, and w2's behind a while b runs.
  Toy t;
  for (int k = 0; k < 3; ++k) t.op(10, {t.weight("w" + std::to_string(k), 1000)});
  const Graph g = t.build();
  PlannerOptions options;
  options.iterations = 3;
  const double by_hand = 2 * (1 + 500 / 20.0) + 2 * 10, least = 30;
  const double found = iteration(g, machine(2500, 20, 80, 1), options);
  CHECK(found <= by_hand * (1 + 1e-9));
  CHECK(found > least);
}

TEST_CASE("explain: of an exposed transfer, the bandwidth that would hide it, where one does") {
  // w's load starts at 0 with 10 B at 0.5 B/s: 20 s. Op 1 could start at 10 and waits 10 s, so 10 B in 10 s would do.
  // Behind op0 it could not be hidden at any bandwidth: there op 1 waits for all of it.
  Toy t;
  const TensorId w = t.weight("w", 10);
  t.op(10, {});
  t.op(10, {w});
  const Graph g = t.build();
  for (const int after : {-1, 0}) {
    Plan plan;
    plan.initial_pool = {w};
    plan.actions = {action(ActionKind::kPrefetch, g, w, after)};
    const std::string text = to_text(explain_actions(g, machine(100, 0.5), plan, 1));
    INFO(text);
    CHECK(text.find(after < 0 ? "op1 waits 10 s for it, which would take 1 B/s or more" : "op1 waits 20 s for it\n") !=
          std::string::npos);
  }
}
