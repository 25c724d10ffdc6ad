#include "planner/bound/window_bound.h"
#include "planner/planner.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {
double bound(const Graph& g, const Hardware& h, int iterations = 1) {
  return cheap_bound(g, h, iterations).stall.value;
}
}  // namespace

TEST_CASE("bound: where everything fits it is zero, and HBM needs the largest working set at least") {
  Toy t;
  t.op(1, {t.weight("a", 30)});
  t.op(1, {t.weight("b", 20)});
  const Graph g = t.build();
  CHECK(bound(g, machine(50)) == 0);
  // 30 B at op0, then b arrives while op0 runs: 20 - 1 B/s x 1 s must be there from the start.
  CHECK(cheap_bound(g, machine(50), 1).hbm_peak == Bytes(30 + 20 - 1));
  CHECK(cheap_bound(g, machine(50, 100, 100), 1).hbm_peak == Bytes(30));
}

TEST_CASE("bound: a window's bytes beyond HBM come over the link, with a latency each of the largest") {
  // op0 reads a, op1 reads b and c: 60 B, HBM 40. 20 B come between the starts of op0 and op1, in one
  // transfer at least (no tensor is larger): 2 s + 20/4 = 7 s against 3.
  Toy t;
  const TensorId a = t.weight("a", 20), b = t.weight("b", 20), c = t.weight("c", 20);
  t.op(3, {a});
  t.op(5, {b, c});
  const Graph g = t.build();
  CHECK(bound(g, machine(40, 4, 4, 2), 2) == Approx(2 + 20 / 4.0 - 3));
}

TEST_CASE("bound: stalls of disjoint windows add up") {
  // Twice: 10 B of 20 must come within 1 s at 2 B/s: 5 s each time, 4 s too many.
  Toy t;
  for (int i = 0; i < 3; ++i) {
    t.op(1, {t.weight("w" + std::to_string(i), 10)});
  }
  const Graph g = t.build();
  CHECK(bound(g, machine(10, 2, 2), 2) == Approx(2 * (10 / 2.0 - 1)));
}

TEST_CASE("bound: what is born and stays alive must be stored") {
  // x and y (10 B each) are alive when op2 bears z (10 B): HBM 20 B, so 10 B are stored behind op0's start,
  // and by its end; op0 and op1 take 2 s, the store 10/1. Then x and y come back beside z: never 30 B.
  Toy t;
  const TensorId x = t.activation("x", 10), y = t.activation("y", 10), z = t.activation("z", 10);
  t.op(1, {}, {x});
  t.op(1, {}, {y});
  t.op(1, {}, {z});
  t.op(1, {z});
  t.op(1, {x, y});
  const Graph g = t.build();
  // Store: op2 starts at 10 at the earliest, op3 at 11. Load: at op3's start z leaves room for 10 B of x and
  // y, the other 10 B come by op4's start, 10 s later; op4 takes 1 s.
  CHECK(bound(g, machine(20, 1, 1), 3) == Approx((10 + 1) + 10 + 1 - 5));
}

TEST_CASE("bound: a cold pass must move what can't be in HBM over either link") {
  // Two weights read twice, the activation x in between: at op2 30 B are alive, HBM has 20: 10 B over both
  // links at 1 B/s each take 5 s at least, ops take 2.
  Toy t;
  const TensorId a = t.weight("a", 10), b = t.weight("b", 10), x = t.activation("x", 10);
  t.op(1, {a});
  t.op(1, {b}, {});
  t.op(1, {}, {x});
  t.op(100, {x});
  t.op(1, {a, b});
  const Graph g = t.build();
  CHECK(bound(g, machine(20), 1) == Approx(10 / 2.0 - 2));
  CHECK(bound(g, machine(20), 2) == 0);  // later iterations may start with copies in the pool
}

TEST_CASE("bound: copies and kernels share HBM bandwidth") {
  // op0 moves 100 B at 10 B/s: 10 s. 40 B come meanwhile over a link of 5 B/s: (100 + 40) / 10 = 14 s.
  Toy t;
  const TensorId a = t.weight("a", 40), b = t.weight("b", 40);
  t.op(0, {a});
  t.last().duration.reset();
  t.last().hbm_bytes = Bytes(100);
  t.op(1, {b});
  const Graph g = t.build();
  Hardware h = machine(40, 5, 5);
  h.hbm_bandwidth = BytesPerSecond(10);
  CHECK(bound(g, h, 2) == Approx((100 + 40) / 10.0 - 10));
}

TEST_CASE("bound: copies of a rank may all come over the faster path of a supernode") {
  // 10 B of 20 come twice, as above; from a socket of its own node at 4 B/s and 1 s, from the other at 2 B/s and 3 s.
  Toy t;
  for (int i = 0; i < 3; ++i) t.op(1, {t.weight("w" + std::to_string(i), 10)});
  const Graph g = t.build();
  Hardware h = machine(10, 4, 4, 1);
  h.link_far = Path{{BytesPerSecond(2), Seconds(3)}, {BytesPerSecond(2), Seconds(3)}};
  h.npu_count = 2;
  h.nodes.emplace();
  h.nodes->count = 2;
  h.placement = {Spread::kHash, true, Bytes(10)};
  const double least = 2 * (1 + 10 / 4.0 - 1);
  CHECK(rank_bound(g, h, 2, 1, BoundMethod::kWindow, Seconds(3)).bound.stall.value == Approx(least));
  CHECK(bound(g, h, 2) == Approx(least));
}

TEST_CASE("bound: overlapping engines count from the earliest start to the latest tail") {
  Toy t;
  const TensorId a = t.weight("a", 10), b = t.weight("b", 10), x = t.activation("x", 1);
  t.op(1, {a}, {}, "compute");
  t.op(5, {}, {x}, "comm");
  t.op(1, {b}, {}, "compute");
  t.op(1, {x}, {}, "compute");
  const Graph g = t.build();  // ideal: comm 5 s, then op3: 6 s
  // a and b are 9 B more than HBM holds, which come after op0 started: op2 starts at 9, op3 at 10, and ends at 11.
  CHECK(bound(g, machine(11), 1) == Approx(9 + 1 + 1 - 6));
  CHECK(bound(g, machine(1000), 1) <= 0);
}
