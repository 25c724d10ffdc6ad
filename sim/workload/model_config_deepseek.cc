// Latent attention with experts: DeepSeek-V2 to V4, Kimi-K2, GLM-5.
#include <fmt/format.h>

#include "sim/workload/model_families.h"

namespace hyperoffload {
namespace {

MoeSpec read_deepseek_moe(ConfigReader& r) {
  r.ignore(
      {"norm_topk_prob", "n_group", "topk_group", "routed_scaling_factor", "scoring_func", "moe_layer_freq"});
  MoeSpec moe;
  moe.experts = r.count_of({"n_routed_experts", "num_routed_experts"});
  moe.top_k = r.count("num_experts_per_tok");
  if (moe.top_k > moe.experts)
    r.fail("num_experts_per_tok", std::to_string(moe.top_k),
           fmt::format("at most the number of experts, {}", moe.experts));
  moe.intermediate = r.count("moe_intermediate_size");
  const std::int64_t shared = r.has("num_shared_experts") ? r.count_or_zero("num_shared_experts", 0)
                                                          : r.count_or_zero("n_shared_experts", 0);
  moe.shared_intermediate = shared * moe.intermediate;
  const std::string method = r.text("topk_method", "greedy");
  moe.correction_bias = method == "noaux_tc";
  if (method != "noaux_tc" && method != "greedy" && method != "group_limited_greedy")
    r.fail("topk_method", r.shown("topk_method"), "noaux_tc, greedy or group_limited_greedy");
  return moe;
}

std::optional<IndexerSpec> read_indexer(ConfigReader& r) {
  if (!r.has("index_topk")) return std::nullopt;
  return IndexerSpec{r.count("index_n_heads"), r.count("index_head_dim"), r.count("index_topk")};
}

}  // namespace

void read_deepseek(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  MlaSpec a;
  a.heads = r.count("num_attention_heads");
  r.ignore({"num_key_value_heads", "head_dim", "qk_head_dim", "indexer_rope_interleave"});
  a.q_lora = r.count("q_lora_rank", 0);
  a.kv_lora = r.count("kv_lora_rank");
  a.nope_dim = r.count("qk_nope_head_dim");
  a.rope_dim = r.count("qk_rope_head_dim");
  a.v_dim = r.count("v_head_dim");
  a.bias = r.flag("attention_bias", false);
  a.indexer = read_indexer(r);
  if (a.indexer && a.q_lora == 0)
    r.fail("q_lora_rank", r.shown("q_lora_rank"), "a rank: the indexer reads it");
  r.only("indexer_types", {});  // layers that share an indexer
  r.only("moe_layer_freq", {"1"});
  const MoeSpec moe = read_deepseek_moe(r);
  const MlpSpec mlp = read_mlp(r);
  const std::int64_t dense = r.count_or_zero("first_k_dense_replace", 0);
  model.mtp_layers = r.count_or_zero("num_nextn_predict_layers", 0);
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    layer.mixer = a;
    if (static_cast<std::int64_t>(i) < dense)
      layer.ffn = mlp;
    else
      layer.ffn = moe;
    return layer;
  });
}

void read_deepseek_v4(ConfigReader& r, ModelConfig& model) {
  read_sizes(r, model);
  model.streams = r.count("hc_mult");
  r.ignore({"hc_eps", "hc_sinkhorn_iters", "swiglu_limit", "compress_rope_theta"});
  CompressedAttentionSpec a;
  a.heads = r.count("num_attention_heads");
  r.only("num_key_value_heads", {"1"});
  a.head_dim = r.count("head_dim");
  a.rope_dim = r.count("qk_rope_head_dim");
  a.q_lora = r.count("q_lora_rank");
  a.o_groups = r.count("o_groups");
  a.o_lora = r.count("o_lora_rank");
  a.window = r.count("sliding_window");
  r.only("attention_bias", {"false"});
  if (a.heads % a.o_groups != 0)
    r.fail("o_groups", std::to_string(a.o_groups), "a divisor of num_attention_heads");
  const std::optional<IndexerSpec> indexer = read_indexer(r);
  check_activation(r, "hidden_act");
  const MoeSpec moe = read_deepseek_moe(r);
  const std::int64_t hashed = r.count_or_zero("num_hash_layers", 0);
  model.mtp_layers = r.count_or_zero("num_nextn_predict_layers", 0);
  const std::vector<std::int64_t> ratios = r.counts("compress_ratios");
  const std::int64_t layers = r.count("num_hidden_layers");
  if (static_cast<std::int64_t>(ratios.size()) < layers)
    r.fail("compress_ratios", fmt::format("{} entries", ratios.size()),
           fmt::format("one a layer: {}", layers));
  make_layers(r, model, [&](std::size_t i) {
    LayerSpec layer;
    CompressedAttentionSpec mine = a;
    mine.ratio = ratios[i];
    // The short ratio goes with overlapping windows and the indexer, the long one with neither.
    mine.overlapping = mine.ratio > 0 && mine.ratio <= 4;
    if (mine.overlapping) mine.indexer = indexer;
    layer.mixer = mine;
    MoeSpec experts = moe;
    if (static_cast<std::int64_t>(i) < hashed) {
      experts.hashed = true;
      experts.correction_bias = false;
    }
    layer.ffn = experts;
    return layer;
  });
}

}  // namespace hyperoffload
