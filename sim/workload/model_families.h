// One reader a family of config.json; each fills a ModelConfig, and asks for every key that matters.
#pragma once

#include "sim/workload/config_reader.h"
#include "sim/workload/model_config.h"

namespace hyperoffload {

// Dispatches on model.model_type; InputError naming it when no family knows it.
void read_family(ConfigReader& reader, ModelConfig& model);

// Llama, Mistral, Qwen2, Qwen3 and their like: one dense layer, repeated.
void read_llama_like(ConfigReader& reader, ModelConfig& model);

// Shared by families.
void read_sizes(ConfigReader& reader, ModelConfig& model);  // hidden, vocab, positions, dtype, tied
AttentionSpec read_grouped_attention(ConfigReader& reader, const ModelConfig& model);
MlpSpec read_mlp(ConfigReader& reader, const std::string& size_key);
bool gated_activation(ConfigReader& reader);  // hidden_act: one that comes with a gate in this family

}  // namespace hyperoffload
