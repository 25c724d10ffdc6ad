// Evictions that stand evenly in time.
#include "planner/passes/spread_evictions.h"

#include <algorithm>
#include <map>
#include <set>

#include "planner/pipeline.h"
#include "planner/planner.h"
#include "sim/model/check_plan.h"
#include "sim/workload/workload.h"
#include "test/planner/toy.h"
#include "test/support/catch.h"
#include "test/support/paths.h"

using namespace hyperoffload;
using namespace hyperoffload::toy;

namespace {

struct Spreading {
  Graph graph;
  FlatGraph flat;
  Walk ideal;
  Liveness liveness;
  StepClock clock;
  std::optional<Filled> filled;

  Spreading(Graph g, const Hardware& h, bool repeats, std::int64_t least_bytes)
      : graph(std::move(g)),
        flat(graph, h),
        ideal(walk_plan(flat, Plan{}, {1, WalkRecord::kLastIteration, true})),
        liveness(flat, {repeats, 0}),
        clock(flat, ideal, 1000),
        filled(spread_evictions(flat, liveness, clock, least_bytes)) {}
};

// `turns` times through `count` weights of 100 B, an op of 1 s each.
Toy stream(int count, int turns) {
  Toy t;
  std::vector<TensorId> weights;
  for (int k = 0; k < count; ++k) weights.push_back(t.weight("w" + std::to_string(k), 100));
  for (int turn = 0; turn < turns; ++turn)
    for (TensorId w : weights) t.op(1, {w});
  return t;
}

}  // namespace

TEST_CASE("spread evictions: of a stream as many weights leave as HBM lacks room for, at equal distances") {
  // HBM holds 30 of 40. A load of 100 B takes 2 s of 50 B/s: two ops of the 40 in which its bytes are there, so that 10 gaps
  // of 37 positions or so leave less than 10 x 100 B away on average: 11 at most are needed.
  const Spreading spread(stream(40, 1).build(), machine(3000, 50, 50), true, 1);
  REQUIRE(spread.filled);
  std::vector<int> uses;
  for (const Eviction& e : spread.filled->evictions) uses.push_back(spread.liveness.gap(e.unit).close % 41);
  std::sort(uses.begin(), uses.end());
  REQUIRE(uses.size() >= 10);
  CHECK(uses.size() <= 11);
  std::set<int> distances;
  for (std::size_t k = 1; k < uses.size(); ++k) distances.insert(uses[k] - uses[k - 1]);
  CHECK(*distances.rbegin() - *distances.begin() <= 1);
  // Their loads take longer than nothing: the timeline is slowed to them if they take longer than the ops.
  const double loads = 2.0 * static_cast<double>(uses.size());
  CHECK(spread.filled->clock.seconds(spread.filled->clock.period()) == Approx(std::max(40.0, loads)).epsilon(1e-6));
}

TEST_CASE("spread evictions: turn after turn the same weights leave, from the pool where they started") {
  const int turns = 5;
  const Spreading spread(stream(40, turns).build(), machine(3000, 20, 20), false, 1);
  REQUIRE(spread.filled);
  std::map<int, int> left;  // by tensor: gaps with loads
  std::set<int> from_pool;
  for (const Eviction& e : spread.filled->evictions) {
    const Gap& gap = spread.liveness.gap(e.unit);
    if (gap.loads) ++left[gap.tensor];
    if (gap.open < 0) from_pool.insert(gap.tensor);
  }
  int each_turn = 0;
  for (const auto& [tensor, gaps] : left) each_turn += gaps == turns && from_pool.count(tensor) == 1;
  CHECK(each_turn >= 9);  // of the 10 that leave
  CHECK(left.size() <= 13);
}

TEST_CASE("spread evictions: small tensors stay, and what isn't read for several turns leaves in any case") {
  Toy t = stream(40, 4);
  const TensorId rare = t.weight("rare", 30), small = t.weight("small", 30);
  t.spec.ops[1].reads.push_back(rare);
  t.spec.ops.back().reads.push_back(rare);
  for (int turn = 0; turn < 4; ++turn) t.spec.ops[40 * turn + 20].reads.push_back(small);
  const Spreading spread(t.build(), machine(3000, 50, 50), false, 50);
  REQUIRE(spread.filled);
  int gaps_of_rare = 0;
  for (const Eviction& e : spread.filled->evictions) {
    const Gap& gap = spread.liveness.gap(e.unit);
    CHECK(gap.tensor != small.value);
    gaps_of_rare += gap.tensor == rare.value;
  }
  CHECK(gaps_of_rare == 1);
}

TEST_CASE("spread evictions: ops as long as they are beside copies leave the link more time") {
  const Graph g = generate_trace(load_workload(source_dir() + "/configs/workloads/deepseek-v3.2-sparse-decode.yaml"));
  Hardware h = load_hardware(source_dir() + "/configs/hardware/cloudmatrix384-die.yaml");
  const Liveness liveness(FlatGraph(g, h), {false, 0});
  h.hbm_capacity = Bytes(*std::max_element(liveness.resident.begin(), liveness.resident.end()) / 2);
  const auto seconds = [&](std::uint32_t skip) {
    PlannerOptions options;
    options.skip = skip;
    return make_plan(g, h, options).plan.prediction->iteration.value;
  };
  const double known = seconds(0), unknown = seconds(1U << static_cast<int>(SearchStep::kContention));
  const double ideal_seconds = ideal(g, h), least = prove_bound(g, h, 1, BoundMethod::kLp).stall.value;
  CHECK(known >= ideal_seconds + least);
  CHECK(known - ideal_seconds - least < 0.9 * (unknown - ideal_seconds - least));
}

TEST_CASE("spread evictions: a step of sparse decoding comes closer to its limit with them") {
  // Two engines that never overlap, attention's reads known late: DeepSeek-V3.2's decode step, over and over, in half the HBM
  // that everything takes.
  WorkloadSpec spec = load_workload(source_dir() + "/configs/workloads/deepseek-v3.2-sparse-decode.yaml");
  spec.steps = 1;
  const Graph g = generate_trace(spec);
  Hardware h = load_hardware(source_dir() + "/configs/hardware/cloudmatrix384-die.yaml");
  const Liveness liveness(FlatGraph(g, h), {true, 0});
  h.hbm_capacity = Bytes(*std::max_element(liveness.resident.begin(), liveness.resident.end()) / 2);
  PlannerOptions options;
  options.iterations = 20;
  const auto stall = [&] {
    const Plan plan = make_plan(g, h, options).plan;
    CHECK(check_plan(g, plan, {h.hbm_usable(), h.pool_capacity}, options.iterations).empty());
    return plan.prediction->iteration.value - plan.prediction->ideal.value;
  };
  const double least = prove_bound(g, h, options.iterations, BoundMethod::kLp).stall.value, with = stall();
  options.skip = 1U << static_cast<int>(SearchStep::kSpread);
  const double without = stall();
  CHECK(with >= least);
  CHECK(with - least < 0.75 * (without - least));
}
