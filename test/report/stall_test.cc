#include "sim/report/stall.h"

#include <algorithm>
#include <random>

#include "test/report/toy_run.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;

constexpr Direction kIn = Direction::kPoolToHbm;
constexpr Direction kOut = Direction::kHbmToPool;

StallReport attribute(const Graph& graph, const RunRecord& record, Seconds ideal,
                      const RunRecord* ideal_run = nullptr) {
  const NpuRecord& npu = record.npus[0];
  const Seconds stall = npu.iteration_end.back() - npu.iteration_start.back() - ideal;
  const StallReport report =
      attribute_stall({graph, npu, record.iterations - 1, ideal_run ? &ideal_run->npus[0] : nullptr,
                       ideal_run ? ideal_run->iterations - 1 : 0, stall});
  CHECK(report.causes.sum() == stall);  // to the last bit
  CHECK(report.late_transfer.sum().value == Approx(report.causes.late_transfer.value).margin(1e-18));
  return report;
}

void check_us(Seconds time, double expected_us) {
  CHECK(time.value == Approx(expected_us * 1e-6).margin(1e-16));
}

}  // namespace

TEST_CASE("A run without waits has no stall and no worst waits") {
  const Graph graph = toy_graph({0, 0});
  const RunRecord record = one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 10, 10, 20)});
  const StallReport report = attribute(graph, record, us(20));
  CHECK(report.causes.late_transfer == Seconds(0));
  CHECK(report.causes.hbm_contention == Seconds(0));
  CHECK(report.worst.empty());
  CHECK(report.per_op.stalled_ops == 0);
}

TEST_CASE("Each kind of wait of one engine is its own cause and they add up to the stall") {
  const Graph graph = toy_graph({0, 0, 0});
  // op0 waits 3 us for its inputs' room, op1 4 us for bytes and then 2 us for room, op2 runs 5 us longer.
  RunRecord record =
      one_pass({op_record(0, 0, 3, 3, 13), op_record(1, 13, 17, 19, 29), op_record(2, 29, 29, 29, 44)},
               {transfer(kIn, 1, 6, 6, 7, 17)});
  record.npus[0].inputs_taken = {us(3)};
  record.npus[0].ops[1].room_short = Bytes(400);
  wait_for(record.npus[0].ops[1], 0, 1);
  const StallReport report = attribute(graph, record, us(30));
  check_us(report.causes.input_room, 3);
  CHECK(report.worst[3].short_bytes == Bytes(400));
  check_us(report.causes.late_transfer, 17 - 13);
  check_us(report.causes.no_room, 19 - 17);
  check_us(report.causes.hbm_contention, (44 - 29) - 10);
  CHECK(report.causes.other == Seconds(0));

  REQUIRE(report.worst.size() == 4);  // largest first: 5, 4, 3, 2 us
  CHECK(report.worst[0].cause == StallCause::kHbmContention);
  CHECK(report.worst[0].op == "op2");
  CHECK(report.worst[1].cause == StallCause::kLateTransfer);
  CHECK(report.worst[1].tensor == "w1");
  CHECK(report.worst[1].bytes == Bytes(1000));
  CHECK(*report.worst[1].transfer_start == us(6));
  CHECK(*report.worst[1].transfer_end == us(17));
  check_us(report.worst[1].from, 13);
  CHECK(report.worst[2].cause == StallCause::kInputRoom);
  CHECK(report.worst[3].cause == StallCause::kNoRoom);
  check_us(report.worst[3].from, 17);
  check_us(report.per_op.max, 4 + 2);
  CHECK(report.per_op.stalled_ops == 3);
}

TEST_CASE("An input wait counts the same where an op is ready only after the inputs were taken") {
  const Graph graph = toy_graph({0});
  RunRecord record = one_pass({op_record(0, 3, 3, 3, 13)});
  record.npus[0].inputs_taken = {us(3)};
  check_us(attribute(graph, record, us(10)).causes.input_room, 3);
}

TEST_CASE("A late transfer is split by what it was doing while the op waited") {
  const Graph graph = toy_graph({0, 0});
  // op1 is ready at 10. Until 12 another load has the link, until 15 nothing may start, at 15 the
  // transfer is at the head but has room only at 19; 1 us latency, 10 us on the link: resident at 30.
  RunRecord record = one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 30, 30, 40)},
                              {transfer(kIn, 0, 1, 1, 2, 12), transfer(kIn, 1, 15, 19, 20, 30)});
  record.npus[0].transfers[1].room_short = Bytes(700);
  wait_for(record.npus[0].ops[1], 1, 1);
  const StallReport report = attribute(graph, record, us(20));
  check_us(report.late_transfer.link_busy, 12 - 10);
  check_us(report.late_transfer.held_back, 15 - 12);
  check_us(report.late_transfer.room, 19 - 15);
  check_us(report.late_transfer.latency, 20 - 19);
  check_us(report.late_transfer.carrying, 30 - 20);
  CHECK(report.worst[0].reason == "carrying");
  CHECK(report.worst[0].held_by == "room");  // last, before it started
  CHECK(report.worst[0].short_bytes == Bytes(700));
}

TEST_CASE("A late transfer was held by the one ahead of it, or by the op after which it was issued") {
  const Graph graph = toy_graph({0, 0});
  // w0's load ends at 12, where w1's starts.
  RunRecord behind = one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 23, 23, 33)},
                              {transfer(kIn, 0, 1, 1, 2, 12), transfer(kIn, 1, 12, 12, 13, 23)});
  wait_for(behind.npus[0].ops[1], 1, 1);
  const StallReport after_transfer = attribute(graph, behind, us(20));
  CHECK(after_transfer.worst[0].held_by == "transfer");
  CHECK(after_transfer.worst[0].held_by_name == "w0");
  CHECK_FALSE(after_transfer.worst[0].short_bytes.has_value());
  // The link is idle; w1's load starts when op0 ends.
  RunRecord issued = one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 21, 21, 31)},
                              {transfer(kIn, 0, 0, 0, 1, 5), transfer(kIn, 1, 10, 10, 11, 21)});
  wait_for(issued.npus[0].ops[1], 1, 1);
  const StallReport after_op = attribute(graph, issued, us(20));
  CHECK(after_op.worst[0].held_by == "op");
  CHECK(after_op.worst[0].held_by_name == "op0");
}

TEST_CASE("A transfer behind one that waits for room waits for room, and the other link does not matter") {
  const Graph graph = toy_graph({0, 0});
  RunRecord record = one_pass(
      {op_record(0, 0, 0, 0, 10), op_record(1, 10, 30, 30, 40)},
      {transfer(kIn, 0, 5, 14, 14, 18), transfer(kIn, 1, 18, 18, 19, 30), transfer(kOut, 0, 10, 10, 12, 17)});
  wait_for(record.npus[0].ops[1], 1, 1);
  const StallReport report = attribute(graph, record, us(20));
  check_us(report.late_transfer.room, 14 - 10);
  check_us(report.late_transfer.link_busy, 18 - 14);
  check_us(report.late_transfer.held_back, 0);
}

TEST_CASE("A wait for no transfer, such as for a detach, was held back") {
  const Graph graph = toy_graph({0, 0});
  const RunRecord record = one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 16, 16, 26)});
  const StallReport report = attribute(graph, record, us(20));
  check_us(report.late_transfer.held_back, 6);
  CHECK_FALSE(report.worst[0].bytes.has_value());
}

TEST_CASE("Only the last iteration is looked at") {
  const Graph graph = toy_graph({0});
  RunRecord record = one_pass({op_record(0, 0, 20, 20, 60, 0), op_record(0, 60, 67, 67, 77, 1)});
  record.iterations = 2;
  record.npus[0].iteration_start = {us(0), us(60)};
  record.npus[0].iteration_end = {us(60), us(77)};
  const StallReport report = attribute(graph, record, us(10));
  check_us(report.causes.late_transfer, 7);
  CHECK(report.causes.hbm_contention == Seconds(0));
  CHECK(report.worst.size() == 1);
}

TEST_CASE("A wait that another engine's work hides counts nothing") {
  // op0 on "compute" waits 8 us but ends at 18, while op1 on "comm" runs 10 us longer than alone.
  const Graph graph = toy_graph({0, 1}, {"compute", "comm"});
  const RunRecord record = one_pass({op_record(1, 0, 0, 0, 20), op_record(0, 0, 8, 8, 18)});
  const StallReport report = attribute(graph, record, us(10));
  check_us(report.causes.hbm_contention, 10);
  CHECK(report.causes.late_transfer == Seconds(0));
  CHECK(report.worst.size() == 2);  // it is listed all the same
}

TEST_CASE("Where two engines wait at once, the cause switched on first takes what both cover") {
  // Both engines start at 0; op1 lacks room for 5 us, op0 waits 8 us for bytes: 5 + 3.
  const Graph graph = toy_graph({0, 1}, {"compute", "comm"});
  const RunRecord record = one_pass({op_record(1, 0, 0, 5, 15), op_record(0, 0, 8, 8, 18)});
  const StallReport report = attribute(graph, record, us(10));
  check_us(report.causes.late_transfer + report.causes.no_room, 8);
  check_us(report.causes.late_transfer, 8);  // bytes are switched on before room
}

TEST_CASE("A delay passes along dependencies between engines") {
  // op1 (comm) follows op0 (compute), op2 (compute) follows op1: one chain, each edge crosses.
  GraphSpec spec;
  spec.engines = {"compute", "comm"};
  for (int i = 0; i < 3; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.duration = us(10);
    op.engine = EngineId(i % 2);
    if (i > 0) op.after = {OpId(i - 1)};
    spec.ops.push_back(op);
  }
  const Graph graph = build_graph(std::move(spec));
  const RunRecord record =
      one_pass({op_record(0, 0, 0, 0, 10), op_record(1, 10, 14, 14, 24), op_record(2, 24, 24, 27, 37)});
  const StallReport report = attribute(graph, record, us(30));
  check_us(report.causes.late_transfer, 4);
  check_us(report.causes.no_room, 3);
}

TEST_CASE("What the ideal run itself shares between engines is no stall") {
  const Graph graph = toy_graph({0, 1}, {"compute", "comm"});
  const RunRecord ideal = one_pass({op_record(0, 0, 0, 0, 15), op_record(1, 0, 0, 0, 15)});
  const RunRecord record = one_pass({op_record(0, 0, 6, 6, 21), op_record(1, 0, 0, 0, 15)});
  const StallReport report = attribute(graph, record, us(15), &ideal);
  check_us(report.causes.late_transfer, 6);
  CHECK(report.causes.hbm_contention == Seconds(0));
  check_us(report.causes.other, 0);
}

TEST_CASE("Without the ideal run, its sharing shows as a negative rest so that the sum still holds") {
  const Graph graph = toy_graph({0, 1}, {"compute", "comm"});
  const RunRecord record = one_pass({op_record(0, 0, 6, 6, 21), op_record(1, 0, 0, 0, 15)});
  const StallReport report = attribute(graph, record, us(15));
  check_us(report.causes.late_transfer, 6);
  check_us(report.causes.hbm_contention, 5);
  check_us(report.causes.other, -5);
}

TEST_CASE("Rounding of a long run does not show as a cause of its own") {
  constexpr int kOps = 1000;
  const Graph graph = toy_graph(std::vector<int>(kOps, 0));
  std::vector<OpRecord> ops;
  double time = 1e7 + 0.1;  // us: 10 s in
  for (int i = 0; i < kOps; ++i) {
    ops.push_back(op_record(i, time, time + 0.1, time + 0.1, time + 10.1));
    time += 10.1;
  }
  RunRecord record = one_pass(std::move(ops));
  record.npus[0].iteration_start = {us(1e7 + 0.1)};
  const StallReport report = attribute(graph, record, us(10.0 * kOps));
  CHECK(report.causes.late_transfer.value == Approx(0.1e-6 * kOps).epsilon(1e-7));
  CHECK(report.causes.other == Seconds(0));
  CHECK(report.worst.size() == 10);
}

TEST_CASE("Percentiles show the tail: the 99th of 200 ops is the third largest stall") {
  constexpr int kOps = 200;
  const Graph graph = toy_graph(std::vector<int>(kOps, 0));
  std::vector<OpRecord> ops;
  double time = 0;
  for (int i = 0; i < kOps; ++i) {  // ceil(0.99 x 200) = 198th of ascending: two are larger
    const double wait = i == 7 ? 50 : i == 20 ? 40 : i == 30 ? 30 : 0;
    ops.push_back(op_record(i, time, time + wait, time + wait, time + wait + 10));
    time += wait + 10;
  }
  const StallReport report = attribute(graph, one_pass(std::move(ops)), us(10.0 * kOps));
  check_us(report.per_op.max, 50);
  check_us(report.per_op.p99, 30);
  CHECK(report.per_op.stalled_ops == 3);
}

TEST_CASE("On random runs of several engines the shares are never negative and nothing is left over") {
  std::mt19937_64 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  for (int round = 0; round < 200; ++round) {
    GraphSpec spec;
    spec.engines = {"compute", "comm", "host"};
    const int count = 2 + below(30);
    for (int i = 0; i < count; ++i) {
      Op op;
      op.name = "op" + std::to_string(i);
      op.duration = us(10);
      op.engine = EngineId(below(3));
      for (int d = 0; i > 0 && d < below(3); ++d) op.after.push_back(OpId(below(i)));
      spec.ops.push_back(op);
    }
    const Graph graph = build_graph(std::move(spec));

    // Every op starts when what it follows is done, plus random delays; once with, once without.
    std::vector<OpRecord> ops;
    std::vector<double> end(static_cast<std::size_t>(count)), ideal_end(end);
    double engine[3] = {}, ideal_engine[3] = {}, ideal = 0;
    for (int i = 0; i < count; ++i) {
      const auto e = graph.op(OpId(i)).engine.index();
      double ready = engine[e], ideal_ready = ideal_engine[e];
      for (OpId dep : graph.cross_engine_deps(OpId(i))) {
        ready = std::max(ready, end[dep.index()]);
        ideal_ready = std::max(ideal_ready, ideal_end[dep.index()]);
      }
      const double resident = ready + below(2) * below(20), start = resident + below(2) * below(20);
      engine[e] = end[static_cast<std::size_t>(i)] = start + 10 + below(2) * below(20);
      ideal_engine[e] = ideal_end[static_cast<std::size_t>(i)] = ideal_ready + 10;
      ideal = std::max(ideal, ideal_ready + 10);
      ops.push_back(op_record(i, ready, resident, start, end[static_cast<std::size_t>(i)]));
    }
    std::stable_sort(ops.begin(), ops.end(),
                     [](const OpRecord& a, const OpRecord& b) { return a.start < b.start; });
    const StallReport report = attribute(graph, one_pass(std::move(ops)), us(ideal));
    CHECK(report.causes.late_transfer >= Seconds(0));
    CHECK(report.causes.no_room >= Seconds(0));
    CHECK(report.causes.hbm_contention >= Seconds(0));
    check_us(report.causes.other, 0);
  }
}

}  // namespace hyperoffload
