// Small graphs, machines and plans for tests, by name and in one line each.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"
#include "sim/model/plan.h"

namespace hyperoffload::tiny {

using namespace hyperoffload::literals;
using Names = std::vector<std::string>;

class GraphMaker {
 public:
  GraphMaker& tensor(const std::string& name, std::int64_t bytes, TensorKind kind) {
    return tensor(name, bytes, kind, persistent_by_default(kind));
  }
  GraphMaker& tensor(const std::string& name, std::int64_t bytes, TensorKind kind, bool persistent) {
    ids_[name] = TensorId(spec_.tensors.size());
    spec_.tensors.push_back({name, Bytes(bytes), kind, persistent, Tier::kHbm});
    return *this;
  }
  GraphMaker& weight(const std::string& name, std::int64_t bytes) {
    return tensor(name, bytes, TensorKind::kWeight);
  }
  GraphMaker& activation(const std::string& name, std::int64_t bytes) {
    return tensor(name, bytes, TensorKind::kActivation);
  }
  GraphMaker& input(const std::string& name, std::int64_t bytes) {
    return tensor(name, bytes, TensorKind::kInput);
  }
  GraphMaker& in_pool() {
    spec_.tensors.back().initial = Tier::kPool;
    return *this;
  }
  // An op of a fixed duration; further fields through last().
  GraphMaker& op(const std::string& name, Seconds duration, const Names& reads, const Names& writes,
                 const std::string& engine = "compute") {
    Op op;
    op.name = name;
    op.duration = duration;
    for (const auto& n : reads) op.reads.push_back(ids_.at(n));
    for (const auto& n : writes) op.writes.push_back(ids_.at(n));
    std::size_t e = 0;
    while (e < spec_.engines.size() && spec_.engines[e] != engine) ++e;
    if (e == spec_.engines.size()) spec_.engines.push_back(engine);
    op.engine = EngineId(e);
    spec_.ops.push_back(op);
    return *this;
  }
  Op& last() { return spec_.ops.back(); }
  Graph build() const { return build_graph(spec_); }

 private:
  GraphSpec spec_;
  std::map<std::string, TensorId> ids_;
};

// 1e9 B/s is 1000 B/us: bytes and microseconds convert in the head.
inline Hardware machine(Bytes hbm = 1_GB, Seconds latency = 0_us) {
  Hardware h;
  h.name = "tiny";
  h.compute = FlopsPerSecond(1e12);
  h.hbm_capacity = hbm;
  h.hbm_bandwidth = BytesPerSecond(1e12);
  h.link_read = {BytesPerSecond(1e9), latency};
  h.link_write = {BytesPerSecond(1e9), latency};
  h.pool_capacity = 1000_GB;
  return h;
}

inline TensorId tensor_named(const Graph& graph, const std::string& name) {
  for (std::size_t t = 0; t < graph.tensors().size(); ++t)
    if (graph.tensors()[t].name == name) return TensorId(t);
  throw std::out_of_range(name);
}

inline OpId op_named(const Graph& graph, const std::string& name) {
  if (name.empty()) return OpId::none();
  for (std::size_t i = 0; i < graph.ops().size(); ++i)
    if (graph.ops()[i].name == name) return OpId(i);
  throw std::out_of_range(name);
}

class PlanMaker {
 public:
  explicit PlanMaker(const Graph& graph) : graph_(graph) {}
  PlanMaker& initial_pool(const Names& names) {
    for (const auto& n : names) plan_.initial_pool.push_back(tensor_named(graph_, n));
    return *this;
  }
  // `after`: an op's name, "" for the iteration's start.
  PlanMaker& action(ActionKind kind, const std::string& tensor, const std::string& after) {
    Action a;
    a.kind = kind;
    a.tensor = tensor_named(graph_, tensor);
    a.after_op = op_named(graph_, after);
    a.to = graph_.tensor(a.tensor).bytes;
    plan_.actions.push_back(a);
    return *this;
  }
  PlanMaker& prefetch(const std::string& t, const std::string& after) {
    return action(ActionKind::kPrefetch, t, after);
  }
  PlanMaker& store(const std::string& t, const std::string& after) {
    return action(ActionKind::kStore, t, after);
  }
  PlanMaker& detach(const std::string& t, const std::string& after) {
    return action(ActionKind::kDetach, t, after);
  }
  Action& last() { return plan_.actions.back(); }
  Plan build() const { return plan_; }

 private:
  const Graph& graph_;
  Plan plan_;
};

}  // namespace hyperoffload::tiny
