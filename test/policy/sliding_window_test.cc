// `sliding_window` step by step, by hand. Links: 1 B/us in, 0.5 B/us out.
#include "sim/policy/sliding_window.h"

#include "sim/replay/replay.h"
#include "test/support/catch.h"
#include "test/support/toy.h"

using namespace hyperoffload;

namespace {

// Four weights of 20 B, one read by each op of 10 us, and room for three.
struct FourWeights : Toy {
  FourWeights() {
    for (int i = 0; i < 4; ++i) weight(20);
    for (std::size_t i = 0; i < 4; ++i) op(10, {TensorId(i)}, {});
    hardware.hbm_capacity = Bytes(60);
  }
};

RunRecord run(const Toy& toy, int iterations, int horizon, double buffer) {
  const Graph graph = toy.graph();
  ReplayOptions options;
  options.iterations = iterations;
  options.full_record = true;
  return replay(
      graph, toy.hardware, [&] { return std::make_unique<SlidingWindowPolicy>(horizon, buffer); }, options);
}

double us(Seconds s) { return s.value / Toy::kMicro; }

struct Expected {
  Direction direction;
  std::size_t tensor;
  double start, end;
};
constexpr Direction kIn = Direction::kPoolToHbm, kOut = Direction::kHbmToPool;

void check_transfers(const RunRecord& record, const std::vector<Expected>& expected) {
  const auto& transfers = record.npus[0].transfers;
  REQUIRE(transfers.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("transfer " << i);
    CHECK(transfers[i].direction == expected[i].direction);
    CHECK(transfers[i].tensor == TensorId(expected[i].tensor));
    CHECK(us(transfers[i].start) == Approx(expected[i].start).margin(1e-6));
    CHECK(us(transfers[i].end) == Approx(expected[i].end).margin(1e-6));
  }
}

}  // namespace

TEST_CASE("sliding_window: one op ahead, the tensor used again last makes room") {
  // t0, t1, t2 start in HBM. At 20 op 2 runs and op 3 comes into the window: t3 is wanted; t1 is used again last of
  // those that the window does not use (t0: 4th op from the start, t1: 5th), has no copy yet: out 20..60, t3 in 60..80,
  // op 3 80..90. At 90 op 0 runs, op 1 comes into the window: t1 is wanted; t3 is used again last and has its copy
  // from the start: it goes at once, t1 in 90..110, op 1 110..120. At 120: t3 for t1 again, in 120..140; op 3 ends at 150.
  const RunRecord record = run(FourWeights(), 2, 1, 0);
  check_transfers(record, {{kOut, 1, 20, 60}, {kIn, 3, 60, 80}, {kIn, 1, 90, 110}, {kIn, 3, 120, 140}});
  CHECK(us(record.npus[0].iteration_end.back()) == Approx(150).epsilon(1e-9));
}

TEST_CASE("sliding_window: without a horizon a load begins when its op waits") {
  // At 30 op 3 waits. t2, used again last (6), goes out 30..70, t3 in 70..90, op 3 ends at 100.
  const RunRecord record = run(FourWeights(), 1, 0, 0);
  check_transfers(record, {{kOut, 2, 30, 70}, {kIn, 3, 70, 90}});
  CHECK(us(record.npus[0].iteration_end.back()) == Approx(100).epsilon(1e-9));
}

TEST_CASE("sliding_window: a window wider than HBM does not turn over what it uses itself") {
  // All four are in the window at all times: nothing may make room ahead of need, so it is as without a horizon.
  const RunRecord record = run(FourWeights(), 1, 3, 0);
  check_transfers(record, {{kOut, 2, 30, 70}, {kIn, 3, 70, 90}});
}

TEST_CASE("sliding_window keeps its buffer free ahead of need") {
  // 100 B, a fifth of it to stay free: all four weights (80 B) fit at the start. Op 1 writes 20 B, born at 10: from
  // then the buffer is taken, and t0 (used again last: op 4 counted on; t3 is used before) goes out 10..50.
  Toy toy;
  for (int i = 0; i < 4; ++i) toy.weight(20);
  const TensorId x = toy.activation(20);
  for (std::size_t i = 0; i < 4; ++i) toy.op(10, {TensorId(i)}, i == 1 ? std::vector{x} : std::vector<TensorId>{});
  toy.op(10, {x}, {});
  toy.hardware.hbm_capacity = Bytes(100);
  check_transfers(run(toy, 1, 1, 0.2), {{kOut, 0, 10, 50}});
  check_transfers(run(toy, 1, 1, 0), {});
}

TEST_CASE("sliding_window knows an expert only behind its router") {
  // w1 is read by op 2, known after op 0. Two ops ahead it would be loaded from 0; it is from 10 on, in 10..30.
  for (bool known : {true, false}) {
    Toy toy;
    toy.weight(20);
    const TensorId w1 = toy.weight(20, Tier::kPool);
    toy.op(10, {}, {});
    toy.op(10, {TensorId(std::size_t{0})}, {});
    toy.op(10, {w1}, {});
    if (!known) toy.at(OpId(2)).known_after = OpId(0);
    check_transfers(run(toy, 1, 2, 0), {{kIn, 1, known ? 0.0 : 10.0, known ? 20.0 : 30.0}});
  }
}

namespace {

// Op 1 overwrites w0, which starts in the pool, and op 2 reads what it wrote. HBM has room for all.
struct Overwritten : Toy {
  Overwritten() {
    const TensorId w0 = weight(20, Tier::kPool);
    op(10, {}, {});
    op(10, {}, {w0});
    op(10, {w0}, {});
  }
};

// Loads the first tensor as soon as it may, whoever wants it.
struct LoadsFirst : Policy {
  std::optional<Move> next_transfer(Direction direction, const NpuView& view) override {
    const TensorId t(std::size_t{0});
    if (direction == kOut || view.memory.any_in_hbm(t)) return std::nullopt;
    return Move{t, Bytes(0), view.graph.tensor(t).bytes, view.iteration};
  }
};

}  // namespace

TEST_CASE("sliding_window does not load bytes that an op overwrites before they are read") {
  const RunRecord record = run(Overwritten(), 1, 2, 0);
  check_transfers(record, {});
  CHECK(us(record.npus[0].iteration_end.back()) == Approx(30).epsilon(1e-9));
}

TEST_CASE("an op waits for the load of what it overwrites, whatever policy started it") {
  // The load takes 20 us, so op 1 runs 20..30 instead of 10..20.
  const Overwritten toy;
  const Graph graph = toy.graph();
  ReplayOptions options;
  options.full_record = true;
  const RunRecord record = replay(graph, toy.hardware, [] { return std::make_unique<LoadsFirst>(); }, options);
  check_transfers(record, {{kIn, 0, 0, 20}});
  CHECK(us(record.npus[0].iteration_end.back()) == Approx(40).epsilon(1e-9));
}
