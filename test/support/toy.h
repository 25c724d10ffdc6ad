// A small trace and machine for hand-computed tests, in microseconds and bytes: link_read moves
// 1 B/us, link_write 0.5 B/us, no latency, HBM bandwidth without limit, memory as the test says.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct Toy {
  static constexpr double kMicro = 1e-6;

  GraphSpec spec;
  Plan plan;
  Hardware hardware;

  Toy() {
    spec.name = "toy";
    hardware.name = "toy";
    hardware.compute = FlopsPerSecond(1e12);
    hardware.hbm_bandwidth = BytesPerSecond(1e18);
    hardware.hbm_capacity = hardware.pool_capacity = Bytes(1'000'000);
    hardware.link_read.bandwidth = BytesPerSecond(1e6);
    hardware.link_write.bandwidth = BytesPerSecond(0.5e6);
  }

  TensorId tensor(TensorKind kind, std::int64_t bytes, Tier initial = Tier::kHbm) {
    Tensor t;
    t.name = "t" + std::to_string(spec.tensors.size());
    t.kind = kind;
    t.persistent = persistent_by_default(kind);
    t.bytes = Bytes(bytes);
    t.initial = initial;
    spec.tensors.push_back(t);
    return TensorId(spec.tensors.size() - 1);
  }
  TensorId weight(std::int64_t bytes, Tier initial = Tier::kHbm) {
    return tensor(TensorKind::kWeight, bytes, initial);
  }
  TensorId activation(std::int64_t bytes) { return tensor(TensorKind::kActivation, bytes); }

  OpId op(double us, std::vector<TensorId> reads, std::vector<TensorId> writes,
          const std::string& engine = "compute") {
    Op o;
    o.name = "op" + std::to_string(spec.ops.size());
    o.duration = Seconds(us * kMicro);
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    std::size_t e = 0;
    while (e < spec.engines.size() && spec.engines[e] != engine) ++e;
    if (e == spec.engines.size()) spec.engines.push_back(engine);
    o.engine = EngineId(e);
    spec.ops.push_back(o);
    return OpId(spec.ops.size() - 1);
  }
  Op& at(OpId o) { return spec.ops[o.index()]; }

  // The last added action, to narrow its range or scope.
  Action& action(ActionKind kind, TensorId t, OpId after = OpId::none()) {
    Action a;
    a.kind = kind;
    a.tensor = t;
    a.after_op = after;
    a.to = spec.tensors[t.index()].bytes;
    plan.actions.push_back(a);
    return plan.actions.back();
  }
  Action& prefetch(TensorId t, OpId after = OpId::none()) { return action(ActionKind::kPrefetch, t, after); }
  Action& store(TensorId t, OpId after = OpId::none()) { return action(ActionKind::kStore, t, after); }
  Action& detach(TensorId t, OpId after = OpId::none()) { return action(ActionKind::kDetach, t, after); }

  Graph graph() const { return build_graph(spec); }
};

}  // namespace hyperoffload
