// Prefill (whole or in chunks), decode (one step or several), and both mixed.
#include <fmt/format.h>

#include "sim/workload/generators.h"

namespace hyperoffload {
namespace {

std::vector<Pass> passes_of(const WorkloadSpec& spec) {
  std::vector<Pass> passes;
  Pass pass;
  pass.phase = spec.phase;
  if (spec.phase == Phase::kPrefill) {
    const std::int64_t chunk = spec.chunk > 0 ? std::min(spec.chunk, spec.sequence) : spec.sequence;
    for (std::int64_t from = 0; from < spec.sequence; from += chunk) {
      pass.groups = {
          {spec.batch, std::min(chunk, spec.sequence - from), from, spec.sequence, spec.sequence, "kv"}};
      pass.index = static_cast<std::int64_t>(passes.size());
      passes.push_back(pass);
    }
    return passes;
  }
  for (std::int64_t step = 0; step < spec.steps; ++step) {
    pass.groups = {{spec.batch, 1, spec.sequence + step, spec.sequence + spec.steps, spec.sequence, "kv"}};
    if (spec.prefill) {
      const PromptChunk& p = *spec.prefill;
      const std::int64_t cached = p.cached + step * p.tokens;
      const std::int64_t capacity = p.cached + spec.steps * p.tokens;
      pass.groups.push_back({p.batch, p.tokens, cached, capacity, p.cached, "prompt_kv"});
    }
    pass.index = step;
    passes.push_back(pass);
  }
  return passes;
}

// A transfer to or from the neighbouring pipeline stage.
TensorId pass_on(TraceWriter& writer, const std::string& kind, const Emission& e, TensorId h, Bytes bytes) {
  Op op;
  op.name = e.prefix + kind;
  op.phase = e.phase;
  op.hbm_bytes = bytes;
  if (kind == "recv") {
    h = writer.tensor(e.prefix + "received", bytes, TensorKind::kActivation);
    op.writes = {h};
  } else {
    op.reads = {h};
  }
  writer.collective(std::move(op), {kind, bytes, "pp"});
  return h;
}

}  // namespace

void generate_inference(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place,
                        TraceWriter& writer) {
  const std::vector<Pass> passes = passes_of(spec);
  const std::string phase = to_string(spec.phase);
  const std::string word = spec.phase == Phase::kPrefill ? "chunk" : "step";
  ProgramCache programs(model, spec, place);
  const Stage stage = stage_of(model, place, 1, 0);
  for (const Pass& pass : passes) {
    programs.set_pass(pass);
    const std::string prefix = passes.size() > 1 ? fmt::format("{}.{}.", word, pass.index) : "";
    Emission e{prefix, -1, phase};
    TensorId h;
    const auto run = [&](const Program& program, const std::string& part, int layer) {
      e.prefix = prefix + part;
      e.layer = layer;
      const Binding b = writer.forward(program, part, e, h, writer.weights(*program.weights, part));
      h = b.values[static_cast<std::size_t>(program.output)];
    };
    if (stage.first) {
      const Program& embedding = programs.embedding();
      h = writer.tensor(prefix + "tokens", embedding.values[static_cast<std::size_t>(embedding.input)].bytes,
                        TensorKind::kInput);
      run(embedding, "", -1);
    } else {
      h = pass_on(writer, "recv", e, h, boundary_bytes(programs.context()));
    }
    for (std::int64_t i = stage.layers.from; i < stage.layers.to; ++i)
      run(programs.layer(i), fmt::format("layers.{}.", i), static_cast<int>(i));
    if (stage.last) {
      for (int m = 0; m < spec.mtp; ++m) run(programs.mtp(), fmt::format("mtp.{}.", m), -1);
      run(programs.head(), "", -1);
    } else {
      e = {prefix, -1, phase};
      pass_on(writer, "send", e, h, boundary_bytes(programs.context()));
    }
  }
}

}  // namespace hyperoffload
