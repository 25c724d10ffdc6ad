// FlashNeuron's, G10's and Capuchin's rules on examples small enough to follow by hand. Links carry 1000 B/us
// each way.
#include "sim/model/error.h"
#include "sim/policy/capuchin.h"
#include "sim/policy/flash_neuron.h"
#include "sim/policy/g10.h"
#include "test/policy/plan_text.h"
#include "test/policy/run_policy.h"
#include "test/support/catch.h"
#include "test/support/simulate.h"
#include "test/support/tiny.h"

using namespace hyperoffload;
using namespace hyperoffload::tiny;

namespace {

Approx us(double value) { return Approx(value).epsilon(1e-9); }

// Four layers forward and backward, each `each` long: forward i reads w and what i-1 made and makes 1000 B;
// backward i reads what i made and what backward i+1 handed down (100 B).
Graph chain(Seconds each) {
  GraphMaker maker;
  maker.weight("w", 500);
  for (int i = 0; i < 4; ++i) maker.activation("a" + std::to_string(i), 1000);
  for (int i = 0; i < 4; ++i) maker.activation("g" + std::to_string(i), 100);
  for (int i = 0; i < 4; ++i) {
    Names reads{"w"};
    if (i > 0) reads.push_back("a" + std::to_string(i - 1));
    maker.op("f" + std::to_string(i), each, reads, {"a" + std::to_string(i)});
    maker.last().phase = "forward";
  }
  for (int i = 3; i >= 0; --i) {
    Names reads{"w", "a" + std::to_string(i)};
    if (i < 3) reads.push_back("g" + std::to_string(i + 1));
    maker.op("b" + std::to_string(i), each, reads, {"g" + std::to_string(i)});
    maker.last().phase = "backward";
  }
  return maker.build();
}

}  // namespace

TEST_CASE("flash_neuron offloads in the order of making until the rest fits beside weights and working set") {
  // Weights 500, largest working set 2000 (f1: a0 and a1). Of 4000 B between forward and backward, so much
  // stays as is less than 4600 - 2500 = 2100: a0 and a1 go (kept 4000 -> 3000 -> 2000). In backward a load
  // must leave room for the largest set (2000). At b3 there are 2600 (w, a2, a3, g3), at b2 1700 (w, a2, g3,
  // g2): with a1 that would be 5600 and 4700 of 4600, so it is loaded right before b1. There are 1700 again
  // then (w, a1, g2, g1): a0 right before b0.
  const Graph graph = chain(10_us);
  const StaticPlan made = flash_neuron(graph, machine(Bytes(4600)), 1);
  CHECK(plan_text(graph, made.plan) ==
        "store a0 after f0; store a1 after f1; detach a0 after f1; detach a1 after f2; prefetch a1 after b2 "
        "for "
        "b1; prefetch a0 after b1 for b0");
  CHECK(total_seconds(simulate_plan(graph, made.plan, machine(Bytes(4600)))) * 1e6 ==
        us(80 + 1 + 1));  // a1 and a0 are both loaded right before their use: 1 us each
}

TEST_CASE("flash_neuron says what it lacks") {
  const Graph graph = chain(10_us);
  CHECK_THROWS_AS(flash_neuron(graph, machine(Bytes(2500)), 1), InfeasibleError);
}

TEST_CASE("nothing moves where all fits") {
  const Graph graph = chain(10_us);
  for (const StaticPlan& made :
       {flash_neuron(graph, machine(Bytes(7000)), 1), g10_migration(graph, machine(Bytes(7000)), 2)}) {
    CHECK(made.plan.actions.empty());
    CHECK(made.plan.initial_pool.empty());
  }
}

TEST_CASE("g10 takes the period with the largest benefit and loads it as early as there is room") {
  // Ops of 1 ms. Live bytes: f0 1500, f1 2500, f2 3500, f3 4500, b3 4600 (g3), b2 3700, b1 2700, b0 1700.
  // HBM 4000: target 3960. Above it: f3 and b3, 2 ms in all. Periods over both: a0 (from f2 to b0), a1 (f3 to
  // b1); a2's (b3 alone) covers one. Half of 1000 B takes 0.5 us of an op, so a0's benefit is 1000 B x 2 ms;
  // a1's lacks the half of its eviction, which falls into f3 itself: by whole ops it counts f3, too. The tie
  // goes to the longer: a0. Behind it f3 has 3500 and b3 3600: done. Its eviction ends with f2, so it could
  // be back from f3 on; late it must start with b1. Eagerly it moves ahead while the op before has room for
  // it: b2 (3700 - 1000 + 1000 <= 3960), then b3 (3600 + 1000 > 3960) not.
  const Graph graph = chain(Seconds(1e-3));
  const StaticPlan made = g10_migration(graph, machine(Bytes(4000)), 1);
  CHECK(plan_text(graph, made.plan) == "store a0 after f0; detach a0 after f1; prefetch a0 after b3 for b0");
  CHECK(total_seconds(simulate_plan(graph, made.plan, machine(Bytes(4000)))) == Approx(8e-3).epsilon(1e-9));
}

TEST_CASE("g10 leaves no migration without time for it, and then loads right before the use") {
  // Ops of 10 us, and a migration takes 45 us to begin: no period is long enough, yet 640 B must go.
  const Graph graph = chain(10_us);
  const StaticPlan made = g10_migration(graph, machine(Bytes(4000)), 1);
  // a0 by the same benefit; right before b0.
  CHECK(plan_text(graph, made.plan) == "store a0 after f0; detach a0 after f1; prefetch a0 after b1 for b0");
}

TEST_CASE("capuchin measures, then swaps what has the longest free time, and moves late triggers ahead") {
  // As g10's example: ops of 10 us, HBM 4000. Iteration 1 is on demand: at f3 (4500) the least recently used
  // victim, w being in use, is a0: out 1 us; at b0 it comes back: 1 us (room is there). b3 needs 100 B:
  // nothing, 3600 by then.
  const Graph graph = chain(10_us);
  const RunRecord record = run_policy<CapuchinPolicy>(graph, machine(Bytes(4000)), 3);
  CHECK(iteration_us(record, 0) == us(80 + 1 + 1));
  // Free times: a0 from the end of f1 (20) + 1 to the start of b0 (70) - 1: 48 us; a1 28, a2 8. a0 suffices.
  // It leaves behind f1; the last op that starts by 70 - 1 us is b1 (60): it is back in time, and all is
  // hidden.
  CHECK(iteration_us(record, 1) == us(80));
  CHECK(iteration_us(record, 2) == us(80));
  const auto& transfers = record.npus[0].transfers;
  REQUIRE(transfers.size() == 6);
  CHECK(transfers[2].tensor == tensor_named(graph, "a0"));
  const double began = record.npus[0].iteration_start[1].value * 1e6;
  CHECK(transfers[2].start.value * 1e6 - began == us(20));
  CHECK(transfers[3].start.value * 1e6 - began == us(60));
}
