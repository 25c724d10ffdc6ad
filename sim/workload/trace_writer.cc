#include "sim/workload/trace_writer.h"

#include <algorithm>

#include "sim/model/check.h"

namespace hyperoffload {

TensorId TraceWriter::tensor(const std::string& name, Bytes bytes, TensorKind kind) {
  return tensor(name, bytes, kind, persistent_by_default(kind));
}

TensorId TraceWriter::tensor(const std::string& name, Bytes bytes, TensorKind kind, bool persistent) {
  spec_.tensors.push_back({name, bytes, kind, persistent, Tier::kHbm});
  return TensorId(spec_.tensors.size() - 1);
}

TensorId TraceWriter::named(const std::string& name, Bytes bytes, TensorKind kind, bool persistent) {
  const auto [it, fresh] = named_.emplace(name, TensorId::none());
  if (fresh) it->second = tensor(name, bytes, kind, persistent);
  HYPER_CHECK(tensor(it->second).bytes == bytes, "two sizes of " + name);
  return it->second;
}

OpId TraceWriter::op(Op op, const std::string& engine) {
  auto it = std::find(spec_.engines.begin(), spec_.engines.end(), engine);
  if (it == spec_.engines.end()) it = spec_.engines.insert(it, engine);
  op.engine = EngineId(static_cast<std::size_t>(it - spec_.engines.begin()));
  spec_.ops.push_back(std::move(op));
  return last_op();
}

OpId TraceWriter::collective(Op op, const Collective& what) {
  op.collective = what;
  op.kernel = what.kind;
  if (workload_.collectives)
    op.duration = collective_time(what, group_size(what.group, place_), *workload_.collectives);
  return this->op(std::move(op), "comm");
}

std::vector<TensorId> TraceWriter::weights(const PartWeights& weights, const std::string& part) {
  std::vector<TensorId> ids;
  for (const PartWeights::Local& w : weights.weights)
    ids.push_back(named(weight_name(part, w.name), w.bytes, TensorKind::kWeight, true));
  return ids;
}

OpId TraceWriter::kernel(const Program& program, const Kernel& k, const std::string& part, const Emission& e,
                         Binding& binding) {
  const auto id = [&](int v) -> TensorId& { return binding.values[static_cast<std::size_t>(v)]; };
  if (!k.forward) {  // a view
    id(k.writes.front()) = id(k.reads.front());
    return OpId::none();
  }
  Op op;
  op.name = e.prefix + k.name;
  op.kernel = k.kernel;
  op.layer = e.layer;
  op.phase = e.phase;
  if (k.flops > 0) op.flops = Flops(k.flops);
  op.hbm_bytes = k.hbm_bytes;
  op.workspace = k.workspace;
  for (int v : k.reads) op.reads.push_back(id(v));
  for (int w : k.weights) op.reads.push_back(binding.weights[static_cast<std::size_t>(w)]);
  const auto state = [&](int s) {
    const State& mine = program.states[static_cast<std::size_t>(s)];
    return named(part + mine.name, mine.bytes, TensorKind::kKv, mine.persistent);
  };
  for (int s : k.state_reads) op.reads.push_back(state(s));
  for (int v : k.writes) {
    if (id(v).is_none()) {
      const Value& value = program.values[static_cast<std::size_t>(v)];
      id(v) = tensor(e.prefix + value.name, value.bytes, TensorKind::kActivation);
    }
    op.writes.push_back(id(v));
  }
  for (int s : k.state_writes) op.writes.push_back(state(s));
  return k.collective ? collective(std::move(op), *k.collective) : this->op(std::move(op));
}

Binding TraceWriter::forward(const Program& program, const std::string& part, const Emission& e,
                             TensorId input, std::vector<TensorId> weights) {
  Binding binding{std::vector<TensorId>(program.values.size()), std::move(weights)};
  binding.values[static_cast<std::size_t>(program.input)] = input;
  for (const State& s : program.states)
    if (s.persistent) named(part + s.name, s.bytes, TensorKind::kKv, true);
  std::vector<OpId> ops;
  for (const Kernel& k : program.kernels) {
    ops.push_back(kernel(program, k, part, e, binding));
    if (k.known_after >= 0) spec_.ops.back().known_after = ops[static_cast<std::size_t>(k.known_after)];
  }
  return binding;
}

double TraceWriter::model_flops() const {
  const bool train = workload_.phase == Phase::kTrain;
  double sum = 0;
  for (const Op& op : spec_.ops)
    if (op.flops && (!train || op.phase == "forward")) sum += op.flops->value;
  return train ? 3 * sum : sum;
}

Graph TraceWriter::finish(const std::string& name, const std::string& meta_json) {
  spec_.name = name;
  spec_.meta_json = meta_json;
  spec_.source = workload_.source;
  if (workload_.detail == Detail::kLayer) spec_ = merge_layers(std::move(spec_));
  return build_graph(std::move(spec_));
}

int group_size(const std::string& group, const RankPlace& p) {
  if (group == "tp") return p.tp;
  if (group == "cp") return p.cp;
  if (group == "ep") return p.ep;
  if (group == "dp") return p.dp * p.cp;
  if (group == "edp") return p.edp;
  HYPER_CHECK(group == "pp" || group == "embedding", "no group " + group);
  return 2;
}

Seconds collective_time(const Collective& what, int ranks, const CollectiveLink& link) {
  const double n = ranks;
  const double bytes = static_cast<double>(what.bytes.value);
  if (what.kind == "send" || what.kind == "recv")
    return Seconds(bytes / link.bandwidth.value + link.latency.value);
  const double rounds = what.kind == "all-reduce" ? 2 : 1;
  return Seconds(rounds * ((n - 1) / n * bytes / link.bandwidth.value + (n - 1) * link.latency.value));
}

}  // namespace hyperoffload
