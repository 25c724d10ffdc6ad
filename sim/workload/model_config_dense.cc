// Dense decoders, and the pieces every family shares.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/model_families.h"

namespace hyperoffload {

void read_sizes(ConfigReader& r, ModelConfig& model, bool tied_by_default) {
  model.hidden = r.count("hidden_size");
  model.vocab = r.count("vocab_size");
  model.max_positions = r.length("max_position_embeddings");
  model.tied_embeddings = r.flag("tie_word_embeddings", tied_by_default);
  r.only("add_cross_attention", {"false"});
  r.only("cross_attention_hidden_size", {});
  r.only("is_encoder_decoder", {"false"});
  r.only("tie_encoder_decoder", {"false"});
  r.only("pruned_heads", {"{}"});
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
  read_quantization(r, model);
}

AttentionSpec read_grouped_attention(ConfigReader& r, const ModelConfig& model) {
  AttentionSpec a;
  a.heads = r.count("num_attention_heads");
  // An absent key means multi-head; what a null means differs from family to family.
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

void check_activation(ConfigReader& r, const std::string& key) {
  static const std::vector<std::string> known = {"silu", "swish", "gelu", "gelu_new", "gelu_pytorch_tanh",
                                                 "relu", "relu2"};
  const std::string act = r.text(key);
  if (std::find(known.begin(), known.end(), act) == known.end())
    r.fail(key, r.shown(key), fmt::format("one of {}", fmt::join(known, ", ")));
}

MlpSpec read_mlp(ConfigReader& r, const std::string& size_key) {
  check_activation(r, "hidden_act");
  MlpSpec m;
  m.intermediate = r.count(size_key);
  m.bias = r.flag("mlp_bias", false);
  return m;
}

void make_layers(ConfigReader& r, ModelConfig& model, const std::function<LayerSpec(std::size_t)>& layer) {
  const std::int64_t count = r.count("num_hidden_layers");
  if (count > 100'000) r.fail("num_hidden_layers", std::to_string(count), "at most 100000");
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) model.layers.push_back(layer(i));
}

std::vector<std::string> read_layer_types(ConfigReader& r, const std::vector<std::string>& types) {
  if (!r.has("layer_types")) return {};
  const std::vector<std::string> list = r.texts("layer_types");
  const std::int64_t layers = r.count("num_hidden_layers");
  if (static_cast<std::int64_t>(list.size()) < layers)
    r.fail("layer_types", fmt::format("{} entries", list.size()), fmt::format("one a layer: {}", layers));
  for (const std::string& type : list)
    if (std::find(types.begin(), types.end(), type) == types.end())
      r.fail("layer_types", "\"" + type + "\"", fmt::format("one of {}", fmt::join(types, ", ")));
  return list;
}

namespace {

// Sliding windows in the Qwen and Mistral manner: off unless asked for, then from one layer on.
std::int64_t window_from(ConfigReader& r, const std::string& type, std::int64_t& first_layer) {
  first_layer = 0;
  const std::int64_t window = r.count("sliding_window", 0);
  const bool asked = r.flag("use_sliding_window", type == "mistral");
  const std::int64_t from = r.count_or_zero("max_window_layers", 0);
  if (type != "mistral") first_layer = from;
  return asked ? window : 0;
}

}  // namespace

void read_llama_like(ConfigReader& r, ModelConfig& model) {
  const std::string& type = model.model_type;
  const bool qwen3 = type == "qwen3" || type == "qwen3_vl_text";
  read_sizes(r, model);
  AttentionSpec a = read_grouped_attention(r, model);
  const bool bias = r.flag("attention_bias", type == "qwen2");
  a.q_bias = a.k_bias = a.v_bias = bias;
  a.out_bias = bias && type != "qwen2" && type != "mimo";
  if (qwen3) a.qk_norm = QkNorm::kPerHead;
  std::int64_t windowed_from = 0;
  const std::int64_t window = window_from(r, type, windowed_from);
  r.only("use_mrope", {"false"});
  r.only("partial_rotary_factor", {"1.0", "1"});
  if (type == "mimo")  // the one of these types that is published with prediction modules
    model.mtp_layers = r.count_or_zero("num_nextn_predict_layers", 0);
  else
    r.only("num_nextn_predict_layers", {"0"});
  const std::vector<std::string> types = read_layer_types(r, {"full_attention", "sliding_attention"});
  if (type == "llama" && r.has("sliding_window"))
    r.fail("sliding_window", r.shown("sliding_window"), "none: models of type llama attend over all tokens");
  if (window == 0 && std::find(types.begin(), types.end(), "sliding_attention") != types.end())
    r.fail("layer_types", "sliding_attention",
           "full_attention, as no window is in use (sliding_window, use_sliding_window)");
  const MlpSpec mlp = read_mlp(r);
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    AttentionSpec mine = a;
    const bool slides =
        types.empty() ? static_cast<std::int64_t>(i) >= windowed_from : types[i] == "sliding_attention";
    if (slides) mine.window = window;
    layer.mixer = mine;
    layer.ffn = mlp;
    return layer;
  });
}

void read_gemma(ConfigReader& r, ModelConfig& model) {
  const std::string& type = model.model_type;
  read_sizes(r, model, true);
  AttentionSpec a = read_grouped_attention(r, model);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = r.flag("attention_bias", false);
  r.ignore({"attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar",
            "rope_local_base_freq", "use_bidirectional_attention", "cache_implementation", "hidden_act"});
  check_activation(r, r.has("hidden_activation") ? "hidden_activation" : "hidden_act");
  r.only("num_kv_shared_layers", {"0"});
  r.only("use_double_wide_mlp", {"false"});
  r.only("hidden_size_per_layer_input", {"0"});
  r.ignore({"vocab_size_per_layer_input"});  // of no use without a per-layer input
  if (type == "gemma3_text" || type == "gemma4_text") a.qk_norm = QkNorm::kPerHead;
  const std::int64_t window = r.count("sliding_window", 0);
  std::vector<std::string> types = read_layer_types(r, {"full_attention", "sliding_attention"});
  const std::int64_t pattern = r.count("sliding_window_pattern", type == "gemma2" ? 2 : 6);
  AttentionSpec full = a;
  if (type == "gemma4_text") {
    full.head_dim = full.v_head_dim = r.count("global_head_dim", a.head_dim);
    full.k_eq_v = r.flag("attention_k_eq_v", false);
    const std::int64_t global_heads = r.count("num_global_key_value_heads", a.kv_heads);
    if (full.k_eq_v) full.kv_heads = global_heads;
  }
  const MlpSpec mlp{r.count("intermediate_size"), true, false};
  FeedForward ffn = mlp;
  if (r.flag("enable_moe_block", false)) {
    MoeSpec moe;
    moe.experts = r.count("num_experts");
    moe.top_k = r.count("top_k_experts");
    moe.intermediate = r.count("moe_intermediate_size");
    moe.dense = mlp;
    moe.router_scales = true;
    ffn = moe;
  }
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    const bool slides = type == "gemma" ? false
                        : types.empty() ? (static_cast<std::int64_t>(i) + 1) % pattern != 0
                                        : types[i] == "sliding_attention";
    if (slides) {
      AttentionSpec mine = a;
      mine.window = window;
      layer.mixer = mine;
    } else {
      layer.mixer = full;
    }
    layer.ffn = ffn;
    layer.post_norms = type != "gemma";
    layer.layer_scale = type == "gemma4_text";
    return layer;
  });
}

void read_phi(ConfigReader& r, ModelConfig& model) {
  const bool phi3 = model.model_type == "phi3";
  read_sizes(r, model);
  r.ignore({"partial_rotary_factor", "original_max_position_embeddings", "qk_layernorm"});
  r.only("qk_layernorm", {"false"});
  AttentionSpec a = read_grouped_attention(r, model);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = !phi3;
  a.window = phi3 ? r.count("sliding_window", 0) : 0;
  if (a.window >= model.max_positions) a.window = 0;
  if (phi3) r.only("attention_bias", {"false"});
  check_activation(r, "hidden_act");
  model.norm = phi3 ? NormKind::kRms : NormKind::kLayer;
  model.lm_head_bias = !phi3;
  const MlpSpec mlp{r.count("intermediate_size"), phi3, !phi3};
  make_layers(r, model, [&](std::size_t) {
    LayerSpec layer;
    layer.mixer = a;
    layer.ffn = mlp;
    layer.one_norm = !phi3;
    return layer;
  });
}

void read_gpt2(ConfigReader& r, ModelConfig& model) {
  model.hidden = r.count("n_embd");
  model.vocab = r.count("vocab_size");
  model.max_positions = model.learned_positions = r.count_of({"n_positions", "n_ctx"});
  model.tied_embeddings = r.flag("tie_word_embeddings", true);
  model.norm = NormKind::kLayer;
  r.ignore({"torch_dtype", "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn",
            "gradient_checkpointing"});
  r.only("add_cross_attention", {"false"});
  check_activation(r, "activation_function");
  AttentionSpec a;
  a.heads = a.kv_heads = r.count("n_head");
  if (model.hidden % a.heads != 0)
    r.fail("n_head", std::to_string(a.heads), fmt::format("a divisor of n_embd = {}", model.hidden));
  a.head_dim = a.v_head_dim = model.hidden / a.heads;
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = true;
  a.rope = false;
  LayerSpec layer;
  layer.mixer = a;
  layer.ffn = MlpSpec{r.count("n_inner", 4 * model.hidden), false, true};
  model.layers.assign(static_cast<std::size_t>(r.count("n_layer")), layer);
}

void read_opt(ConfigReader& r, ModelConfig& model) {
  r.ignore({"layerdrop", "dropout", "activation_dropout", "init_std", "_remove_final_layer_norm"});
  read_sizes(r, model, true);
  model.learned_positions = model.max_positions + 2;  // OPT's table starts at position 2
  model.norm = NormKind::kLayer;
  r.only("word_embed_proj_dim", {std::to_string(model.hidden)});
  r.only("do_layer_norm_before", {"true"});
  r.only("layer_norm_elementwise_affine", {"true"});
  r.only("enable_bias", {"true"});
  check_activation(r, "activation_function");
  AttentionSpec a = read_grouped_attention(r, model);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = true;
  a.rope = false;
  LayerSpec layer;
  layer.mixer = a;
  layer.ffn = MlpSpec{r.count("ffn_dim"), false, true};
  make_layers(r, model, [&](std::size_t) { return layer; });
}

// Llama with layers cut by neural architecture search: each says its own heads and width, or nothing.
void read_nemotron_nas(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  r.only("intermediate_size", {});
  r.only("num_key_value_heads", {});  // null: each block has its own
  const std::int64_t heads = r.count("num_attention_heads");
  if (model.hidden % heads != 0)
    r.fail("num_attention_heads", std::to_string(heads),
           fmt::format("a divisor of hidden_size = {}", model.hidden));
  const bool bias = r.flag("attention_bias", false);
  const bool mlp_bias = r.flag("mlp_bias", false);
  check_activation(r, "hidden_act");
  const nlohmann::json* blocks = r.raw("block_configs");
  const std::int64_t layers = r.count("num_hidden_layers");
  if (!blocks || !blocks->is_array() || static_cast<std::int64_t>(blocks->size()) != layers)
    r.fail("block_configs", r.shown("block_configs"),
           fmt::format("a list of {} blocks, one a layer", layers));
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    const std::string path = fmt::format("block_configs[{}].", i);
    ConfigReader block((*blocks)[i], r.source(), path);
    LayerSpec layer;
    ConfigReader attention = block.child("attention");
    for (const char* key : {"num_sink_tokens", "sparsify", "window_length"}) attention.only(key, {});
    for (const char* key : {"replace_with_linear", "unshifted_sink", "use_prefill_window_in_sink_attention"})
      attention.only(key, {"false"});
    if (!attention.flag("no_op", false)) {
      AttentionSpec a;
      a.heads = heads;
      const std::int64_t group = attention.count("n_heads_in_group");
      if (heads % group != 0)
        attention.fail("n_heads_in_group", std::to_string(group), "a divisor of num_attention_heads");
      a.kv_heads = heads / group;
      a.head_dim = a.v_head_dim = model.hidden / heads;
      a.q_bias = a.k_bias = a.v_bias = a.out_bias = bias;
      layer.mixer = a;
    } else {
      attention.ignore({"n_heads_in_group"});
    }
    attention.finish();
    ConfigReader ffn = block.child("ffn");
    ffn.only("sparsify", {});
    ffn.only("replace_with_linear", {"false"});
    if (!ffn.flag("no_op", false)) {
      const nlohmann::json* mult = ffn.raw("ffn_mult");
      if (!mult || !mult->is_number() || !(mult->get<double>() > 0))
        ffn.fail("ffn_mult", ffn.shown("ffn_mult"), "a number above 0");
      // Two thirds of the multiple, up to a whole 256.
      const auto width =
          static_cast<std::int64_t>(2 * mult->get<double>() * static_cast<double>(model.hidden) / 3);
      layer.ffn = MlpSpec{(width + 255) / 256 * 256, true, mlp_bias};
    } else {
      ffn.ignore({"ffn_mult"});
    }
    ffn.finish();
    block.finish();
    model.layers.push_back(layer);
  }
}

}  // namespace hyperoffload
