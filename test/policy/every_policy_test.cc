// What holds for every policy of the table, on random graphs and machines too small for them.
#include <algorithm>

#include "app/evaluate.h"
#include "app/policy_table.h"
#include "sim/report/result_json.h"
#include "test/support/catch.h"
#include "test/support/fork.h"
#include "test/support/random_graph.h"

using namespace hyperoffload;

namespace {

constexpr double kInstant = 1e-11;

struct Case {
  Graph graph;
  Hardware hardware;
  int iterations;
};

// Layers of two ops, the second half of the program backward: what some policies go by.
Graph with_layers(const Graph& graph) {
  GraphSpec spec{graph.name(), graph.meta_json(), graph.tensors(), graph.ops(), graph.engines(), {}};
  const std::size_t half = (spec.ops.size() + 1) / 2;
  for (std::size_t i = 0; i < spec.ops.size(); ++i) {
    spec.ops[i].layer = static_cast<int>((i < half ? i : spec.ops.size() - 1 - i) / 2);
    spec.ops[i].phase = i < half ? "forward" : "backward";
    if (!spec.ops[i].hbm_bytes) spec.ops[i].hbm_bytes = Bytes(100);
  }
  return build_graph(std::move(spec));
}

Case random_case_for_policies(std::uint64_t seed) {
  Rng rng(seed);
  RandomGraphOptions options;
  options.shape = kAllShapes[seed % std::size(kAllShapes)];
  options.tied = rng.chance(0.5);
  options.engines = rng.chance(0.4);
  options.pool_ops = options.engines && rng.chance(0.5);
  options.size = rng.pick(4, 24);
  Graph graph = random_graph(options, rng);
  if (rng.chance(0.8)) graph = with_layers(graph);
  Hardware hardware = random_hardware(graph, options.tied, rng);
  const double share = rng.real(0.15, 1.0);
  hardware.hbm_capacity = hardware.hbm_reserved + Bytes(static_cast<std::int64_t>(
                              share * static_cast<double>(hardware.hbm_usable().value)) + 1);
  if (rng.chance(0.2)) hardware.pool_capacity = Bytes(hardware.pool_capacity.value / 2);
  return {std::move(graph), hardware, rng.pick(1, 3)};
}

// Every transfer is at most as fast as its link, one at a time a direction, and carries bytes that were there to be
// carried: a load's have a copy in the pool, from the start or from a store that has ended.
void check_transfers(const Case& c, const Graph& graph, const NpuRecord& npu) {
  double free_from[2] = {0, 0};
  std::vector<char> stored(graph.tensors().size(), 0);
  std::vector<TransferRecord> by_end = npu.transfers;
  for (const TransferRecord& t : npu.transfers) {
    const int d = static_cast<int>(t.direction);
    const LinkDirection& link = d == 0 ? c.hardware.link_read : c.hardware.link_write;
    REQUIRE(t.start.value >= free_from[d] - kInstant);
    free_from[d] = t.end.value < 0 ? 1e300 : t.end.value;
    if (t.end.value >= 0)
      REQUIRE((t.end - t.start).value >= (link.latency + t.bytes() / link.bandwidth).value - kInstant);
    if (t.direction == Direction::kHbmToPool) continue;
    const Tensor& tensor = graph.tensor(t.tensor);
    const bool copied = tensor.persistent || std::any_of(npu.transfers.begin(), npu.transfers.end(), [&](const auto& s) {
                          return s.tensor == t.tensor && s.direction == Direction::kHbmToPool && s.end.value >= 0 &&
                                 s.end <= t.start + Seconds(kInstant);
                        });
    const bool born_in_pool = std::any_of(graph.accesses(t.tensor).begin(), graph.accesses(t.tensor).end(),
                                          [&](const Access& a) { return graph.op(a.op).memory == Tier::kPool; });
    REQUIRE((copied || born_in_pool));
  }
}

// One policy on one case, in a process of its own; "" or what was seen of it.
std::string run_one(const Case& c, const PolicySpec& policy) {
  const Job job{c.graph, c.hardware, c.iterations, true};
  const Evaluation once = evaluate(job, policy);
  REQUIRE(result_to_json(once.result) == result_to_json(evaluate(job, policy).result));
  if (!once.result.has_figures()) {
    REQUIRE_FALSE(once.result.fits);
    REQUIRE_FALSE(once.result.reason.empty());
    return "no";
  }
  REQUIRE(once.result.fits);
  REQUIRE(once.result.hbm_peak <= c.hardware.hbm_usable());
  REQUIRE(once.result.pool_peak <= c.hardware.pool_capacity);
  for (const NpuRecord& npu : once.record->npus) check_transfers(c, once.changed ? *once.changed : c.graph, npu);
  return "yes";
}

void play(const PolicySpec& policy, int cases) {
  int ran = 0;
  for (int seed = 0; seed < cases; ++seed) {
    const Case c = random_case_for_policies(static_cast<std::uint64_t>(seed));
    INFO(policy.text() << ", seed " << seed << "\n" << describe(c.graph) << describe(c.hardware));
    ran += run_one(c, policy) == "yes";
  }
  INFO(policy.text() << " ran " << ran << " of " << cases);
  CHECK(ran * 10 >= cases);  // else the cases say little of it
}

}  // namespace

TEST_CASE("every policy keeps to capacity, ends or says why not, and is deterministic") {
  for (const PolicyEntry& entry : policy_table())
    if (entry.info.name != "resident") play({entry.info.name, {}}, 40);
}

TEST_CASE("so do they with options that change what they do") {
  for (const char* text : {"on_demand:host_overhead=3us", "page_fault:page=7B,prefetch=3,frees=no,fault_latency=2us",
                           "page_fault:page=7B,prefetch=1,overlap=yes", "page_fault:page=5B,correlation=yes,degree=3",
                           "capuchin:host_overhead=1us"})
    play(parse_policy(text, "--policy"), 40);
}

TEST_CASE("every option of every policy has a default that is accepted, and refuses nonsense") {
  for (const PolicyEntry& entry : policy_table())
    for (const PolicyOption& option : entry.info.options) {
      INFO(entry.info.name << ":" << option.name);
      CHECK_FALSE(option.help.empty());
      CHECK_NOTHROW(parse_policy(entry.info.name + ":" + option.name + "=" + option.fallback, "--policy"));
      CHECK_THROWS(parse_policy(entry.info.name + ":" + option.name + "=a heap", "--policy"));
      if (option.kind == PolicyOption::Kind::kSeconds)
        CHECK_THROWS(parse_policy(entry.info.name + ":" + option.name + "=1e300us", "--policy"));
    }
}
