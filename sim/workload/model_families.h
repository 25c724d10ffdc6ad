// One reader a family of config.json; each fills a ModelConfig, and asks for every key that matters.
#pragma once

#include <functional>

#include "sim/workload/config_reader.h"
#include "sim/workload/model_config.h"

namespace hyperoffload {

// Dispatches on model.model_type; InputError naming it when no family knows it.
void read_family(ConfigReader& reader, ModelConfig& model);

// model_config_dense.cc
void read_llama_like(ConfigReader& reader, ModelConfig& model);  // llama, mistral, qwen2, qwen3, mimo, ...
void read_gemma(ConfigReader& reader, ModelConfig& model);       // gemma, gemma2, gemma3, gemma4
void read_phi(ConfigReader& reader, ModelConfig& model);         // phi, phi3
void read_gpt2(ConfigReader& reader, ModelConfig& model);
void read_opt(ConfigReader& reader, ModelConfig& model);
void read_nemotron_nas(ConfigReader& reader, ModelConfig& model);  // no-op layers
// model_config_moe.cc
void read_mixtral(ConfigReader& reader, ModelConfig& model);   // mixtral, phimoe
void read_qwen_moe(ConfigReader& reader, ModelConfig& model);  // qwen2_moe, qwen3_moe
void read_gpt_oss(ConfigReader& reader, ModelConfig& model);
void read_llama4(ConfigReader& reader, ModelConfig& model);
void read_minimax_m2(ConfigReader& reader, ModelConfig& model);
void read_mimo_v2(ConfigReader& reader, ModelConfig& model);
void read_step3(ConfigReader& reader, ModelConfig& model);
// model_config_deepseek.cc
void read_deepseek(ConfigReader& reader, ModelConfig& model);  // deepseek_v2, v3, v32, kimi_k2, glm_moe_dsa
void read_deepseek_v4(ConfigReader& reader, ModelConfig& model);
// model_config_hybrid.cc
void read_nemotron_h(ConfigReader& reader, ModelConfig& model);
void read_qwen_next(ConfigReader& reader, ModelConfig& model);  // qwen3_next, qwen3_5, qwen3_5_moe
// model_config_quant.cc
void read_quantization(ConfigReader& reader, ModelConfig& model);

// Shared by families.
void read_sizes(ConfigReader& reader, ModelConfig& model, bool tied_by_default = false);
AttentionSpec read_grouped_attention(ConfigReader& reader, const ModelConfig& model);
MlpSpec read_mlp(ConfigReader& reader, const std::string& size_key = "intermediate_size");
// The activation named by `key`: whether this family's feed-forward part is then gated is the caller's.
void check_activation(ConfigReader& reader, const std::string& key);
// `layer(i)` for each of num_hidden_layers.
void make_layers(ConfigReader& reader, ModelConfig& model,
                 const std::function<LayerSpec(std::size_t)>& layer);
// One of `types` a layer ("layer_types"); empty if the key is absent.
std::vector<std::string> read_layer_types(ConfigReader& reader, const std::vector<std::string>& types);

}  // namespace hyperoffload
