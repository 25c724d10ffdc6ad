#include "sim/workload/program.h"

#include <algorithm>

#include "sim/model/check.h"
#include "sim/workload/program_builder.h"

namespace hyperoffload {

ProgramBuilder::ProgramBuilder(const ProgramContext& c, const std::vector<WeightSpec>& weights) : context(c) {
  const QuantSpec* quant = c.spec.published_weights && c.model.quant ? &*c.model.quant : nullptr;
  for (const WeightSpec& weight : weights) {
    local_.push_back(local_weight(weight, c.place));
    const WeightSpec& mine = local_.back();
    by_name_.emplace(weight.name, static_cast<int>(program_.weights.size()));
    program_.weights.push_back(
        {weight.name, weight_bytes(mine, c.spec.dtype, c.spec.weights(), quant), elements(mine)});
  }
}

int ProgramBuilder::value(const std::string& name, Bytes bytes) {
  program_.values.push_back({name, bytes});
  return static_cast<int>(program_.values.size()) - 1;
}

int ProgramBuilder::activation(const std::string& name, std::int64_t elements) {
  return value(name, bytes_of(elements, context.spec.dtype));
}

int ProgramBuilder::state(const std::string& name, Bytes bytes) {
  program_.states.push_back({name, bytes});
  return static_cast<int>(program_.states.size()) - 1;
}

int ProgramBuilder::weight(const std::string& name) const {
  const auto it = by_name_.find(name);
  HYPER_CHECK(it != by_name_.end(), "no weight " + name);
  return it->second;
}

const WeightSpec& ProgramBuilder::local(const std::string& name) const {
  return local_[static_cast<std::size_t>(weight(name))];
}

std::int64_t ProgramBuilder::matrix_elements(const std::string& name) const {
  std::int64_t sum = 0;
  for (const WeightPart& part : local(name).parts)
    if (part.cols > 1) sum += part.rows * part.cols;
  return sum;
}

Kernel& ProgramBuilder::kernel(const std::string& kind, const std::string& name, std::vector<int> reads,
                               std::vector<int> writes, const std::vector<std::string>& weights,
                               double flops) {
  Kernel k;
  k.kernel = kind;
  k.name = name;
  k.flops = flops;
  for (int v : reads) k.hbm_bytes += bytes(v);
  for (int v : writes) k.hbm_bytes += bytes(v);
  for (const std::string& w : weights) {
    k.weights.push_back(weight(w));
    k.hbm_bytes += program_.weights[static_cast<std::size_t>(weight(w))].bytes;
  }
  k.reads = std::move(reads);
  k.writes = std::move(writes);
  program_.kernels.push_back(std::move(k));
  return program_.kernels.back();
}

Kernel& ProgramBuilder::matmul(const std::string& kind, const std::string& name, std::int64_t rows, int in,
                               std::vector<int> outs, const std::vector<std::string>& weights) {
  double flops = 0;
  for (const std::string& w : weights)
    flops += 2.0 * static_cast<double>(rows) * static_cast<double>(matrix_elements(w));
  return kernel(kind, name, {in}, std::move(outs), weights, flops);
}

int ProgramBuilder::norm(const std::string& name, int in, const std::string& weight_name) {
  const int out = value(name + "ed", bytes(in));
  kernel("norm", name, {in}, {out}, {weight_name});
  return out;
}

int ProgramBuilder::add(const std::string& name, int a, int b) {
  const int out = value(name, bytes(a));
  kernel("add", name, {a, b}, {out});
  return out;
}

Program ProgramBuilder::finish(int input, int output) {
  program_.input = input;
  program_.output = output;
  return std::move(program_);
}

Program embedding_program(const ProgramContext& c) {
  ProgramBuilder b(c, embedding_weights(c.model));
  const std::int64_t tokens = c.pass.tokens();
  const int ids = b.value("tokens", Bytes(4 * tokens));
  const int h = b.activation("embedded", tokens * c.model.hidden);
  std::vector<std::string> tables{"embed_tokens"};
  if (c.model.learned_positions > 0) tables.push_back("embed_positions");
  Kernel& k = b.kernel("embed", "embed", {ids}, {h}, tables);
  k.hbm_bytes = b.bytes(ids) + b.bytes(h);  // of the tables, only the rows of these tokens
  for (std::size_t i = 0; i < tables.size(); ++i)
    k.hbm_bytes += bytes_of(tokens * c.model.hidden, c.spec.weights());
  return b.finish(ids, h);
}

Program layer_program(const ProgramContext& c, const LayerSpec& layer) {
  ProgramBuilder b(c, layer_weights(c.model, layer));
  const int input = b.activation("hidden_in", c.pass.tokens() * c.model.hidden);
  int h = input;
  if (const auto* attention = std::get_if<AttentionSpec>(&layer.mixer)) {
    const int n = b.norm("input_norm", h, "input_norm");
    h = b.add("attn_add", h, attention_kernels(b, *attention, n));
  }
  if (const auto* mlp = std::get_if<MlpSpec>(&layer.ffn)) {
    const int n = b.norm("mlp_norm", h, "mlp_norm");
    h = b.add("mlp_add", h, mlp_kernels(b, *mlp, n));
  }
  return b.finish(input, h);
}

Program head_program(const ProgramContext& c) {
  std::vector<WeightSpec> weights = head_weights(c.model);
  if (c.model.tied_embeddings) weights.push_back(embedding_weights(c.model).front());
  ProgramBuilder b(c, weights);
  const int input = b.activation("hidden_in", c.pass.tokens() * c.model.hidden);
  const int n = b.norm("final_norm", input, "final_norm");
  const std::int64_t rows = c.pass.last_logits_only ? c.pass.sequences : c.pass.tokens();
  const std::string matrix = c.model.tied_embeddings ? "embed_tokens" : "lm_head";
  const std::int64_t vocab = b.local(matrix).parts.front().rows;
  const int logits = b.activation("logits", rows * vocab);
  Kernel& k = b.matmul("lm_head", "lm_head", rows, n, {logits}, {matrix});
  k.hbm_bytes +=
      bytes_of(rows * c.model.hidden, c.spec.dtype) - b.bytes(n);  // of the hidden states, those rows
  return b.finish(input, logits);
}

}  // namespace hyperoffload
