// What the host of a runtime policy takes before each op, as closed forms.
#include <numeric>

#include "sim/policy/on_demand.h"
#include "sim/replay/replay.h"
#include "sim/report/stall.h"
#include "test/support/catch.h"
#include "test/support/tiny.h"

using namespace hyperoffload;
using namespace hyperoffload::tiny;

namespace {

RunRecord run(const Graph& graph, const Hardware& hardware, Seconds overhead, int iterations = 1) {
  ReplayOptions options;
  options.iterations = iterations;
  options.full_record = true;
  options.host_overhead = overhead;
  return replay(
      graph, hardware, [] { return std::make_unique<OnDemandPolicy>(OnDemandPolicy::Evict::kLru); }, options);
}

Graph chain(int ops) {
  GraphMaker maker;
  maker.weight("w", 8);
  for (int i = 0; i < ops; ++i) maker.op("op" + std::to_string(i), 10_us, {"w"}, {});
  return maker.build();
}

}  // namespace

TEST_CASE("n ops in a row each wait for the host: n (C + overhead)") {
  const RunRecord record = run(chain(7), machine(), 5_us, 2);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK((record.npus[0].iteration_end[i] - record.npus[0].iteration_start[i]).value ==
          Approx(7 * 15e-6).epsilon(1e-9));
  const Graph graph = chain(7);
  StallInput input{graph, record.npus[0], 1};
  input.stall = 5_us * 7.0;
  const StallReport report = attribute_stall(input);
  CHECK(report.causes.host.value == Approx(7 * 5e-6).epsilon(1e-9));
  CHECK(report.causes.sum() == input.stall);
  CHECK(report.worst[0].cause == StallCause::kHost);
  CHECK(report.worst[0].wait.value == Approx(5e-6).epsilon(1e-9));
}

TEST_CASE("no overhead is no delay") {
  CHECK(run(chain(7), machine(), Seconds(0)).npus[0].iteration_end[0].value == Approx(70e-6).epsilon(1e-9));
}

TEST_CASE("ops on two engines wait for their hosts beside each other") {
  const Graph graph = GraphMaker()
                          .op("a", 10_us, {}, {}, "compute")
                          .op("b", 10_us, {}, {}, "comm")
                          .op("c", 10_us, {}, {}, "compute")
                          .build();
  CHECK(run(graph, machine(), 5_us).npus[0].iteration_end[0].value == Approx(2 * 15e-6).epsilon(1e-9));
}

TEST_CASE("a miss is noticed when the host has come to the op") {
  // w is in the pool: 5 us of host, 4 us of loading, the op.
  const Graph graph = GraphMaker().weight("w", 4000).in_pool().op("a", 10_us, {"w"}, {}).build();
  CHECK(run(graph, machine(), 5_us).npus[0].iteration_end[0].value == Approx(19e-6).epsilon(1e-9));
}
