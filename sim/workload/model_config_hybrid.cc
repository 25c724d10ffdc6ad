// State-space and linear-attention layers between attention layers.
#include <fmt/format.h>

#include "sim/workload/model_families.h"

namespace hyperoffload {

namespace {

// The type a recurrent state is kept in, where it is not that of the cache.
std::optional<DataType> read_state_type(ConfigReader& r, const std::string& key) {
  if (!r.has(key)) return std::nullopt;
  const std::string name = r.text(key);
  if (name == "float32") return DataType::kFp32;
  if (name == "bfloat16") return DataType::kBf16;
  if (name == "float16") return DataType::kFp16;
  r.fail(key, r.shown(key), "float32, bfloat16 or float16");
}

}  // namespace

// One letter a layer: M Mamba-2, * attention, - dense feed-forward, E experts. Each has one norm.
void read_nemotron_h(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  r.ignore({"expand", "mamba_hidden_act", "num_logits_to_keep", "rescale_prenorm_residual", "time_step_floor",
            "time_step_limit", "time_step_max", "time_step_min", "time_step_rank", "use_mamba_kernels",
            "norm_topk_prob", "n_group", "topk_group", "routed_scaling_factor", "partial_rotary_factor"});
  r.only("sliding_window", {});
  r.only("use_bias", {"false"});
  r.only("residual_in_fp32", {"false"});
  AttentionSpec a;
  a.heads = r.count("num_attention_heads");
  a.kv_heads = r.count("num_key_value_heads");
  a.head_dim = a.v_head_dim = r.count_of({"head_dim", "attention_head_dim"});
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = r.flag("attention_bias", false);
  a.rope = false;
  MambaSpec m;
  m.heads = r.count("mamba_num_heads");
  m.head_dim = r.count("mamba_head_dim");
  m.state = r.count("ssm_state_size");
  m.groups = r.count("n_groups");
  m.conv = r.count("conv_kernel");
  m.chunk = r.count("chunk_size");
  m.conv_bias = r.flag("use_conv_bias", true);
  m.proj_bias = r.flag("mamba_proj_bias", false);
  m.state_type = read_state_type(r, "mamba_ssm_cache_dtype");
  check_activation(r, "mlp_hidden_act");
  const MlpSpec mlp{r.count("intermediate_size"), false, r.flag("mlp_bias", false)};
  const std::string pattern = r.text("hybrid_override_pattern");
  MoeSpec moe;
  if (pattern.find('E') != std::string::npos) {
    moe.experts = r.count("n_routed_experts");
    moe.top_k = r.count("num_experts_per_tok");
    moe.intermediate = r.count("moe_intermediate_size");
    moe.shared_intermediate =
        r.count_or_zero("n_shared_experts", 0) * r.count_or_zero("moe_shared_expert_intermediate_size", 0);
    moe.gated = false;
    moe.correction_bias = true;
  } else {
    r.ignore({"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts",
              "moe_shared_expert_intermediate_size"});
  }
  const std::int64_t layers = r.count("num_hidden_layers");
  if (static_cast<std::int64_t>(pattern.size()) != layers)
    r.fail("hybrid_override_pattern", fmt::format("{} letters", pattern.size()),
           fmt::format("one a layer: {}", layers));
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    switch (pattern[i]) {
      case 'M':
        layer.mixer = m;
        break;
      case '*':
        layer.mixer = a;
        break;
      case '-':
        layer.ffn = mlp;
        break;
      case 'E':
        layer.ffn = moe;
        break;
      default:
        r.fail("hybrid_override_pattern", fmt::format("'{}'", pattern[i]), "M, *, - or E");
    }
    return layer;
  });
}

void read_qwen_next(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  AttentionSpec a = read_grouped_attention(r, model);
  a.q_bias = a.k_bias = a.v_bias = a.out_bias = r.flag("attention_bias", false);
  a.output_gate = r.flag("attn_output_gate", true);
  a.qk_norm = QkNorm::kPerHead;
  DeltaNetSpec d;
  d.key_heads = r.count("linear_num_key_heads");
  d.value_heads = r.count("linear_num_value_heads");
  d.key_dim = r.count("linear_key_head_dim");
  d.value_dim = r.count("linear_value_head_dim");
  d.conv = r.count("linear_conv_kernel_dim");
  d.state_type = read_state_type(r, "mamba_ssm_dtype");
  r.ignore({"partial_rotary_factor", "norm_topk_prob", "mtp_use_dedicated_embeddings"});
  r.only("use_sliding_window", {"false"});
  check_activation(r, "hidden_act");
  model.mtp_layers = r.count_or_zero("mtp_num_hidden_layers", 0);
  const std::int64_t interval = r.count("full_attention_interval", 4);
  const std::vector<std::string> types = read_layer_types(r, {"full_attention", "linear_attention"});
  std::vector<std::int64_t> dense;
  if (r.has("mlp_only_layers")) dense = r.counts("mlp_only_layers");
  const std::int64_t step = r.count("decoder_sparse_step", 1);
  std::optional<MoeSpec> moe;
  if (r.count_or_zero("num_experts", 0) > 0) {
    moe.emplace();
    moe->experts = r.count("num_experts");
    moe->top_k = r.count("num_experts_per_tok");
    moe->intermediate = r.count("moe_intermediate_size");
    moe->shared_intermediate = r.count_or_zero("shared_expert_intermediate_size", 0);
    moe->shared_gate = moe->shared_intermediate > 0;
  }
  const std::int64_t width = r.count("intermediate_size", 0);
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    const auto index = static_cast<std::int64_t>(i);
    const bool full = types.empty() ? (index + 1) % interval == 0 : types[i] == "full_attention";
    if (full)
      layer.mixer = a;
    else
      layer.mixer = d;
    bool is_dense = !moe || (index + 1) % step != 0;
    for (std::int64_t l : dense) is_dense |= l == index;
    if (!is_dense) {
      layer.ffn = *moe;
    } else {
      if (width == 0)
        r.fail("intermediate_size", r.shown("intermediate_size"), "the width of the dense layers");
      layer.ffn = MlpSpec{width, true, false};
    }
    return layer;
  });
}

}  // namespace hyperoffload
