// Unified memory by hand. Links carry 1000 B/us each way; a fault takes 5 us and brings two pages of 500 B.
#include "sim/policy/page_fault.h"

#include "test/policy/run_policy.h"
#include "test/support/catch.h"
#include "test/support/tiny.h"

using namespace hyperoffload;
using namespace hyperoffload::tiny;

namespace {

Approx us(double value) { return Approx(value).epsilon(1e-9); }

PageFaultOptions options() {
  PageFaultOptions o;
  o.fault_latency = 5_us;
  o.page = Bytes(500);
  o.prefetch = 2;
  return o;
}

// Four weights of 1000 B that only the pool has at first, each read by one op of 10 us; room for three.
Graph circle() {
  GraphMaker maker;
  for (const char* w : {"w0", "w1", "w2", "w3"}) maker.weight(w, 1000).in_pool();
  for (const char* w : {"w0", "w1", "w2", "w3"}) maker.op(std::string("read ") + w, 10_us, {w}, {});
  return maker.build();
}

// Three ops of 1 us; each makes 1000 B of what the one before made, which then is dead.
Graph handed_on() {
  return GraphMaker()
      .activation("x", 1000)
      .activation("y", 1000)
      .activation("z", 1000)
      .op("a", 1_us, {}, {"x"})
      .op("b", 1_us, {"x"}, {"y"})
      .op("c", 1_us, {"y"}, {"z"})
      .build();
}

PageFaultOptions without_frees() {
  PageFaultOptions o = options();
  o.frees = false;
  return o;
}

}  // namespace

TEST_CASE("a tensor comes in by faults, each of which brings the pages behind it too") {
  const Graph graph = GraphMaker().weight("w", 2500).in_pool().op("a", 1_us, {"w"}, {}).build();
  // 3 faults of 5 us, 2.5 us on the link, the op.
  CHECK(iteration_us(run_policy<PageFaultPolicy>(graph, machine(), 1, options()), 0) == us(3 * 5 + 2.5 + 1));
  PageFaultOptions alone = options();
  alone.prefetch = 1;
  CHECK(iteration_us(run_policy<PageFaultPolicy>(graph, machine(), 1, alone), 0) == us(5 * 5 + 2.5 + 1));
}

TEST_CASE("the least recently used pages go, written back only if the pool has no valid copy") {
  GraphMaker maker;
  for (const char* w : {"a", "b", "c", "d"}) maker.weight(w, 1000);
  int i = 0;
  for (const char* w : {"b", "a", "c", "d", "b"})
    maker.op(std::string("op") + std::to_string(i++), 1_us, {w}, {});
  const Graph graph = maker.build();
  const RunRecord record = run_policy<PageFaultPolicy>(graph, machine(Bytes(3000)), 1, options());
  // First use order: b, a, c start in HBM, d in the pool. d takes the place of b (1 us out, 5 + 1 in), the
  // last op brings b back for a (the same): 5 us of ops.
  CHECK(iteration_us(record, 0) == us(5 + 2 * (1 + 5 + 1)));
  CHECK(record.npus[0].transfers[0].tensor == tensor_named(graph, "b"));
  CHECK(record.npus[0].transfers[2].tensor == tensor_named(graph, "a"));
  CHECK(record.npus[0].hbm_peak == Bytes(3000));
}

TEST_CASE("with overlap the next victim leaves while a page arrives") {
  // Room for two of three weights of 2000 B (two faults each). Twice around: what is evicted has no copy at
  // first.
  GraphMaker maker;
  for (const char* w : {"a", "b", "c"}) maker.weight(w, 2000);
  for (const char* w : {"a", "b", "c"}) maker.op(std::string("op ") + w, 1_us, {w}, {});
  const Graph graph = maker.build();
  PageFaultOptions beside = options();
  beside.overlap = true;
  // c for a: half of a out (1 us), then half of c in (5 + 1) beside the other half of a, then the rest of c
  // in.
  CHECK(iteration_us(run_policy<PageFaultPolicy>(graph, machine(Bytes(4000)), 1, beside), 0) ==
        us(3 + 1 + 6 + 6));
  CHECK(iteration_us(run_policy<PageFaultPolicy>(graph, machine(Bytes(4000)), 1, options()), 0) ==
        us(3 + 2 * (1 + 6)));
}

TEST_CASE("a circle of weights that doesn't fit misses every time without correlation") {
  const RunRecord record = run_policy<PageFaultPolicy>(circle(), machine(Bytes(3000)), 3, options());
  for (std::size_t i = 0; i < 3; ++i) CHECK(iteration_us(record, i) == us(4 * (5 + 1 + 10)));
}

TEST_CASE("correlation learns in iteration 1 and hides the loads from then on") {
  PageFaultOptions deepum = options();
  deepum.correlation = true;
  deepum.degree = 1;
  const RunRecord record = run_policy<PageFaultPolicy>(circle(), machine(Bytes(3000)), 3, deepum);
  CHECK(iteration_us(record, 0) == us(4 * (5 + 1 + 10)));
  // What follows the last op is only seen when iteration 2 starts: one fault more.
  CHECK(iteration_us(record, 1) == us(5 + 1 + 4 * 10));
  CHECK(iteration_us(record, 2) == us(4 * 10));
}

TEST_CASE("without frees the dead keep their pages, and with room the first touch faults once and for all") {
  const RunRecord record = run_policy<PageFaultPolicy>(handed_on(), machine(), 2, without_frees());
  CHECK(iteration_us(record, 0) == us(3 * (5 + 1)));
  CHECK(iteration_us(record, 1) == us(3));
}

TEST_CASE("without frees the dead are evicted and fetched like any other") {
  const Graph graph = handed_on();
  const RunRecord record = run_policy<PageFaultPolicy>(graph, machine(Bytes(2000)), 2, without_frees());
  // The third needs the room of x, which is dead: 1 us to write it back.
  CHECK(iteration_us(record, 0) == us(3 * (5 + 1) + 1));
  // Each op writes a tensor that is in the pool: out with the oldest (1 us), fault (5 us), in (1 us), run.
  CHECK(iteration_us(record, 1) == us(3 * (1 + 5 + 1 + 1)));
  const RunRecord freed = run_policy<PageFaultPolicy>(graph, machine(Bytes(2000)), 2, options());
  CHECK(iteration_us(freed, 1) == us(3));
}

TEST_CASE("a tensor of very many pages is kept in at most 512 pieces, at the same cost") {
  const Graph graph = GraphMaker().weight("w", 1'000'000).in_pool().op("a", 1_us, {"w"}, {}).build();
  const RunRecord record = run_policy<PageFaultPolicy>(graph, machine(), 1, options());
  CHECK(record.npus[0].transfers.size() == 500);  // 1000 faults, two a piece
  CHECK(iteration_us(record, 0) == us(1000 * 5 + 1000 + 1));
}
