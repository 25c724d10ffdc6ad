#include "planner/analysis/liveness.h"

#include "test/planner/toy.h"
#include "test/support/catch.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

struct Span {
  int open, close;
  bool loads;
  bool operator==(const Span&) const = default;
};

std::vector<Span> gaps(const Liveness& liveness, TensorId t) {
  std::vector<Span> spans;
  for (int g = liveness.gap_begin[t.index()]; g < liveness.gap_begin[t.index() + 1]; ++g)
    spans.push_back({liveness.gaps[g].open, liveness.gaps[g].close, liveness.gaps[g].loads});
  return spans;
}

// w: read by op0 and op3. x: born at op1, read at op3. y: born at op2, overwritten at op4.
struct Example {
  Toy t;
  TensorId w = t.weight("w", 10), x = t.activation("x", 4), y = t.activation("y", 1);
  Example() {
    t.op(1, {w});
    t.op(1, {}, {x});
    t.op(1, {}, {y});
    t.op(1, {w, x});
    t.op(1, {}, {y});
  }
};

}  // namespace

TEST_CASE("liveness: one pass has a gap before a weight's first use and one after its last") {
  const Example e;
  const Graph g = e.t.build();
  const Liveness liveness(FlatGraph(g, machine(100)), {});
  // Positions: 0 the start, then op0 at 1, ..., op4 at 5; P = 6.
  CHECK(gaps(liveness, e.w) == std::vector<Span>{{-1, 1, true}, {1, 4, true}, {4, 6, false}});
  CHECK(gaps(liveness, e.x) == std::vector<Span>{{2, 4, true}});
  CHECK(gaps(liveness, e.y) == std::vector<Span>{{3, 5, false}});
  CHECK(liveness.resident == std::vector<std::int64_t>{10, 10, 14, 15, 15, 11});
  CHECK(liveness.working_set == std::vector<std::int64_t>{10, 10, 4, 1, 14, 1});
}

TEST_CASE("liveness: in a repeated body the gap wraps around the iteration's border") {
  const Example e;
  const Graph g = e.t.build();
  const Liveness liveness(FlatGraph(g, machine(100)), {true, 0});
  CHECK(gaps(liveness, e.w) == std::vector<Span>{{1, 4, true}, {4, 6 + 1, true}});
  // Nothing can be anchored between the start and op0, so what op0 reads counts from the start on.
  CHECK(liveness.gaps[liveness.gap_begin[e.w.index()] + 1].until == 6);
}

TEST_CASE("liveness: gaps from one write to the next share a version, around the border, too") {
  Toy t;
  const TensorId w = t.weight("w", 8);
  for (int i = 0; i < 3; ++i) {
    t.op(1, {w}, i == 1 ? std::vector<TensorId>{w} : std::vector<TensorId>{});
    t.op(1, {});
  }
  const Graph g = t.build();  // read at 1, updated at 3, read at 5; P = 7
  const Liveness liveness(FlatGraph(g, machine(100)), {true, 0});
  REQUIRE(liveness.versions.size() == 1);
  CHECK(liveness.versions[0].written == 3);
  CHECK(gaps(liveness, w) == std::vector<Span>{{3, 5, true}, {5, 7 + 1, true}, {1, 3, true}});
  CHECK_FALSE(liveness.gaps[1].next_turn);
  CHECK(liveness.gaps[2].next_turn);
}

TEST_CASE("liveness: pieces share the bytes evenly and cover the tensor") {
  Toy t;
  const TensorId w = t.weight("w", 10);
  t.op(1, {w});
  const Graph g = t.build();
  const Liveness liveness(FlatGraph(g, machine(100)), {false, 4});
  CHECK(liveness.pieces[0] == 3);
  CHECK(liveness.piece_from(0, 0) == 0);
  CHECK(liveness.piece_from(0, 1) == 4);
  CHECK(liveness.piece_from(0, 2) == 7);
  CHECK(liveness.piece_from(0, 3) == 10);
}

TEST_CASE("liveness: where an op in the pool writes a tensor it must leave HBM, and comes back clean") {
  Toy t;
  const TensorId w = t.weight("w", 8);
  t.op(1, {w});
  t.op(1, {w}, {w}, "host");
  t.last().memory = Tier::kPool;
  t.op(1, {});
  t.op(1, {w});
  const Graph g = t.build();
  const Liveness liveness(FlatGraph(g, machine(100)), {});
  const Gap& gap = liveness.gaps[liveness.gap_begin[0] + 1];
  CHECK(gap.open == 1);
  CHECK(gap.close == 4);
  CHECK(gap.must_leave);
  CHECK(gap.leave_by == 2);
  CHECK(gap.resume == 2);
  CHECK(liveness.versions.back().clean);
}

TEST_CASE("liveness: overlapping engines are charged with what may run early") {
  // op1 (comm, 5 B born) depends on nothing, so it may run before op0: op0 is charged 5 B. What is
  // anchored behind op1 may be under way before op0, too, so it counts from op0's position on.
  Toy t;
  const TensorId x = t.activation("x", 3), y = t.activation("y", 5);
  t.op(1, {}, {x}, "compute");
  t.op(1, {}, {y}, "comm");
  t.op(1, {x, y}, {}, "compute");
  const Graph g = t.build();
  const Liveness liveness(FlatGraph(g, machine(100)), {});
  CHECK(liveness.resident == std::vector<std::int64_t>{0, 3 + 5, 3 + 5, 8});
  CHECK(liveness.counts_from(2) == 1);
  CHECK(liveness.counts_from(3) == 4);
}
