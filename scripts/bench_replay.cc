// How fast the replay is: N dies, each replaying a trace of M ops that all wait for pool traffic.
// Usage: bench_replay HARDWARE.yaml DIES OPS [fold]
// Prints one line: dies, ops, ops/s of wall time, peak memory of the simulating process, simulated time.
//
// Every op reads a weight of its own that is prefetched three ops ahead and detached behind it, computes
// and moves bytes through HBM (bound by HBM, so that copies and kernels share it): a timer, an HBM flow
// and a pool flow an op.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"
#include "sim/policy/planned.h"
#include "sim/replay/replay.h"

using namespace hyperoffload;

namespace {

constexpr std::int64_t kWeightBytes = 2'000'000;
constexpr std::int64_t kHbmBytes = 100'000'000;
constexpr int kDistance = 3;

Graph weight_stream(int ops) {
  GraphSpec spec;
  for (int i = 0; i < ops; ++i) {
    spec.tensors.push_back({"w" + std::to_string(i), Bytes(kWeightBytes), TensorKind::kWeight, true, Tier::kPool});
    Op op;
    op.name = "op" + std::to_string(i);
    op.flops = Flops(1e9);
    op.hbm_bytes = Bytes(kHbmBytes);
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

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench_replay HARDWARE.yaml DIES OPS\n");
    return 2;
  }
  Hardware hardware = load_hardware(argv[1]);
  hardware.npu_count = std::atoi(argv[2]);
  const Graph graph = weight_stream(std::atoi(argv[3]));
  const Plan plan = prefetch_and_detach(graph);
  const auto start = std::chrono::steady_clock::now();
  const RunRecord record =
      replay(graph, hardware, [&] { return std::make_unique<PlannedPolicy>(graph, plan); }, {});
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage children{};
  getrusage(RUSAGE_CHILDREN, &children);
  const double ops = static_cast<double>(graph.ops().size()) * static_cast<double>(record.npus.size());
  std::printf("%6d %8.0f %10.0f %8.3f %8.1f %12.6f\n", hardware.npu_count, ops, ops / wall, wall,
              static_cast<double>(children.ru_maxrss) / 1024, record.npus[0].iteration_end.back().value);
}
