// `fixed_distance`: who leaves, when the bytes go and when the load starts, by hand.
#include "sim/policy/fixed_distance.h"

#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "test/policy/plan_text.h"
#include "test/support/catch.h"
#include "test/support/simulate.h"
#include "test/support/toy.h"

using namespace hyperoffload;

namespace {

// t0 (40 B) is idle from op 0 to op 8, t1 (30 B) from op 1 to op 6; op 4 needs 50 B of workspace.
struct Idle : Toy {
  TensorId t0 = activation(40), t1 = activation(30);
  Idle() {
    op(10, {}, {t0});
    op(10, {}, {t1});
    for (int i = 2; i < 6; ++i) op(10, {}, {});
    op(10, {t1}, {});
    op(10, {}, {});
    op(10, {t0}, {});
    at(OpId(4)).workspace = Bytes(50);
  }
};

std::string text(const Graph& graph, const Hardware& hardware, const FixedDistanceOptions& options, int iterations = 1) {
  const StaticPlan made = fixed_distance(graph, hardware, iterations, options);
  CHECK(check_plan(graph, made.plan, {hardware.hbm_usable(), hardware.pool_capacity}, iterations).empty());
  return plan_text(graph, made.plan);
}

}  // namespace

TEST_CASE("fixed_distance loads so many ops before the use and takes the longest idle stretch first") {
  Idle toy;
  const Graph graph = toy.graph();
  // t0 is idle for 8 ops, t1 for 5. 80 B: op 4 holds 120; without t0 80.
  toy.hardware.hbm_capacity = Bytes(80);
  CHECK(text(graph, toy.hardware, {.distance = 2}) ==
        "store t0 after op0; detach t0 after op0; prefetch t0 after op5 for op8");
  CHECK(text(graph, toy.hardware, {.distance = 0}) ==
        "store t0 after op0; detach t0 after op0; prefetch t0 after op7 for op8");
  CHECK(text(graph, toy.hardware, {.distance = 1, .release = 3}) ==
        "store t0 after op0; detach t0 after op3; prefetch t0 after op6 for op8");
  toy.hardware.hbm_capacity = Bytes(79);
  CHECK(text(graph, toy.hardware, {.distance = 1}) ==
        "store t0 after op0; detach t0 after op0; store t1 after op1; detach t1 after op1; "
        "prefetch t1 after op4 for op6; prefetch t0 after op6 for op8");
}

TEST_CASE("fixed_distance: a distance that reaches over the peak spares nothing there") {
  // Loads 5 ops ahead: t0 comes back beside op 3, t1 has no op left in which it is away: op 4 keeps its 120 B.
  Idle toy;
  const Graph graph = toy.graph();
  toy.hardware.hbm_capacity = Bytes(119);
  CHECK_THROWS_WITH(fixed_distance(graph, toy.hardware, 1, {.distance = 5}),
                    "fixed_distance has no idle tensor left and is short of 1 B of HBM at op \"op4\": 120 B are taken "
                    "there, 119 B are there");
}

TEST_CASE("fixed_distance: `count` takes so many whatever fits, `select` only what is idle long enough") {
  Idle toy;
  const Graph graph = toy.graph();
  CHECK(text(graph, toy.hardware, {}).empty());  // all fits
  CHECK(text(graph, toy.hardware, {.distance = 1, .count = 1}) ==
        "store t0 after op0; detach t0 after op0; prefetch t0 after op6 for op8");
  CHECK(text(graph, toy.hardware, {.distance = 1, .select = 6, .count = 5}) ==
        "store t0 after op0; detach t0 after op0; prefetch t0 after op6 for op8");  // t1: 5 ops
}

TEST_CASE("fixed_distance: what an iteration's first ops need is loaded by the one before") {
  // Three weights of 40 B in turn, 80 B. With distance 1 the load of t0 starts beside op 2, for op 0 of the next
  // iteration: it is away beside op 1 only.
  Toy toy;
  std::vector<TensorId> w;
  for (int i = 0; i < 3; ++i) w.push_back(toy.weight(40));
  for (TensorId t : w) toy.op(10, {t}, {});
  const Graph graph = toy.graph();
  toy.hardware.hbm_capacity = Bytes(80);
  // So is each beside the op behind its own use: one is away at each op, 80 B are taken, all three have to leave.
  CHECK(text(graph, toy.hardware, {.distance = 1}, 3) ==
        "pool: t0 t1 t2; prefetch t0 at the start for op0 (first); prefetch t1 at the start for op1; "
        "detach t0 after op0; prefetch t2 after op0 for op2; detach t1 after op1; prefetch t0 after op1 for op0; "
        "detach t2 after op2");
}

TEST_CASE("fixed_distance hides a load behind the ops it is ahead of") {
  // 1 B/us: t0's load takes 40 us. It starts when op 5 is done (distance 2): ops 6 and 7 hide 20 us of it.
  // Its store (80 us, from 10) holds op 4 until 90 us; ops 4..7: 90..130; the load from 110 to 150; op 8 ends at 160.
  Idle toy;
  toy.hardware.hbm_capacity = Bytes(80);
  const Graph graph = toy.graph();
  const auto us = [&](int distance) {
    const StaticPlan made = fixed_distance(graph, toy.hardware, 1, {.distance = distance});
    return total_seconds(simulate_plan(graph, made.plan, toy.hardware)) / Toy::kMicro;
  };
  CHECK(us(2) == Approx(160).epsilon(1e-9));
  CHECK(us(0) == Approx(180).epsilon(1e-9));
}
