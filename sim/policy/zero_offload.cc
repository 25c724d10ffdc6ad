#include "sim/policy/zero_offload.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/graph_spec.h"
#include "sim/model/error.h"
#include "sim/policy/absences.h"
#include "sim/policy/phases.h"

namespace hyperoffload {
namespace {

Graph with_optimizer_on_host(const Graph& graph, const Hardware& hardware) {
  GraphSpec spec = spec_of(graph);
  auto host = std::find(spec.engines.begin(), spec.engines.end(), "host");
  if (host == spec.engines.end()) host = spec.engines.insert(host, "host");
  const EngineId engine(static_cast<std::size_t>(host - spec.engines.begin()));
  bool found = false;
  for (Op& op : spec.ops) {
    if (!runs_optimizer(graph, op) || op.collective) continue;
    found = true;
    if (op.memory == Tier::kPool) continue;
    if (!op.flops && !op.hbm_bytes)
      throw InfeasibleError(fmt::format(
          "zero_offload can't tell how long \"{}\" takes on the host: it has a duration, but neither flops nor hbm_bytes",
          op.name));
    op.duration.reset();
    op.memory = Tier::kPool;
    op.engine = engine;
  }
  if (!found) throw InfeasibleError("zero_offload finds no optimizer: no op of that phase, none with optimizer states");
  if (!hardware.host)
    throw InfeasibleError(fmt::format("zero_offload needs `host: {{compute, bandwidth}}` in machine \"{}\"", hardware.name));
  return build_graph(std::move(spec));
}

}  // namespace

StaticPlan zero_offload(const Graph& graph, const Hardware& hardware, int iterations) {
  StaticPlan made;
  made.graph = with_optimizer_on_host(graph, hardware);
  std::vector<Absence> absences;
  for (std::size_t t = 0; t < made.graph->tensors().size(); ++t) {
    const auto accesses = made.graph->accesses(TensorId(t));
    const auto in_pool = [&](std::size_t i) { return made.graph->op(accesses[i].op).memory == Tier::kPool; };
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const bool last = i + 1 == accesses.size();
      // A gradient leaves for the optimizer's read; a weight comes back from its write.
      if (!in_pool(i) && !last && in_pool(i + 1)) absences.push_back({TensorId(t), static_cast<int>(i), OpId::none()});
      if (in_pool(i) && accesses[i].writes && last && made.graph->tensors()[t].persistent && !in_pool(0))
        absences.push_back({TensorId(t), static_cast<int>(i), accesses[i].op, true});
    }
  }
  made.plan = plan_absences(*made.graph, absences, iterations);
  return made;
}

}  // namespace hyperoffload
