// A model's architecture, as read from a HuggingFace config.json.
//
// Every family is brought to one form: a list of layers, each a token mixer (attention of some kind, a
// state-space block, or nothing) and a feed-forward part (dense, mixture of experts, or nothing). What
// follows (weights.h, the kernels) knows only this form. Counts are of the whole model, before any
// sharding. A key of the config that matters and isn't understood is an InputError naming it; keys that
// change neither a tensor's size nor an op's work (dropout, token ids, rope frequencies, ...) are listed
// by name in config_reader.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/workload/dtype.h"

namespace hyperoffload {

enum class NormKind { kRms, kLayer };  // kLayer has a bias beside its weight
enum class QkNorm { kNone, kUnweighted, kPerHead, kWhole };

// Multi-head, grouped-query and multi-query attention.
struct AttentionSpec {
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t head_dim = 0;    // of queries and keys
  std::int64_t v_head_dim = 0;  // of values
  std::int64_t window = 0;      // latest keys a query sees, itself included; 0: all
  bool chunked = false;         // `window` is a chunk: a query sees its own chunk only (Llama 4)
  bool q_bias = false, k_bias = false, v_bias = false, out_bias = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool output_gate = false;  // a gate as wide as the heads' output, from the query projection
  bool head_gate = false;    // one gate a head
  bool sinks = false;        // one learned logit a head
  bool k_eq_v = false;       // values come from the key projection
  bool rope = true;
  bool operator==(const AttentionSpec&) const = default;
};

// The indexer that picks which cached tokens attention reads (DeepSeek sparse attention).
struct IndexerSpec {
  std::int64_t heads = 0, head_dim = 0, top_k = 0;
  bool operator==(const IndexerSpec&) const = default;
};

// Multi-head latent attention: keys and values are kept as one compressed vector a token.
struct MlaSpec {
  std::int64_t heads = 0;
  std::int64_t q_lora = 0;  // 0: queries are projected directly
  std::int64_t kv_lora = 0;
  std::int64_t nope_dim = 0, rope_dim = 0, v_dim = 0;  // a head
  bool bias = false;                                   // of the down projections and the output
  std::optional<IndexerSpec> indexer;
  bool operator==(const MlaSpec&) const = default;
};

// DeepSeek-V4: one shared key/value head; the latest tokens as they are, all earlier ones compressed
// `ratio` to one, an indexer picking among those where there is one; grouped low-rank output.
struct CompressedAttentionSpec {
  std::int64_t heads = 0, head_dim = 0, rope_dim = 0;
  std::int64_t q_lora = 0, o_groups = 0, o_lora = 0;
  std::int64_t window = 0;
  std::int64_t ratio = 0;    // 0: the window alone
  bool overlapping = false;  // windows of two ratios, from two projections
  std::optional<IndexerSpec> indexer;
  bool operator==(const CompressedAttentionSpec&) const = default;
};

// Mamba-2 state-space block: a state of fixed size instead of a growing cache.
struct MambaSpec {
  std::int64_t heads = 0, head_dim = 0, state = 0, groups = 0, conv = 0;
  std::int64_t chunk = 0;  // tokens a step of the chunked scan
  bool conv_bias = false, proj_bias = false;
  std::optional<DataType> state_type;  // of the state, where the config says
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t group_width() const { return groups * state; }
  bool operator==(const MambaSpec&) const = default;
};

// Gated delta-rule linear attention (Qwen3-Next): fixed-size state, too.
struct DeltaNetSpec {
  std::int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0, conv = 0;
  std::optional<DataType> state_type;
  std::int64_t keys() const { return key_heads * key_dim; }
  std::int64_t values() const { return value_heads * value_dim; }
  bool operator==(const DeltaNetSpec&) const = default;
};

struct MlpSpec {
  std::int64_t intermediate = 0;
  bool gated = true;  // gate and up projection (SwiGLU, GeGLU), else one projection
  bool bias = false;
  bool operator==(const MlpSpec&) const = default;
};

struct MoeSpec {
  std::int64_t experts = 0, top_k = 0;
  std::int64_t intermediate = 0;  // of one routed expert
  bool gated = true;
  bool expert_bias = false;
  bool router_bias = false;              // a bias of the router's matrix
  bool correction_bias = false;          // one learned number an expert, added when experts are picked
  bool hashed = false;                   // experts are picked by token id, from a fixed table
  std::int64_t shared_intermediate = 0;  // all shared experts together; 0: none
  bool shared_gate = false;              // one learned gate row for the shared expert
  std::optional<MlpSpec> dense;          // a dense part that runs beside the experts (Gemma 4)
  bool router_scales = false;            // Gemma 4: a scale a channel and one an expert
  bool operator==(const MoeSpec&) const = default;
};

using Mixer =
    std::variant<std::monostate, AttentionSpec, MlaSpec, CompressedAttentionSpec, MambaSpec, DeltaNetSpec>;
using FeedForward = std::variant<std::monostate, MlpSpec, MoeSpec>;

struct LayerSpec {
  Mixer mixer;
  FeedForward ffn;
  bool post_norms = false;   // norms behind mixer and feed-forward part, too (Gemma)
  bool one_norm = false;     // mixer and feed-forward part share one norm and run side by side (Phi)
  bool layer_scale = false;  // one learned number a layer
  bool operator==(const LayerSpec&) const = default;
};

// How the published weights are stored, where the config says so.
struct QuantSpec {
  std::string method;  // as named in the config
  DataType type = DataType::kFp8;
  std::int64_t block_rows = 0;  // one scale per block_rows x block_cols elements; 0: the whole dimension
  std::int64_t block_cols = 0;
  int scale_bits = 32;                     // bits of one scale
  std::vector<std::string> not_quantised;  // kernels whose matrices stay in the model's type
  std::optional<DataType> expert_type;     // of routed experts, where it differs
  std::int64_t expert_block_rows = 0, expert_block_cols = 0;
};

struct ModelConfig {
  std::string name;        // the config file's name without ".json" or "_config.json"
  std::string source;      // the file it was read from
  std::string model_type;  // as published
  std::int64_t hidden = 0, vocab = 0, max_positions = 0;
  std::int64_t learned_positions = 0;  // rows of a learned position table (GPT-2); 0: none
  std::int64_t streams = 0;            // parallel residual streams (hyper-connections); 0: one, plain
  bool tied_embeddings = false;
  bool lm_head_bias = false;
  NormKind norm = NormKind::kRms;
  std::vector<LayerSpec> layers;
  std::int64_t mtp_layers = 0;    // multi-token-prediction layers, not part of the main model
  std::optional<DataType> dtype;  // torch_dtype, where given
  std::optional<QuantSpec> quant;
  std::string left_out;  // parts of the published model that are not modelled ("vision tower"), or empty
};

// Reads a config.json as published. InputError with the key's path.
ModelConfig load_model_config(const std::string& path);
ModelConfig parse_model_config(const std::string& text, const std::string& source);

}  // namespace hyperoffload
