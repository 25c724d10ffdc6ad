// The selection and placement of `greedy_gap`, worked out by hand from the rules in greedy_gap.h.
#include "sim/policy/greedy_gap.h"

#include "sim/model/check_plan.h"
#include "sim/model/error.h"
#include "test/policy/plan_text.h"
#include "test/support/catch.h"
#include "test/support/simulate.h"
#include "test/support/toy.h"

using namespace hyperoffload;

namespace {

// Three activations kept from the way there to the way back; op 3 adds its own output.
//   op:   0    1    2    3    4    5    6        bytes
//   t0    W    .    .    .    .    .    R          40
//   t1         W    .    .    .    R               30
//   t2              W    .    R                    50
//   t3                   W    R                    10
//   R    40   70  120  130  130   70   40
struct ThereAndBack : Toy {
  TensorId t0 = activation(40), t1 = activation(30), t2 = activation(50), t3 = activation(10);
  ThereAndBack() {
    op(10, {}, {t0});
    op(10, {}, {t1});
    op(10, {}, {t2});
    op(10, {}, {t3});
    op(10, {t2, t3}, {});
    op(10, {t1}, {});
    op(10, {t0}, {});
  }
};

}  // namespace

TEST_CASE("greedy_gap takes the longest gap first and loads right before the use") {
  ThereAndBack toy;
  const Graph graph = toy.graph();
  // Gaps: t0 of 6 ops, t1 of 4, t2 of 2 (t3's accesses are neighbours: no candidate).
  // 100 B: t0 leaves ops 1..5, R = 40 30 80 90 90 30 40, which fits.
  toy.hardware.hbm_capacity = Bytes(100);
  CHECK(plan_text(graph, greedy_gap(graph, toy.hardware, 1, {}).plan) ==
        "store t0 after op0; detach t0 after op0; prefetch t0 after op5 for op6");
  // 89 B: t1 too, from ops 2..4: R = 40 30 50 60 60 30 40.
  toy.hardware.hbm_capacity = Bytes(89);
  CHECK(plan_text(graph, greedy_gap(graph, toy.hardware, 1, {}).plan) ==
        "store t0 after op0; detach t0 after op0; store t1 after op1; detach t1 after op1; "
        "prefetch t1 after op4 for op5; prefetch t0 after op5 for op6");
  // 60 B is exactly what those two leave; 59 B are not enough: op 4 itself takes t2 and t3.
  toy.hardware.hbm_capacity = Bytes(60);
  CHECK(greedy_gap(graph, toy.hardware, 1, {}).plan.actions.size() == 6);
  toy.hardware.hbm_capacity = Bytes(59);
  CHECK_THROWS_WITH(greedy_gap(graph, toy.hardware, 1, {}),
                    "greedy_gap has no gap left to use and is short of 1 B of HBM at op \"op4\": 60 B are taken "
                    "there, 59 B are there");
}

TEST_CASE("greedy_gap skips a long gap that lies beside the peak") {
  // t0's gap (ops 0 to 5) covers ops 1..4, where R is low; t1's (ops 6 to 8) covers op 7, where it is high.
  Toy toy;
  const TensorId t0 = toy.activation(40), t1 = toy.activation(30), t2 = toy.activation(80);
  toy.op(1, {}, {t0});
  for (int i = 0; i < 4; ++i) toy.op(1, {}, {});
  toy.op(1, {t0}, {});
  toy.op(1, {}, {t1});
  toy.op(1, {}, {t2});
  toy.op(1, {t1}, {});
  const Graph graph = toy.graph();
  toy.hardware.hbm_capacity = Bytes(90);
  CHECK(plan_text(graph, greedy_gap(graph, toy.hardware, 1, {}).plan) ==
        "store t1 after op6; detach t1 after op6; prefetch t1 after op7 for op8");
}

TEST_CASE("greedy_gap exposes each load in full, stores hide") {
  // 1 B/us in, 0.5 B/us out. t0 leaves: its store of 80 us begins at 10 us, beside ops 1 to 5 (10 us each), but
  // HBM is free of it only at 90 us. 100 B: op 1 (30 B) starts at once, op 2 (50 B: 120 in all) waits for that: 90 us.
  // Ops 2..5 end at 130 us; the load of 40 us is exposed; op 6 ends at 180 us. Ideal: 70 us.
  ThereAndBack toy;
  toy.hardware.hbm_capacity = Bytes(100);
  const Graph graph = toy.graph();
  const StaticPlan made = greedy_gap(graph, toy.hardware, 1, {});
  REQUIRE(check_plan(graph, made.plan, {Bytes(100), Bytes(1000)}).empty());
  CHECK(total_seconds(simulate_plan(graph, made.plan, toy.hardware)) == Approx(180e-6).epsilon(1e-9));
}

TEST_CASE("greedy_gap's one stream makes a load wait for the store ahead of it") {
  // 89 B, 10 us an op. Stores of t0 (80 us, from 10) and t1 (60 us, from 90, its turn): op 2 waits until t0 is out
  // at 90 us (70 of 89 taken); op 2 needs 50 B beside t1's 30: 80, it fits, 90..100; op 3 (10 B: 90 of 89) waits for
  // t1's store, which ends at 150 us; ops 3, 4: 150..170. Loads of t1 (30 us): op 5 at 200..210; t0 (40 us): op 6 250..260.
  // No store is under way beside a load, so one stream or two make no difference.
  ThereAndBack toy;
  toy.hardware.hbm_capacity = Bytes(89);
  const Graph graph = toy.graph();
  const StaticPlan made = greedy_gap(graph, toy.hardware, 1, {});
  CHECK(made.one_copy_stream);
  CHECK_FALSE(greedy_gap(graph, toy.hardware, 1, {true, 2}).one_copy_stream);
  for (int streams : {1, 2}) {
    toy.hardware.transfer_engines = streams;
    CHECK(total_seconds(simulate_plan(graph, made.plan, toy.hardware)) == Approx(260e-6).epsilon(1e-9));
  }
}

TEST_CASE("greedy_gap lets weights be away between iterations unless told not to") {
  // Weights of 40 B used in turn: each has a gap of 3 ops to the next iteration's use, all as long and as large,
  // so the one used first goes first. 80 B hold two of three.
  Toy toy;
  std::vector<TensorId> w;
  for (int i = 0; i < 3; ++i) w.push_back(toy.weight(40));
  for (TensorId t : w) toy.op(10, {t}, {});
  const Graph graph = toy.graph();
  toy.hardware.hbm_capacity = Bytes(80);
  // 120 B at each op; t0 spares ops 1 and 2, op 0 still sees all three; t1 spares ops 2 and 0.
  const Plan plan = greedy_gap(graph, toy.hardware, 2, {}).plan;
  CHECK(plan_text(graph, plan) ==
        "pool: t0 t1; prefetch t0 at the start for op0; detach t0 after op0; prefetch t1 after op0 for op1; "
        "detach t1 after op1");
  CHECK_THROWS_AS(greedy_gap(graph, toy.hardware, 2, {false, 1}), InfeasibleError);
}
