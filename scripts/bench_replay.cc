// How fast the replay is: N dies, each replaying a trace of M ops that all wait for pool traffic.
// Usage: bench_replay HARDWARE.yaml DIES OPS alike|uneven|folded
// Prints one line: dies, mode, ops, ops/s of wall time and of CPU time, seconds of both, peak memory of the
// simulating process, simulated time.
//
// Every op reads a weight of its own that is prefetched three ops ahead and detached behind it, and moves
// bytes through HBM (bound by HBM, so that copies and kernels share it): a timer, an HBM flow and a pool
// flow an op. On CloudMatrix384 the weights ask for 1.6 times what a full node's sockets give.
// alike: all dies replay one trace and stay in step, so that many events share an instant; uneven: 16 traces
// with op times of their own, hardly two events at once. folded: alike, with one die for all.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "sim/policy/planned.h"
#include "sim/replay/fold.h"
#include "sim/replay/replay.h"

using namespace hyperoffload;

namespace {

constexpr std::int64_t kWeightBytes = 4'000'000;
constexpr std::int64_t kHbmBytes = 100'000'000;
constexpr int kDistance = 3;

constexpr int kTraces = 16;

// `variant` > 0: op times differ by up to a tenth, from op to op and from variant to variant.
Graph weight_stream(int ops, int variant) {
  GraphSpec spec;
  for (int i = 0; i < ops; ++i) {
    spec.tensors.push_back({"w" + std::to_string(i), Bytes(kWeightBytes), TensorKind::kWeight, true, Tier::kPool});
    Op op;
    op.name = "op" + std::to_string(i);
    op.flops = Flops(1e9);
    op.hbm_bytes = Bytes(kHbmBytes + (variant ? (i * 7919 + variant * 104729) % 10'000'019 : 0));
    op.reads = {TensorId(static_cast<std::size_t>(i))};
    op.engine = EngineId(std::size_t{0});
    spec.ops.push_back(op);
  }
  return build_graph(std::move(spec));
}

Plan prefetch_and_detach(const Graph& graph) {
  Plan plan;
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    Action action;
    action.tensor = TensorId(i);
    action.to = Bytes(kWeightBytes);
    action.kind = ActionKind::kPrefetch;
    action.after_op = i < kDistance ? OpId::none() : OpId(i - kDistance);
    plan.actions.push_back(action);
    action.kind = ActionKind::kDetach;
    action.after_op = OpId(i);
    plan.actions.push_back(action);
  }
  return plan;
}

double cpu_seconds(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 4 ? argv[4] : "";
  if (mode != "alike" && mode != "uneven" && mode != "folded") {
    std::fprintf(stderr, "usage: bench_replay HARDWARE.yaml DIES OPS alike|uneven|folded\n");
    return 2;
  }
  Hardware hardware = load_hardware(argv[1]);
  hardware.npu_count = std::atoi(argv[2]);
  std::vector<Graph> traces;
  for (int v = 0; v < (mode == "uneven" ? kTraces : 1); ++v)
    traces.push_back(weight_stream(std::atoi(argv[3]), mode == "uneven" ? v + 1 : 0));
  std::vector<const Graph*> ranks;
  for (int n = 0; n < hardware.npu_count; ++n)
    ranks.push_back(&traces[static_cast<std::size_t>(n) % traces.size()]);
  const Plan plan = prefetch_and_detach(traces[0]);
  const auto policy = [&](int n) {
    return std::make_unique<PlannedPolicy>(*ranks[static_cast<std::size_t>(n)], plan);
  };
  const auto start = std::chrono::steady_clock::now();
  RunRecord record;
  if (mode == "uneven")
    record = replay_ranks(ranks, hardware, policy, {});
  else
    record = (mode == "folded" ? replay_folded : replay)(traces[0], hardware, [&] { return policy(0); }, {});
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage child{};
  getrusage(RUSAGE_CHILDREN, &child);
  const double cpu = cpu_seconds(child);
  const double ops = static_cast<double>(traces[0].ops().size()) * hardware.npu_count;
  std::printf("%6d %-7s %9.0f %10.0f %10.0f %8.2f %8.2f %8.1f %11.6f\n", hardware.npu_count, mode.c_str(), ops, ops / wall,
              ops / cpu, wall, cpu, static_cast<double>(child.ru_maxrss) / 1024,
              record.npus[0].iteration_end.back().value);
}
