#include "sim/workload/model_figures.h"

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

}  // namespace hyperoffload
