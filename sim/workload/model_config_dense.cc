// Dense decoders of the Llama kind, and the pieces every family shares.
#include <fmt/format.h>

#include "sim/workload/model_families.h"

namespace hyperoffload {

void read_sizes(ConfigReader& r, ModelConfig& model) {
  model.hidden = r.count("hidden_size");
  model.vocab = r.count("vocab_size");
  model.max_positions = r.count("max_position_embeddings");
  model.tied_embeddings = r.flag("tie_word_embeddings", true);  // HuggingFace's default
  for (const char* key : {"torch_dtype", "dtype"}) {
    if (!r.has(key)) continue;
    const std::string name = r.text(key);
    if (name == "bfloat16")
      model.dtype = DataType::kBf16;
    else if (name == "float16")
      model.dtype = DataType::kFp16;
    else if (name == "float32")
      model.dtype = DataType::kFp32;
    else
      r.fail(key, r.shown(key), "bfloat16, float16 or float32");
  }
}

AttentionSpec read_grouped_attention(ConfigReader& r, const ModelConfig& model) {
  AttentionSpec a;
  a.heads = r.count("num_attention_heads");
  // HuggingFace takes an absent key as multi-head; a null is a different thing in each family.
  if (r.shown("num_key_value_heads") == "null")
    r.fail("num_key_value_heads", "null", "the number of key/value heads");
  a.kv_heads = r.count("num_key_value_heads", a.heads);
  if (a.heads % a.kv_heads != 0)
    r.fail("num_key_value_heads", std::to_string(a.kv_heads),
           fmt::format("a divisor of num_attention_heads = {}", a.heads));
  if (!r.has("head_dim") && model.hidden % a.heads != 0)
    r.fail("num_attention_heads", std::to_string(a.heads),
           fmt::format("a divisor of hidden_size = {}, or a head_dim", model.hidden));
  a.head_dim = a.v_head_dim = r.count("head_dim", model.hidden / a.heads);
  return a;
}

bool gated_activation(ConfigReader& r) {
  const std::string act = r.text("hidden_act");
  if (act != "silu" && act != "gelu" && act != "gelu_pytorch_tanh" && act != "swish")
    r.fail("hidden_act", r.shown("hidden_act"), "silu, gelu or gelu_pytorch_tanh");
  return true;
}

MlpSpec read_mlp(ConfigReader& r, const std::string& size_key) {
  MlpSpec m;
  m.intermediate = r.count(size_key);
  m.gated = gated_activation(r);
  m.bias = r.flag("mlp_bias", false);
  return m;
}

void read_llama_like(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  model.tied_embeddings = r.flag("tie_word_embeddings", false);
  LayerSpec layer;
  AttentionSpec a = read_grouped_attention(r, model);
  const bool bias = r.flag("attention_bias", model.model_type == "qwen2");
  a.q_bias = a.k_bias = a.v_bias = bias;
  a.out_bias = bias && model.model_type == "llama";
  if (model.model_type == "qwen3") a.qk_norm = QkNorm::kPerHead;
  layer.mixer = a;
  layer.ffn = read_mlp(r, "intermediate_size");
  const std::int64_t layers = r.count("num_hidden_layers");
  r.ignore({"max_window_layers", "use_sliding_window", "sliding_window"});
  model.layers.assign(static_cast<std::size_t>(layers), layer);
}

void read_family(ConfigReader& r, ModelConfig& model) {
  const std::string& type = model.model_type;
  if (type == "llama" || type == "mistral" || type == "qwen2" || type == "qwen3")
    return read_llama_like(r, model);
  r.fail("model_type", r.shown("model_type"),
         "a model family this program knows: llama, mistral, qwen2, qwen3");
}

}  // namespace hyperoffload
