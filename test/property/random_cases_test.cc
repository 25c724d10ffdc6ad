// Properties of the reference replay on thousands of random cases, and of the means to compare it:
// the cases exercise every rule, the comparison sees a small error, children bring back what happened.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "sim/model/check.h"
#include "sim/model/error.h"
#include "sim/model/op_cost.h"
#include "test/support/catch.h"
#include "test/support/compare_replay.h"
#include "test/support/fork.h"
#include "test/support/random_graph.h"
#include "test/support/replay_property.h"

using namespace hyperoffload;

namespace {

RunRecord reference_as_replay(const Graph& graph, const Plan& plan, const Hardware& hardware,
                              int iterations) {
  const ReferenceResult r = reference_replay(graph, plan, hardware, iterations);
  if (r.stuck) throw InfeasibleError(r.waiting);
  return to_record(r);
}

constexpr long double kInstant = 1e-11L;

// What must hold whatever the replay does inside.
void check_books(const RandomCase& c, const ReferenceResult& r) {
  INFO(describe(c));
  REQUIRE(r.ops.size() == c.graph.ops().size() * static_cast<std::size_t>(c.iterations));
  for (const ReferenceOp& op : r.ops) {
    const auto k = static_cast<std::size_t>(op.iteration);
    REQUIRE(op.start >= r.iteration_start[k]);
    REQUIRE(op.end <= r.iteration_end[k]);
    REQUIRE(op.end - op.start >= op_cost(c.graph.op(op.op), c.hardware).alone.value - kInstant);
  }
  long double last_end[2] = {0, 0};
  std::size_t last_place[2] = {0, 0};
  for (const ReferenceTransfer& t : r.transfers) {
    const bool in = t.direction == Direction::kPoolToHbm;
    const LinkDirection& link = in ? c.hardware.link_read : c.hardware.link_write;
    REQUIRE(t.start >= last_end[in] - kInstant);  // one at a time
    last_end[in] = t.end;
    REQUIRE(t.end - t.start >= link.latency.value + ((t.to - t.from) / link.bandwidth).value - kInstant);
    const std::size_t place =
        static_cast<std::size_t>(t.iteration) * c.plan.actions.size() + static_cast<std::size_t>(t.action);
    REQUIRE(place >= last_place[in]);  // in file order
    last_place[in] = place;
  }
  REQUIRE(r.hbm_peak <= c.hardware.hbm_usable());
  REQUIRE(r.pool_peak <= c.hardware.pool_capacity);
  const long double seconds = r.iteration_end.back() - r.iteration_start.back();
  REQUIRE(static_cast<long double>(r.pool_to_hbm.value) <=
          seconds * c.hardware.link_read.bandwidth.value + 1);
  REQUIRE(static_cast<long double>(r.hbm_to_pool.value) <=
          seconds * c.hardware.link_write.bandwidth.value + 1);
}

// The first random case that runs and moves something.
RandomCase running_case() {
  for (std::uint64_t seed = 1;; ++seed) {
    RandomCase c = random_case(seed);
    const ReferenceResult r = reference_replay(c.graph, c.plan, c.hardware, c.iterations);
    if (!r.stuck && r.transfers.size() > 2 && r.transfers.front().end <= r.iteration_end.back()) return c;
  }
}

}  // namespace

TEST_CASE("two thousand random plans exercise every rule, and agree with themselves through a child") {
  const PropertyReport report = compare_plans(1, 2000, 2, reference_as_replay);
  INFO(report.smallest_failure);
  CHECK(report.cases == 2000);
  CHECK(report.failures == 0);
  CHECK(report.stuck > 0);
  CHECK(report.stuck < 200);
  for (const std::string& feature : plan_features()) {
    INFO("never met: " << feature);
    CHECK(report.coverage.count(feature) == 1);
  }
  for (const auto& [feature, count] : report.coverage) {
    INFO("not listed: " << feature);
    const auto all = plan_features();
    CHECK(std::find(all.begin(), all.end(), feature) != all.end());
  }
}

TEST_CASE("the books of a thousand random plans balance") {
  for (std::uint64_t seed = 5001; seed <= 6000; ++seed) {
    const RandomCase c = random_case(seed);
    const ReferenceResult r = reference_replay(c.graph, c.plan, c.hardware, c.iterations);
    if (!r.stuck) check_books(c, r);
  }
}

TEST_CASE(
    "with memory to spare and HBM that nobody feels, faster links never delay an op, and ideal is a lower "
    "bound") {
  // Then every start is a maximum of sums of durations: it can't fall when one of them grows.
  for (std::uint64_t seed = 7001; seed <= 7400; ++seed) {
    RandomCase c = random_case(seed);
    c.hardware.hbm_bandwidth = BytesPerSecond(1e18);
    c.hardware.hbm_capacity = c.hardware.pool_capacity = Bytes(1'000'000'000);
    const ReferenceResult slow = reference_replay(c.graph, c.plan, c.hardware, c.iterations);
    const ReferenceResult ideal = reference_ideal(c.graph, c.hardware, c.iterations);
    c.hardware.link_read.bandwidth.value *= 2;
    c.hardware.link_write.bandwidth.value *= 2;
    const ReferenceResult fast = reference_replay(c.graph, c.plan, c.hardware, c.iterations);
    INFO(describe(c));
    if (slow.stuck) {  // by the order of its queues: then at any speed
      REQUIRE(fast.stuck);
      continue;
    }
    for (std::size_t k = 0; k < slow.iteration_end.size(); ++k) {
      REQUIRE(fast.iteration_end[k] <= slow.iteration_end[k] + kInstant);
      REQUIRE(ideal.iteration_end[k] <= fast.iteration_end[k] + kInstant);
    }
  }
}

TEST_CASE("a thousand random reactive runs keep capacity and never beat the ideal where HBM is not felt") {
  Coverage coverage;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    RandomCase c = random_on_demand_case(seed);
    c.hardware.hbm_bandwidth = BytesPerSecond(1e18);
    for (const Evict evict : {Evict::kLru, Evict::kOldest}) {
      const ReferenceResult r = reference_on_demand(c.graph, c.hardware, c.iterations, evict);
      if (r.stuck) continue;
      INFO(describe(c));
      REQUIRE(r.ops.size() == c.graph.ops().size() * static_cast<std::size_t>(c.iterations));
      REQUIRE(r.hbm_peak <= c.hardware.hbm_usable());
      REQUIRE(r.pool_peak <= c.hardware.pool_capacity);
      for (std::size_t i = 1; i < r.transfers.size(); ++i)
        REQUIRE(r.transfers[i].start >= r.transfers[i - 1].end);
      const ReferenceResult ideal = reference_ideal(c.graph, c.hardware, c.iterations);
      for (std::size_t k = 0; k < r.iteration_end.size(); ++k)
        REQUIRE(ideal.iteration_end[k] <= r.iteration_end[k] + kInstant);
      for (const auto& [what, count] : r.seen) coverage[what] += count;
    }
  }
  for (const char* what :
       {"clean eviction", "dirty eviction", "eviction waits for pool room", "inputs make room",
        "victim taken into use during its store", "writer waits for a victim's store"}) {
    INFO(what);
    CHECK(coverage[what] > 0);
  }
}

TEST_CASE("a record that is off by a billionth and a little more is told from the reference") {
  const RandomCase c = running_case();
  const ReferenceResult r = reference_replay(c.graph, c.plan, c.hardware, c.iterations);
  const RunRecord same = to_record(r);
  CHECK(first_difference(same, r, c.graph).empty());
  const auto told = [&](const std::function<void(RunRecord&)>& change) {
    RunRecord changed = same;
    change(changed);
    return !first_difference(changed, r, c.graph).empty();
  };
  CHECK(told([](RunRecord& x) { x.npus[0].ops.back().end.value *= 1 + 1e-5; }));
  CHECK(told([](RunRecord& x) { x.npus[0].ops.back().start.value = std::nan(""); }));
  CHECK(told([](RunRecord& x) { x.npus[0].ops.pop_back(); }));
  CHECK(told([](RunRecord& x) { x.npus[0].transfers.front().start.value += 2e-11; }));
  CHECK(told([](RunRecord& x) { x.npus[0].transfers.front().end.value += 1e-9; }));
  CHECK(told([](RunRecord& x) { x.npus[0].transfers.front().tensor = TensorId(999); }));
  CHECK(told([](RunRecord& x) { x.npus[0].transfers.pop_back(); }));
  CHECK(told([](RunRecord& x) { x.npus[0].iteration_end.back().value += 1e-9; }));
  CHECK(told([](RunRecord& x) { x.npus[0].hbm_peak += Bytes(1); }));
  CHECK(told([](RunRecord& x) { x.pool_peak -= Bytes(1); }));
  CHECK(told([](RunRecord& x) { x.full = false; }));
}

TEST_CASE("a replay with a fault is found, and the smallest failing case is told") {
  const PropertyReport report =
      compare_plans(1, 200, 2, [](const Graph& g, const Plan& p, const Hardware& h, int n) {
        RunRecord record = reference_as_replay(g, p, h, n);
        for (OpRecord& op : record.npus[0].ops)
          if (op.iteration == 1) op.end.value += 1e-7;
        return record;
      });
  CHECK(report.failures > 50);
  CHECK(report.failures < 200);  // one iteration: no fault
  CHECK(report.smallest_failure.find("of iteration 1 ends at") != std::string::npos);
  const bool from_its_start = report.smallest_failure.rfind("op \"", 0) == 0 ||
                              report.smallest_failure.rfind("the replay can't be done", 0) == 0;
  CHECK(from_its_start);
  CHECK(report.smallest_failure.find("\nseed ") != std::string::npos);
}

TEST_CASE("the same seed gives the same case, another seed another") {
  CHECK(describe(random_case(42)) == describe(random_case(42)));
  CHECK(describe(random_case(42)) != describe(random_case(43)));
}

TEST_CASE("a child brings back bytes of any length and its exceptions by kind") {
  const std::string long_text(1 << 20, '\0');
  CHECK(run_in_child([&] { return long_text; }) == long_text);
  CHECK(run_in_children(3, [](int i) { return std::string(1, static_cast<char>('a' + i)); }) ==
        std::vector<std::string>{"a", "b", "c"});
  CHECK_THROWS_AS(run_in_child([]() -> std::string { throw InputError("bad"); }), InputError);
  CHECK_THROWS_AS(run_in_child([]() -> std::string { throw InfeasibleError("full"); }), InfeasibleError);
  CHECK_THROWS_AS(run_in_child([]() -> std::string { throw CheckFailure("ours"); }), CheckFailure);
  try {
    run_in_child([]() -> std::string { _exit(7); });
    FAIL("a child without a result is an error");
  } catch (const std::runtime_error& e) {
    CHECK(std::string(e.what()).find("status 7") != std::string::npos);
  }
  try {
    run_in_child([]() -> std::string {
      std::signal(SIGTERM, SIG_DFL);
      raise(SIGTERM);
      return "";
    });
    FAIL("a killed child is an error");
  } catch (const std::runtime_error& e) {
    CHECK(std::string(e.what()).find("died") != std::string::npos);
  }
}

TEST_CASE("a record goes through a pipe unchanged") {
  const RandomCase c = running_case();
  const RunRecord record = reference_as_replay(c.graph, c.plan, c.hardware, c.iterations);
  CHECK(encode_record(record_from_child([&] { return record; })) == encode_record(record));
  CHECK_THROWS_AS(decode_record(encode_record(record) + "x"), CheckFailure);
  CHECK_THROWS_AS(decode_record(encode_record(record).substr(0, 20)), CheckFailure);
}
