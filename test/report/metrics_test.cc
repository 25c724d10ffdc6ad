#include "sim/report/metrics.h"

#include <cmath>

#include "test/report/toy_run.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;

constexpr Direction kIn = Direction::kPoolToHbm;
constexpr Direction kOut = Direction::kHbmToPool;

// Two iterations [0, 30) and [30, 62) us of two 10 us ops.
RunRecord two_iterations(std::vector<TransferRecord> transfers) {
  RunRecord record = one_pass({op_record(0, 0, 0, 0, 10, 0), op_record(1, 10, 20, 20, 30, 0),
                               op_record(0, 30, 30, 30, 40, 1), op_record(1, 40, 52, 52, 62, 1)},
                              std::move(transfers));
  record.iterations = 2;
  record.npus[0].iteration_start = {us(0), us(30)};
  record.npus[0].iteration_end = {us(30), us(62)};
  return record;
}

Result summary(const Graph& graph, const RunRecord& record, std::optional<Seconds> ideal = us(20)) {
  const Hardware hw = toy_hardware();
  RunOutcome run{graph, hw};
  run.policy = "graph";
  run.iterations = record.iterations;
  run.record = &record;
  run.ideal_time = ideal;
  return summarize(run);
}

}  // namespace

TEST_CASE(
    "Times are those of the last iteration, of all and of the first, and stall is their exact difference") {
  const Graph graph = toy_graph({0, 0});
  const RunRecord record = two_iterations({});
  const NpuFigures f = summary(graph, record).figures();
  CHECK(f.iteration == us(62) - us(30));
  CHECK(f.total == us(62));
  CHECK(f.first_iteration == us(30));
  CHECK(f.ideal == us(20));
  CHECK(f.stall == f.iteration - f.ideal);
  CHECK(f.slowdown == f.iteration.value / f.ideal.value);
  CHECK(f.stalls.sum() == f.stall);
}

TEST_CASE("The ideal time comes from the ideal run's last iteration, else from the ops alone") {
  const Graph graph = toy_graph({0, 0});
  const RunRecord record = two_iterations({});
  CHECK(summary(graph, record, std::nullopt).figures().ideal.value == Approx(2 * 10e-6).epsilon(1e-12));

  RunRecord ideal = two_iterations({});
  const Hardware hw = toy_hardware();
  RunOutcome run{graph, hw};
  run.record = &record;
  run.ideal = &ideal;
  CHECK(summarize(run).figures().ideal == us(62) - us(30));
  CHECK(summarize(run).figures().stall == Seconds(0));
  CHECK(summarize(run).figures().slowdown == 1);
}

TEST_CASE("Rounding of the clock is no stall: times within 1e-12 of the ideal iteration are that time") {
  const Graph graph = toy_graph({0, 0});
  for (const double share : {-0.9e-12, 0.9e-12, -1.1e-12, 1.1e-12}) {
    INFO(share);
    RunRecord record = one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 10, 10, 20)}, {});
    const Seconds ideal = us(20), end = ideal * (1 + share);
    record.npus[0].iteration_end = {end};
    const Hardware hw = toy_hardware();
    RunOutcome run{graph, hw};
    run.record = &record;
    run.ideal_time = ideal;
    run.bound = Bound{Bytes(0), ideal * share, "window"};
    const Result result = summarize(run);
    const NpuFigures& f = result.figures();
    const bool noise = std::abs(share) < 1e-12;
    CHECK((f.stall == Seconds(0)) == noise);
    CHECK((result.bound->stall == Seconds(0)) == noise);
    CHECK((f.slowdown == 1) == noise);
    CHECK(f.stall == f.iteration - f.ideal);
    CHECK(f.stalls.sum() == f.stall);
    CHECK(f.total == f.iteration);  // one iteration is all and the first
    CHECK(f.first_iteration == f.iteration);
  }
}

TEST_CASE("Bytes moved count the part of the bandwidth time that lies in the last iteration") {
  const Graph graph = toy_graph({0, 0});
  // Crosses the start: bandwidth time [26, 36), 6 of 10 us after 30. Inside: all. Crosses the end:
  // [57, 77), 5 of 20 us before 62. Before, and after: nothing. Latency carries nothing.
  const RunRecord record = two_iterations(
      {transfer(kIn, 0, 5, 5, 6, 16), transfer(kIn, 0, 25, 25, 26, 36), transfer(kIn, 1, 41, 41, 42, 52),
       transfer(kOut, 0, 55, 55, 57, 77), transfer(kIn, 0, 61, 61, 62, 72)});
  const NpuFigures f = summary(graph, record).figures();
  CHECK(f.pool_to_hbm.bytes == Bytes(600 + 1000));
  CHECK(f.hbm_to_pool.bytes == Bytes(250));
  CHECK(f.pool_to_hbm.transfers == 3);  // the last one only waits out its latency: busy, nothing carried
  CHECK(f.pool_to_hbm.busy.value == Approx((36 - 30 + 52 - 41 + 62 - 61) * 1e-6));
  CHECK(f.pool_to_hbm.carrying.value == Approx((36 - 30 + 52 - 42) * 1e-6));
  CHECK(f.pool_to_hbm.utilisation == Approx(18.0 / 32));
}

TEST_CASE("The parts are summed before they are rounded to whole bytes") {
  const Graph graph = toy_graph({0, 0});
  // Three pieces of 1 byte, each 40 % inside: 1.2 -> 1; rounded one by one they would be 0.
  std::vector<TransferRecord> parts;
  for (int i = 0; i < 3; ++i) {
    parts.push_back(transfer(kIn, i % 2, 27, 27, 27, 32));
    parts.back().to = Bytes(1);
  }
  CHECK(summary(graph, two_iterations(parts)).figures().pool_to_hbm.bytes == Bytes(1));
}

TEST_CASE("Whole transfers stay exact beyond 2^53 bytes") {
  const Graph graph = toy_graph({0, 0});
  TransferRecord big = transfer(kIn, 0, 31, 31, 32, 42);
  big.to = Bytes((std::int64_t{1} << 61) + 1);
  CHECK(summary(graph, two_iterations({big})).figures().pool_to_hbm.bytes ==
        Bytes((std::int64_t{1} << 61) + 1));
}

TEST_CASE("A transfer that takes no bandwidth time belongs to the iteration it happens in") {
  const Graph graph = toy_graph({0, 0});
  CHECK(summary(graph, two_iterations({transfer(kIn, 0, 30, 30, 30, 30)})).figures().pool_to_hbm.bytes ==
        Bytes(1000));
  CHECK(summary(graph, two_iterations({transfer(kIn, 0, 62, 62, 62, 62)})).figures().pool_to_hbm.bytes ==
        Bytes(0));
}

TEST_CASE("Transfer time under a running op is hidden, the rest exposed") {
  const Graph graph = toy_graph({0, 0});
  // Ops run in [30, 40) and [52, 62); the load is under way in [35, 55).
  const NpuFigures f = summary(graph, two_iterations({transfer(kIn, 1, 35, 35, 36, 55)})).figures();
  CHECK(f.pool_to_hbm.hidden.value == Approx((40 - 35 + 55 - 52) * 1e-6));
  CHECK(f.pool_to_hbm.exposed.value == Approx((52 - 40) * 1e-6));
  CHECK(f.hbm_to_pool.busy == Seconds(0));
}

TEST_CASE("With several NPUs the top level is the slowest one's, its peak the highest") {
  const Graph graph = toy_graph({0});
  RunRecord record = one_pass({op_record(0, 0, 0, 0, 10)});
  record.npus.resize(3, record.npus[0]);
  for (int k : {1, 2}) {  // equally slow: the lower index
    record.npus[static_cast<std::size_t>(k)].ops = {op_record(0, 0, 5, 5, 15)};
    record.npus[static_cast<std::size_t>(k)].iteration_end = {us(15)};
  }
  record.npus[0].hbm_peak = Bytes(4000);
  const Result r = summary(graph, record, us(10));
  CHECK(r.slowest == 1);
  CHECK(r.figures().npu == 1);
  CHECK(r.hbm_peak == Bytes(4000));
  CHECK(r.pool_peak == Bytes(3000));
  REQUIRE(r.npus.size() == 3);
  CHECK(r.npus[0].stall == Seconds(0));
  CHECK(r.npus[2].hbm_peak == Bytes(2000));
}

TEST_CASE("A run that could not happen has a reason and no figures") {
  const Graph graph = toy_graph({0});
  const Hardware hw = toy_hardware();
  RunOutcome run{graph, hw};
  run.policy = "graph";
  run.fits = false;
  run.reason = "op0 is 500 bytes short of HBM";
  run.bound = Bound{Bytes(5500), Seconds(0), "window", "program"};
  const Result r = summarize(run);
  CHECK_FALSE(r.fits);
  CHECK_FALSE(r.has_figures());
  CHECK(r.reason == run.reason);
  CHECK(r.hbm_capacity == Bytes(5000));
  CHECK(r.bound->hbm_peak == Bytes(5500));
}

TEST_CASE("On a device too small a run keeps the figures of one big enough") {
  const Graph graph = toy_graph({0});
  const RunRecord record = one_pass({op_record(0, 0, 0, 0, 10)});
  const Hardware hw = toy_hardware();
  RunOutcome run{graph, hw};
  run.fits = false;
  run.record = &record;
  const Result r = summarize(run);
  CHECK_FALSE(r.fits);
  CHECK(r.figures().iteration == us(10));
}

}  // namespace hyperoffload
