// The memory map of a plan, and what is told of one name.
#include "planner/memory_map.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "planner/decision_log.h"
#include "planner/planner.h"
#include "sim/model/error.h"
#include "test/support/catch.h"
#include "test/support/toy.h"

using namespace hyperoffload;

namespace {

// Ops of 20 us: a reads w0 (10 B); b nothing; c reads w0 and has 3 B of workspace. Behind a, w0 is stored (20
// us at 0.5 B/us) and detached; behind b it is loaded for c (10 us at 1 B/us).
struct Round {
  Toy toy;
  TensorId w0, w1, x;
  OpId a, b, c;
  Graph graph;
  Round() : graph(make()) {}
  Graph make() {
    w0 = toy.weight(10);
    w1 = toy.weight(4);
    x = toy.activation(6);
    a = toy.op(20, {w0, w1}, {x});
    b = toy.op(20, {}, {});
    c = toy.op(20, {w0, x}, {});
    toy.at(c).workspace = Bytes(3);
    toy.store(w0, a);
    toy.detach(w0, a);
    toy.prefetch(w0, b);
    toy.hardware.hbm_capacity = Bytes(40);
    return toy.graph();
  }
};

std::string line_with(const std::string& text, const std::string& part) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.find(part) != std::string::npos) return line;
  return "";
}

}  // namespace

TEST_CASE("memory map: a column an op has what is taken as the op starts") {
  Round r;
  const MemoryMap map = memory_map(r.graph, r.toy.hardware, r.toy.plan, 1, 80, 10);
  REQUIRE(map.columns.size() == 3);
  const auto weight = static_cast<std::size_t>(TensorKind::kWeight),
             activation = static_cast<std::size_t>(TensorKind::kActivation);
  // At a: w0, w1 and x. At b: the same, w0 is being stored. At c: w0 is there again, and c's workspace.
  CHECK(map.columns[0].by_kind[weight] == 14);
  CHECK(map.columns[0].by_kind[activation] == 6);
  CHECK(map.columns[0].by_kind.back() == 0);
  CHECK(map.columns[1].total == 20);
  CHECK(map.columns[2].by_kind.back() == 3);
  CHECK(map.columns[2].total == 23);
  CHECK(map.capacity == 40);
  // c waits 10 us for w0.
  CHECK(map.seconds == Approx(20e-6 + 20e-6 + 10e-6 + 20e-6));
  REQUIRE(map.rows.size() == 3);
  CHECK(map.rows[0].tensor == r.w0);  // it moves
  CHECK(map.rows[0].places == "#>#");
  CHECK(map.rows[1].tensor == r.x);  // the largest of the others
  CHECK(map.rows[1].places == "###");
  CHECK(map.tensors_that_move == 1);
}

TEST_CASE("memory map: a column of several ops shows the fullest, and that a tensor was there at all") {
  Round r;
  const MemoryMap map = memory_map(r.graph, r.toy.hardware, r.toy.plan, 1, 1, 1);
  REQUIRE(map.columns.size() == 1);
  CHECK(map.columns[0].op == r.c.value);
  CHECK(map.columns[0].total == 23);
  CHECK(map.rows[0].places == ">");
}

TEST_CASE("memory map: what is taken between two starts is seen") {
  // w (10 B) is loaded as b (5 B of workspace) begins: 0 + 5 B as b starts, 5 + 10 while it runs, 10 at c.
  Toy toy;
  const TensorId w = toy.weight(10);
  const OpId a = toy.op(20, {}, {}), b = toy.op(20, {}, {});
  toy.op(20, {w}, {});
  toy.at(b).workspace = Bytes(5);
  toy.plan.initial_pool = {w};
  toy.prefetch(w, a);
  toy.hardware.hbm_capacity = Bytes(40);
  const MemoryMap map = memory_map(toy.graph(), toy.hardware, toy.plan, 1, 80, 10);
  REQUIRE(map.columns.size() == 3);
  CHECK(map.columns[0].total == 0);
  CHECK(map.columns[1].total == 5 + 10);
  CHECK(map.columns[1].by_kind[static_cast<std::size_t>(TensorKind::kWeight)] == 10);
  CHECK(map.columns[1].by_kind.back() == 5);
  CHECK(map.columns[2].total == 10);
  CHECK(map.rows[0].places == ".<#");
}

TEST_CASE("memory map: its highest column is the predicted peak, at any width") {
  Toy toy;
  for (int i = 0; i < 40; ++i) {
    toy.op(10, {toy.weight(10 + i % 7)}, {});
    toy.at(OpId(i)).workspace = Bytes(i % 3);
  }
  toy.hardware.hbm_capacity = Bytes(60);
  const Graph graph = toy.graph();
  for (const int iterations : {1, 3}) {
    PlannerOptions options;
    options.iterations = iterations;
    const Plan plan = make_plan(graph, toy.hardware, options).plan;
    for (const int columns : {1, 7, 80}) {
      INFO(iterations << " iterations, " << columns << " columns");
      const MemoryMap map = memory_map(graph, toy.hardware, plan, iterations, columns, 10);
      std::int64_t highest = 0;
      for (const MapColumn& column : map.columns) {
        highest = std::max(highest, column.total);
        CHECK(std::accumulate(column.by_kind.begin(), column.by_kind.end(), std::int64_t{0}) == column.total);
      }
      CHECK(map.peak == plan.prediction->hbm_peak.value);
      if (iterations == 1) CHECK(highest == map.peak);
      CHECK(highest <= map.peak);
      const std::string text = draw_memory_map(graph, toy.hardware, plan, iterations, 80);
      CHECK((text.find("in an iteration before") != std::string::npos) == (highest < map.peak));
    }
  }
}

TEST_CASE("memory map: it fits the width, to the least one, and so do long names") {
  Toy toy;
  std::vector<TensorId> weights;
  for (int i = 0; i < 300; ++i) {
    const TensorId w = toy.weight(10);
    toy.spec.tensors.back().name = "a.very.long.module.name.of.some.model.layers." + std::to_string(i);
    toy.op(10, {w}, {});
  }
  toy.hardware.hbm_capacity = Bytes(50);
  const Graph graph = toy.graph();
  const Plan plan = make_plan(graph, toy.hardware, {}).plan;
  for (const int width : {kLeastMapWidth, 80, 200}) {
    const std::string text = draw_memory_map(graph, toy.hardware, plan, 1, width);
    std::istringstream in(text);
    std::size_t longest = 0;
    for (std::string line; std::getline(in, line);) longest = std::max(longest, line.size());
    CHECK(longest <= static_cast<std::size_t>(width));
    CHECK(text.find("HBM 50 B |") != std::string::npos);
    CHECK(text.find("W weight") != std::string::npos);
  }
}

TEST_CASE("explain: of a tensor, who uses it, why it leaves and when it comes back") {
  Round r;
  const std::string text = explain_name(r.graph, r.toy.hardware, r.toy.plan, 1, "t0");
  CHECK(line_with(text, "tensor t0").find("weight, 10 B, persistent; 2 ops use it: op0 reads, op2 reads") !=
        std::string::npos);
  const std::string gap = line_with(text, "idle from op0 to op2 for");
  // From 20 us to 50 us: c waits for the load. A store takes 20 us, a load 10 us.
  CHECK(gap.find("for 30 us; a store and a load take 20 us and 10 us: it leaves HBM") != std::string::npos);
  CHECK(line_with(text, "store t0").find("takes 20 us") != std::string::npos);
  CHECK(line_with(text, "prefetch t0").find("exposed: op2 waits 10 us for it") != std::string::npos);
  const std::string other = explain_name(r.graph, r.toy.hardware, r.toy.plan, 1, "t1");
  CHECK(other.find("nothing moves it") != std::string::npos);
}

TEST_CASE("explain: of an op, when it runs, what is taken, and where its operands come from") {
  Round r;
  const std::string text = explain_name(r.graph, r.toy.hardware, r.toy.plan, 1, "op2");
  CHECK(line_with(text, "op op2").find("from 50 us to 70 us of 70 us; waits 10 us for bytes") !=
        std::string::npos);
  CHECK(text.find("23 B of 40 B in HBM are taken") != std::string::npos);
  CHECK(line_with(text, "reads t0").find("waits 10 us for its load") != std::string::npos);
  CHECK(line_with(text, "reads t2").find("in HBM already") != std::string::npos);
  CHECK(text.find("workspace of 3 B") != std::string::npos);
}

TEST_CASE("explain: a name that is not there gets the nearest") {
  Round r;
  try {
    explain_name(r.graph, r.toy.hardware, r.toy.plan, 1, "pp2");
    FAIL("no error");
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).find("expected \"op2\"") != std::string::npos);
  }
}
