#include "sim/workload/trace_writer.h"

#include <algorithm>

namespace hyperoffload {

TensorId TraceWriter::tensor(const std::string& name, Bytes bytes, TensorKind kind) {
  spec_.tensors.push_back({name, bytes, kind, persistent_by_default(kind), Tier::kHbm});
  return TensorId(spec_.tensors.size() - 1);
}

OpId TraceWriter::op(Op op, const std::string& engine) {
  auto it = std::find(spec_.engines.begin(), spec_.engines.end(), engine);
  if (it == spec_.engines.end()) it = spec_.engines.insert(it, engine);
  op.engine = EngineId(static_cast<std::size_t>(it - spec_.engines.begin()));
  spec_.ops.push_back(std::move(op));
  return OpId(spec_.ops.size() - 1);
}

TensorId TraceWriter::named(const std::string& name, Bytes bytes, TensorKind kind) {
  const auto [it, fresh] = persistent_.emplace(name, TensorId::none());
  if (fresh) it->second = tensor(name, bytes, kind);
  return it->second;
}

std::vector<TensorId> TraceWriter::weights(const Program& program, const std::string& part) {
  std::vector<TensorId> ids;
  for (const LocalWeight& w : program.weights)
    ids.push_back(named(w.name == "embed_tokens" ? w.name : part + w.name, w.bytes, TensorKind::kWeight));
  return ids;
}

std::vector<TensorId> TraceWriter::states(const Program& program, const std::string& part) {
  std::vector<TensorId> ids;
  for (const State& s : program.states) ids.push_back(named(part + s.name, s.bytes, TensorKind::kKv));
  return ids;
}

TensorId TraceWriter::forward(const Program& program, const std::string& part, int layer,
                              const std::string& phase, TensorId input) {
  const std::vector<TensorId> weight_ids = weights(program, part);
  const std::vector<TensorId> state_ids = states(program, part);
  std::vector<TensorId> values(program.values.size());
  for (std::size_t v = 0; v < values.size(); ++v)
    values[v] = static_cast<int>(v) == program.input
                    ? input
                    : tensor(part + program.values[v].name, program.values[v].bytes, TensorKind::kActivation);
  const auto append = [](std::vector<TensorId>& to, const std::vector<int>& which,
                         const std::vector<TensorId>& from) {
    for (int i : which) to.push_back(from[static_cast<std::size_t>(i)]);
  };
  for (const Kernel& k : program.kernels) {
    Op op;
    op.name = part + k.name;
    op.kernel = k.kernel;
    op.layer = layer;
    op.phase = phase;
    if (k.flops > 0) op.flops = Flops(k.flops);
    op.hbm_bytes = k.hbm_bytes;
    op.workspace = k.workspace;
    append(op.reads, k.reads, values);
    append(op.reads, k.weights, weight_ids);
    append(op.reads, k.state_reads, state_ids);
    append(op.writes, k.writes, values);
    append(op.writes, k.state_writes, state_ids);
    this->op(std::move(op));
  }
  return values[static_cast<std::size_t>(program.output)];
}

Graph TraceWriter::finish(const std::string& name, const std::string& meta_json, const std::string& source) {
  spec_.name = name;
  spec_.meta_json = meta_json;
  spec_.source = source;
  return build_graph(std::move(spec_));
}

}  // namespace hyperoffload
