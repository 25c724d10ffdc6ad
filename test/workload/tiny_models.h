// Small models of each kind, for tests that go through many combinations.
#pragma once

#include <string>
#include <vector>

namespace hyperoffload {

// 4 layers, hidden 16, 8 heads of 4 over 4 KV heads, intermediate 24, vocabulary 30.
inline std::string small_llama(const std::string& more = "") {
  return R"({"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 8, "head_dim": 4,
    "num_key_value_heads": 4, "intermediate_size": 24, "vocab_size": 30, "max_position_embeddings": 4096,
    "hidden_act": "silu")" +
         more + "}";
}

// The same attention with 8 experts, 2 a token, width 12.
inline std::string small_moe() {
  return R"({"model_type": "qwen3_moe", "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 8, "head_dim": 4,
    "num_key_value_heads": 4, "intermediate_size": 24, "moe_intermediate_size": 12, "num_experts": 8,
    "num_experts_per_tok": 2, "vocab_size": 30, "max_position_embeddings": 4096, "hidden_act": "silu",
    "tie_word_embeddings": false})";
}

// Latent attention, one dense layer, then a shared and 8 routed experts with correction biases.
inline std::string small_deepseek() {
  return R"({"model_type": "deepseek_v3", "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 8, "q_lora_rank": 12, "kv_lora_rank": 6, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2,
    "v_head_dim": 4, "intermediate_size": 24, "moe_intermediate_size": 12, "n_routed_experts": 8, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "first_k_dense_replace": 1, "topk_method": "noaux_tc", "vocab_size": 30,
    "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": false})";
}

// Mamba-2, experts, attention, dense.
inline std::string small_nemotron() {
  return R"({"model_type": "nemotron_h", "hidden_size": 16, "num_hidden_layers": 4, "hybrid_override_pattern": "ME*-",
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 4, "mamba_num_heads": 8, "mamba_head_dim": 4,
    "ssm_state_size": 6, "n_groups": 4, "conv_kernel": 4, "chunk_size": 4, "use_conv_bias": true, "intermediate_size": 24,
    "mlp_hidden_act": "relu2", "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 12,
    "n_shared_experts": 1, "moe_shared_expert_intermediate_size": 16, "vocab_size": 30, "max_position_embeddings": 4096,
    "tie_word_embeddings": false})";
}

// Gated delta rule and gated attention, a gated shared expert.
inline std::string small_qwen_next() {
  return R"({"model_type": "qwen3_next", "hidden_size": 16, "num_hidden_layers": 4, "full_attention_interval": 2,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 4, "linear_num_key_heads": 4, "linear_num_value_heads": 8,
    "linear_key_head_dim": 4, "linear_value_head_dim": 4, "linear_conv_kernel_dim": 4, "moe_intermediate_size": 12,
    "shared_expert_intermediate_size": 12, "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 30,
    "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": false})";
}

// Compressed attention with residual streams: window alone, ratio 4 with an indexer, ratio 8.
inline std::string small_deepseek_v4() {
  return R"({"model_type": "deepseek_v4", "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 1, "head_dim": 8, "qk_rope_head_dim": 2, "q_lora_rank": 12, "o_groups": 2, "o_lora_rank": 6,
    "sliding_window": 5, "compress_ratios": [0, 4, 8], "index_n_heads": 2, "index_head_dim": 6, "index_topk": 3, "hc_mult": 4,
    "moe_intermediate_size": 12, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "topk_method": "noaux_tc", "vocab_size": 30, "max_position_embeddings": 4096, "hidden_act": "silu",
    "tie_word_embeddings": false})";
}

}  // namespace hyperoffload
