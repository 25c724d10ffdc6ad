// Mixtures of experts over grouped-query attention.
#include <fmt/format.h>

#include "sim/workload/model_families.h"

namespace hyperoffload {
namespace {

void check_experts(ConfigReader& r, const MoeSpec& moe, const std::string& top_k_key) {
  if (moe.top_k > moe.experts)
    r.fail(top_k_key, std::to_string(moe.top_k),
           fmt::format("at most the number of experts, {}", moe.experts));
}

}  // namespace

void read_mixtral(ConfigReader& r, ModelConfig& model) {
  const bool phi = model.model_type == "phimoe";
  read_sizes(r, model);
  AttentionSpec a = read_grouped_attention(r, model);
  const bool bias = r.flag("attention_bias", false);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = bias;
  a.window = r.count("sliding_window", 0);
  model.lm_head_bias = phi && r.flag("lm_head_bias", false);
  model.norm = phi ? NormKind::kLayer : NormKind::kRms;  // Phi-MoE norms have a bias
  check_activation(r, "hidden_act");
  MoeSpec moe;
  moe.experts = r.count("num_local_experts");
  moe.top_k = r.count("num_experts_per_tok");
  moe.intermediate = r.count("intermediate_size");
  check_experts(r, moe, "num_experts_per_tok");
  make_layers(r, model, [&](std::size_t) {
    LayerSpec layer;
    layer.mixer = a;
    layer.ffn = moe;
    return layer;
  });
}

void read_qwen_moe(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  AttentionSpec a = read_grouped_attention(r, model);
  const bool qwen2 = model.model_type == "qwen2_moe";
  a.q_bias = a.k_bias = a.v_bias = r.flag("qkv_bias", r.flag("attention_bias", qwen2));
  if (r.flag("use_qk_norm", !qwen2)) a.qk_norm = QkNorm::kPerHead;
  r.ignore({"norm_topk_prob", "max_window_layers", "sliding_window"});
  r.only("use_sliding_window", {"false"});
  MoeSpec moe;
  moe.experts = r.count("num_experts");
  moe.top_k = r.count("num_experts_per_tok");
  moe.intermediate = r.count("moe_intermediate_size");
  moe.shared_intermediate = r.count_or_zero("shared_expert_intermediate_size", 0);
  moe.shared_gate = moe.shared_intermediate > 0;
  check_experts(r, moe, "num_experts_per_tok");
  const std::int64_t step = r.count("decoder_sparse_step", 1);
  std::vector<std::int64_t> dense;
  if (r.has("mlp_only_layers")) dense = r.counts("mlp_only_layers");
  const MlpSpec mlp = read_mlp(r);
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    layer.mixer = a;
    const auto index = static_cast<std::int64_t>(i);
    bool is_dense = (index + 1) % step != 0;
    for (std::int64_t d : dense) is_dense |= d == index;
    if (is_dense)
      layer.ffn = mlp;
    else
      layer.ffn = moe;
    return layer;
  });
}

void read_gpt_oss(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  AttentionSpec a = read_grouped_attention(r, model);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = r.flag("attention_bias", true);
  a.sinks = true;
  r.ignore({"initial_context_length", "swiglu_limit"});
  check_activation(r, "hidden_act");
  MoeSpec moe;
  moe.experts = r.count("num_local_experts");
  moe.top_k = r.count_of({"num_experts_per_tok", "experts_per_token"});
  moe.intermediate = r.count("intermediate_size");
  moe.router_bias = moe.expert_bias = true;
  check_experts(r, moe, "num_experts_per_tok");
  const std::int64_t window = r.count("sliding_window");
  const std::vector<std::string> types = read_layer_types(r, {"full_attention", "sliding_attention"});
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    AttentionSpec mine = a;
    const bool slides = types.empty() ? i % 2 == 0 : types[i] == "sliding_attention";
    mine.window = slides ? window : 0;
    layer.mixer = mine;
    layer.ffn = moe;
    return layer;
  });
}

void read_llama4(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  AttentionSpec a = read_grouped_attention(r, model);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = r.flag("attention_bias", false);
  r.ignore({"attn_scale", "attn_temperature_tuning", "floor_scale", "no_rope_layer_interval"});
  if (r.flag("use_qk_norm", true)) a.qk_norm = QkNorm::kUnweighted;
  MoeSpec moe;
  moe.experts = r.count("num_local_experts");
  moe.top_k = r.count("num_experts_per_tok");
  moe.intermediate = moe.shared_intermediate = r.count("intermediate_size");
  check_experts(r, moe, "num_experts_per_tok");
  check_activation(r, "hidden_act");
  const MlpSpec mlp{r.count("intermediate_size_mlp"), true, false};
  const std::int64_t step = r.count("interleave_moe_layer_step", 1);
  const std::int64_t chunk = r.count("attention_chunk_size", 0);
  // Every fourth layer has no rotary embedding and sees everything; the others see their chunk.
  std::vector<std::int64_t> rope;
  if (r.has("no_rope_layers")) rope = r.counts("no_rope_layers");
  if (!rope.empty() && static_cast<std::int64_t>(rope.size()) < r.count("num_hidden_layers"))
    r.fail("no_rope_layers", fmt::format("{} entries", rope.size()), "none, or one a layer");
  r.ignore({"moe_layers", "layer_types"});
  if (r.has("moe_layers"))
    r.fail("moe_layers", r.shown("moe_layers"), "no list: interleave_moe_layer_step says which layers");
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    AttentionSpec mine = a;
    mine.rope = rope.empty() ? (i + 1) % 4 != 0 : rope[i] != 0;
    if (mine.rope) {
      mine.window = chunk;
      mine.chunked = chunk > 0;
    } else {
      mine.qk_norm = QkNorm::kNone;
    }
    layer.mixer = mine;
    if ((static_cast<std::int64_t>(i) + 1) % step == 0)
      layer.ffn = moe;
    else
      layer.ffn = mlp;
    return layer;
  });
}

void read_minimax_m2(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  AttentionSpec a = read_grouped_attention(r, model);
  r.ignore({"rotary_dim", "scoring_func", "attn_type_list"});
  if (r.flag("use_qk_norm", true)) {
    const std::string kind = r.text("qk_norm_type", "per_layer");
    if (kind != "per_layer") r.fail("qk_norm_type", r.shown("qk_norm_type"), "\"per_layer\"");
    a.qk_norm = QkNorm::kWhole;
  } else {
    r.ignore({"qk_norm_type"});
  }
  check_activation(r, "hidden_act");
  MoeSpec moe;
  moe.experts = r.count("num_local_experts");
  moe.top_k = r.count("num_experts_per_tok");
  moe.intermediate = r.count("intermediate_size");
  moe.shared_intermediate = r.count_or_zero("shared_intermediate_size", 0);
  moe.correction_bias = r.flag("use_routing_bias", false);
  check_experts(r, moe, "num_experts_per_tok");
  const std::int64_t modules = r.count_or_zero("num_mtp_modules", 0);
  const std::int64_t per_module = r.count_or_zero("mtp_transformer_layers", 1);
  if (r.flag("use_mtp", false)) model.mtp_layers = modules * per_module;
  make_layers(r, model, [&](std::size_t) {
    LayerSpec layer;
    layer.mixer = a;
    layer.ffn = moe;
    return layer;
  });
}

void read_mimo_v2(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  const std::int64_t layers = r.count("num_hidden_layers");
  AttentionSpec full = read_grouped_attention(r, model);
  full.v_head_dim = r.count("v_head_dim", full.head_dim);
  full.q_bias = full.k_bias = full.v_bias = r.flag("attention_bias", false);
  full.sinks = r.flag("add_full_attention_sink_bias", false);
  AttentionSpec slides = full;
  slides.heads = r.count("swa_num_attention_heads");
  slides.kv_heads = r.count("swa_num_key_value_heads");
  slides.head_dim = r.count("swa_head_dim");
  slides.v_head_dim = r.count("swa_v_head_dim", slides.head_dim);
  slides.window = r.count_of({"sliding_window", "sliding_window_size"});
  slides.sinks = r.flag("add_swa_attention_sink_bias", false);
  r.ignore({"swa_rope_theta", "partial_rotary_factor", "attention_value_scale", "attention_chunk_size",
            "norm_topk_prob", "scoring_func", "n_group", "topk_group", "topk_method",
            "routed_scaling_factor"});
  MoeSpec moe;
  moe.experts = r.count("n_routed_experts");
  moe.top_k = r.count("num_experts_per_tok");
  moe.intermediate = r.count("moe_intermediate_size");
  moe.correction_bias = r.text("topk_method", "") == "noaux_tc";
  moe.shared_intermediate = r.count_or_zero("n_shared_experts", 0) * moe.intermediate;
  check_experts(r, moe, "num_experts_per_tok");
  const MlpSpec mlp = read_mlp(r);
  const std::vector<std::int64_t> pattern = r.counts("hybrid_layer_pattern");
  const std::vector<std::int64_t> sparse = r.counts("moe_layer_freq");
  for (const auto& [key, list] :
       {std::pair{"hybrid_layer_pattern", pattern}, std::pair{"moe_layer_freq", sparse}})
    if (static_cast<std::int64_t>(list.size()) != layers)
      r.fail(key, fmt::format("{} entries", list.size()), fmt::format("one a layer: {}", layers));
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    layer.mixer = pattern[i] == 1 ? slides : full;
    if (sparse[i] != 0)
      layer.ffn = moe;
    else
      layer.ffn = mlp;
    return layer;
  });
}

void read_step3(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  if (r.has("attention_other_setting"))
    r.fail("attention_other_setting", r.shown("attention_other_setting"),
           "one attention geometry for all layers");
  AttentionSpec a = read_grouped_attention(r, model);
  a.qk_norm = QkNorm::kPerHead;
  a.head_gate = r.flag("use_head_wise_attn_gate", false);
  r.ignore({"scoring_func", "moe_router_scaling_factor"});
  const std::int64_t window = r.count("sliding_window");
  const std::vector<std::string> types = read_layer_types(r, {"full_attention", "sliding_attention"});
  if (types.empty()) r.fail("layer_types", "nothing", "a type a layer");
  MoeSpec moe;
  moe.experts = r.count("num_experts");
  moe.top_k = r.count("num_experts_per_tok");
  moe.intermediate = r.count("moe_intermediate_size");
  moe.correction_bias = r.flag("use_moe_router_bias", false);
  moe.shared_intermediate = r.count("n_shared_experts", 1) * r.count("share_expert_dim");
  check_experts(r, moe, "num_experts_per_tok");
  const MlpSpec mlp{r.count("intermediate_size"), true, false};
  const std::int64_t dense = r.count_or_zero("first_k_dense_replace", 0);
  model.mtp_layers = r.count_or_zero("num_nextn_predict_layers", 0);
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    AttentionSpec mine = a;
    mine.window = types[i] == "sliding_attention" ? window : 0;
    layer.mixer = mine;
    if (static_cast<std::int64_t>(i) < dense)
      layer.ffn = mlp;
    else
      layer.ffn = moe;
    return layer;
  });
}

}  // namespace hyperoffload
