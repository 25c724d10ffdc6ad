// Tiny graphs and machines for the planner's tests: bytes and seconds are small integers.
#pragma once

#include <string>
#include <vector>

#include "planner/analysis/flat_graph.h"
#include "planner/cost/walk.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload::toy {

struct Toy {
  GraphSpec spec;

  TensorId tensor(const std::string& name, std::int64_t bytes, TensorKind kind) {
    Tensor t;
    t.name = name;
    t.bytes = Bytes(bytes);
    t.kind = kind;
    t.persistent = persistent_by_default(kind);
    spec.tensors.push_back(t);
    return TensorId(spec.tensors.size() - 1);
  }
  TensorId weight(const std::string& name, std::int64_t bytes) {
    return tensor(name, bytes, TensorKind::kWeight);
  }
  TensorId activation(const std::string& name, std::int64_t bytes) {
    return tensor(name, bytes, TensorKind::kActivation);
  }
  OpId op(double seconds, std::vector<TensorId> reads, std::vector<TensorId> writes = {},
          const std::string& engine = "compute") {
    Op o;
    o.name = "op" + std::to_string(spec.ops.size());
    o.duration = Seconds(seconds);
    o.reads = std::move(reads);
    o.writes = std::move(writes);
    o.engine = EngineId(engine_index(engine));
    spec.ops.push_back(o);
    return OpId(spec.ops.size() - 1);
  }
  Op& last() { return spec.ops.back(); }
  Graph build() const { return build_graph(spec); }

 private:
  std::size_t engine_index(const std::string& name) {
    for (std::size_t e = 0; e < spec.engines.size(); ++e)
      if (spec.engines[e] == name) return e;
    spec.engines.push_back(name);
    return spec.engines.size() - 1;
  }
};

// Two weights of 10 B, a and b, read in turns by ops of 1 s.
inline Toy two_in_turns(int ops) {
  Toy t;
  const TensorId a = t.weight("a", 10), b = t.weight("b", 10);
  for (int k = 0; k < ops; ++k) t.op(1, {k % 2 ? b : a});
  return t;
}

// One NPU; links of 1 B/s each way without latency; HBM so fast that nothing contends.
inline Hardware machine(std::int64_t hbm, double read = 1, double write = 1, double latency = 0) {
  Hardware h;
  h.name = "toy";
  h.compute = FlopsPerSecond(1);
  h.hbm_capacity = Bytes(hbm);
  h.hbm_bandwidth = BytesPerSecond(1e9);
  h.link_read = {BytesPerSecond(read), Seconds(latency)};
  h.link_write = {BytesPerSecond(write), Seconds(latency)};
  h.pool_capacity = Bytes(1'000'000'000'000);
  return h;
}

inline Action action(ActionKind kind, const Graph& g, TensorId t, int after,
                     IterationScope scope = IterationScope::kEvery) {
  Action a;
  a.kind = kind;
  a.tensor = t;
  a.after_op = after < 0 ? OpId::none() : OpId(after);
  a.from = Bytes(0);
  a.to = g.tensor(t).bytes;
  a.scope = scope;
  return a;
}

inline Action piece(Action a, std::int64_t from, std::int64_t to) {
  a.from = Bytes(from);
  a.to = Bytes(to);
  return a;
}

inline Walk walk(const Graph& g, const Hardware& h, const Plan& plan, int iterations = 1) {
  return walk_plan(FlatGraph(g, h), plan, {iterations, WalkRecord::kEverything, false});
}

inline double ideal(const Graph& g, const Hardware& h) {
  return walk_plan(FlatGraph(g, h), Plan{}, {1, WalkRecord::kNothing, true}).last_iteration;
}

}  // namespace hyperoffload::toy
