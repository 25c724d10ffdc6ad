#include "sim/workload/model_figures.h"

#include "sim/workload/generators.h"
#include "sim/workload/kv_cache.h"
#include "sim/workload/weights.h"

namespace hyperoffload {

ModelFigures model_figures(const ModelConfig& model, DataType kv_type) {
  ModelFigures f;
  const auto add = [&](const std::vector<WeightSpec>& weights, const MoeSpec* moe) {
    std::int64_t routed = 0;
    for (const WeightSpec& w : weights) {
      f.parameters += elements(w);
      (w.expert >= 0 ? routed : f.active_parameters) += elements(w);
    }
    if (moe) f.active_parameters += routed / moe->experts * moe->top_k;
  };
  const RankPlace whole;
  add(embedding_weights(model), nullptr);
  for (const LayerSpec& layer : model.layers) {
    add(layer_weights(model, layer), std::get_if<MoeSpec>(&layer.ffn));
    const Bytes token = kv_bytes_per_token(layer, kv_type, whole);
    f.kv_bytes_per_token += token;
    if (grows_without_end(layer)) f.kv_bytes_per_token_far += token;
    if (const auto* a = std::get_if<CompressedAttentionSpec>(&layer.mixer))
      f.kv_bytes_per_token_far += token - bytes_of(a->head_dim, kv_type);
    f.state_bytes_per_sample += state_bytes_per_sample(layer, kv_type, whole);
  }
  add(head_weights(model), nullptr);
  return f;
}

double forward_flops_per_token(const ModelConfig& model, std::int64_t sequence) {
  WorkloadSpec spec;
  spec.sequence = sequence;
  ProgramCache programs(model, spec, RankPlace());
  Pass pass;
  pass.groups = {{1, sequence, 0, sequence, sequence, "kv"}};
  pass.last_logits_only = false;
  programs.set_pass(pass);
  double sum = 0;
  const auto add = [&](const Program& program) {
    for (const Kernel& k : program.kernels) sum += k.flops;
  };
  add(programs.embedding());
  for (std::size_t i = 0; i < model.layers.size(); ++i) add(programs.layer(static_cast<std::int64_t>(i)));
  add(programs.head());
  return sum / static_cast<double>(sequence);
}

Bytes published_weight_bytes(const ModelConfig& model) {
  const DataType type = model.dtype.value_or(DataType::kBf16);
  Bytes sum;
  const auto add = [&](const std::vector<WeightSpec>& weights) {
    for (const WeightSpec& w : weights)
      sum += weight_bytes(w, type, type, model.quant ? &*model.quant : nullptr);
  };
  add(embedding_weights(model));
  for (const LayerSpec& layer : model.layers) add(layer_weights(model, layer));
  add(head_weights(model));
  return sum;
}

}  // namespace hyperoffload
