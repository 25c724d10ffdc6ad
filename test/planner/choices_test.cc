// What a user may choose: tensors that stay, and ops that may move.
#include "planner/reorder.h"
#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "sim/model/plan_order.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

Graph weights(int count) {
  Toy t;
  for (int i = 0; i < count; ++i) t.op(10, {t.weight("w" + std::to_string(i), 10)});
  return t.build();
}

// Two branches of a producer of 10 B and its consumer, the producers first: both results live at once.
Graph branches() {
  Toy t;
  const TensorId a = t.activation("a", 10), b = t.activation("b", 10);
  t.op(1, {}, {a});
  t.op(1, {}, {b});
  t.op(1, {a});
  t.op(1, {b});
  return t.build();
}

std::vector<int> numbers(const std::vector<OpId>& order) {
  std::vector<int> result;
  for (OpId op : order) result.push_back(op.value);
  return result;
}

}  // namespace

TEST_CASE("planner: a pinned tensor is in no action, by name, pattern or kind") {
  const Graph g = weights(6);
  for (const char* pin : {"w0", "w?", "*1"}) {
    PlannerOptions options;
    options.iterations = 3;
    options.pinned = {pin};
    const auto stays = pinned_tensors(g, options.pinned);
    if (std::string(pin) == "w?") {  // all six: 60 B
      CHECK_THROWS_AS(make_plan(g, machine(40), options), InfeasibleError);
      CHECK(make_plan(g, machine(60), options).plan.actions.empty());
      continue;
    }
    const Plan plan = make_plan(g, machine(40), options).plan;
    CHECK(check_plan(g, plan, {Bytes(40), machine(1).pool_capacity}, 3).empty());
    CHECK_FALSE(plan.actions.empty());
    for (const Action& action : plan.actions) CHECK_FALSE(stays[action.tensor.index()]);
    for (TensorId t : plan.initial_pool) CHECK_FALSE(stays[t.index()]);
  }
  CHECK(pinned_tensors(g, {"weight"}) == std::vector<char>(6, 1));
  CHECK_THROWS_AS(pinned_tensors(g, {"x*"}), InputError);
}

TEST_CASE("planner: where pins take the room that an op needs, they are named") {
  // Op 2 reads w2 (10 B) beside the pinned w0 and w1; 25 B of HBM would do without pins.
  const Graph g = weights(4);
  PlannerOptions options;
  options.pinned = {"w0", "w1"};
  try {
    make_plan(g, machine(25), options);
    FAIL("there is no such plan");
  } catch (const InfeasibleError& error) {
    const std::string said = error.what();
    INFO(said);
    CHECK(said.find("needs 30 B") != std::string::npos);
    CHECK(said.find("20 B of it only because tensors are pinned: \"w0\" 10 B, \"w1\" 10 B") != std::string::npos);
  }
  options.pinned = {};
  CHECK_FALSE(make_plan(g, machine(25), options).plan.actions.empty());
}

TEST_CASE("reorder: what frees memory goes first, what takes it last, dependencies kept") {
  const Graph g = branches();
  // op2 frees a, so it comes before op1 takes b's bytes.
  CHECK(numbers(order_by(g, OrderRule::kFreeFirst)) == std::vector<int>{0, 2, 1, 3});
  CHECK(numbers(order_by(g, OrderRule::kGrowLast)) == std::vector<int>{0, 2, 1, 3});
}

TEST_CASE("reorder: ops that read the same weight follow each other") {
  // Two micro-batches through two layers: m0 l0, m0 l1, m1 l0, m1 l1.
  Toy t;
  const TensorId w0 = t.weight("w0", 100), w1 = t.weight("w1", 100);
  for (int m : {0, 1}) {
    const TensorId x = t.activation("x" + std::to_string(m), 1);
    t.op(1, {w0}, {x});
    t.op(1, {w1, x});
  }
  CHECK(numbers(order_by(t.build(), OrderRule::kReuse)) == std::vector<int>{0, 2, 1, 3});
}

TEST_CASE("reorder: the plan takes no longer than program order's, and its order keeps every dependency") {
  const Graph g = branches();
  const Hardware h = machine(10, 0.1, 0.1);
  const PlanOutcome moved = make_reordered_plan(g, h, {});
  // Program order has to store a (100 s) and load it again; in the other order nothing ever moves.
  CHECK(moved.plan.prediction->iteration.value == Approx(4));
  CHECK(make_plan(g, h, {}).plan.prediction->iteration.value > 100);
  REQUIRE_FALSE(moved.plan.order.empty());
  CHECK(check_order(g, moved.plan).empty());
  const Reordered in_order = reorder(g, moved.plan);
  CHECK(check_plan(in_order.graph, in_order.plan, {Bytes(10), h.pool_capacity}, 1).empty());
}
