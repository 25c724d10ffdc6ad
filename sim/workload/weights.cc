#include "sim/workload/weights.h"

#include <fmt/format.h>

#include <algorithm>

namespace hyperoffload {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

class Lister {
 public:
  explicit Lister(const ModelConfig& model) : model_(model) {}

  // A linear layer from `in` to `out` features, its bias beside it.
  void linear(const std::string& name, const std::string& kernel, std::int64_t out, std::int64_t in,
              Split split, std::int64_t units, bool bias, bool shared_units = false) {
    WeightSpec w{name, kernel, {}, -1};
    w.parts.push_back({out, in, split, units, shared_units, true});
    if (bias)
      w.parts.push_back({out, 1, split == Split::kRows ? split : Split::kNone, units, shared_units, false});
    weights_.push_back(std::move(w));
  }
  void replicated(const std::string& name, const std::string& kernel, std::int64_t out, std::int64_t in,
                  bool bias) {
    linear(name, kernel, out, in, Split::kNone, 1, bias);
  }
  void vector(const std::string& name, const std::string& kernel, std::int64_t width,
              Split split = Split::kNone, std::int64_t units = 1) {
    weights_.push_back({name, kernel, {{width, 1, split, units, false, false}}, -1});
  }
  void norm(const std::string& name, std::int64_t width) {
    vector(name, "norm", width);
    if (model_.norm == NormKind::kLayer)
      weights_.back().parts.push_back({width, 1, Split::kNone, 1, false, false});
  }
  void add(WeightSpec weight) { weights_.push_back(std::move(weight)); }
  std::vector<WeightSpec> take() { return std::move(weights_); }

  void attention(const AttentionSpec& a);
  void mla(const MlaSpec& a);
  void compressed(const CompressedAttentionSpec& a);
  void mamba(const MambaSpec& m);
  void delta_net(const DeltaNetSpec& d);
  void mlp(const MlpSpec& m, const std::string& prefix, const std::string& kernel);
  void moe(const MoeSpec& m);

 private:
  const ModelConfig& model_;
  std::vector<WeightSpec> weights_;
};

void Lister::attention(const AttentionSpec& a) {
  const std::int64_t h = model_.hidden;
  const std::int64_t q_width = a.heads * a.head_dim * (a.output_gate ? 2 : 1);
  linear("q_proj", "qkv", q_width, h, Split::kRows, a.heads, a.q_bias);
  linear("k_proj", "qkv", a.kv_heads * a.head_dim, h, Split::kRows, a.kv_heads, a.k_bias, true);
  if (!a.k_eq_v)
    linear("v_proj", "qkv", a.kv_heads * a.v_head_dim, h, Split::kRows, a.kv_heads, a.v_bias, true);
  if (a.head_gate) linear("head_gate", "qkv", a.heads, h, Split::kRows, a.heads, false);
  if (a.qk_norm == QkNorm::kPerHead) {
    vector("q_norm", "qk_norm", a.head_dim);
    vector("k_norm", "qk_norm", a.head_dim);
  }
  if (a.qk_norm == QkNorm::kWhole) {
    vector("q_norm", "qk_norm", a.heads * a.head_dim, Split::kRows, a.heads);
    vector("k_norm", "qk_norm", a.kv_heads * a.head_dim, Split::kRows, a.kv_heads);
    weights_.back().parts.back().shared_units = true;
  }
  if (a.sinks) vector("sinks", "attention", a.heads, Split::kRows, a.heads);
  linear("o_proj", "out", h, a.heads * a.v_head_dim, Split::kCols, a.heads, a.out_bias);
}

void Lister::mla(const MlaSpec& a) {
  const std::int64_t h = model_.hidden;
  const std::int64_t qk = a.nope_dim + a.rope_dim;
  if (a.q_lora > 0) {
    replicated("q_a_proj", "q_a", a.q_lora, h, a.bias);
    vector("q_a_norm", "q_norm", a.q_lora);
    linear("q_b_proj", "q_b", a.heads * qk, a.q_lora, Split::kRows, a.heads, false);
  } else {
    linear("q_proj", "q_b", a.heads * qk, h, Split::kRows, a.heads, false);
  }
  replicated("kv_a_proj", "kv_a", a.kv_lora + a.rope_dim, h, a.bias);
  vector("kv_a_norm", "kv_norm", a.kv_lora);
  linear("kv_b_proj", "kv_b", a.heads * (a.nope_dim + a.v_dim), a.kv_lora, Split::kRows, a.heads, false);
  if (a.indexer) {
    replicated("indexer_q", "indexer_proj", a.indexer->heads * a.indexer->head_dim, a.q_lora, false);
    replicated("indexer_k", "indexer_proj", a.indexer->head_dim, h, false);
    vector("indexer_k_norm", "indexer_proj", a.indexer->head_dim);
    weights_.back().parts.push_back({a.indexer->head_dim, 1, Split::kNone, 1, false, false});
    replicated("indexer_weights", "indexer_proj", a.indexer->heads, h, false);
    weights_.back().parts.back().quantised = false;
  }
  linear("o_proj", "out", h, a.heads * a.v_dim, Split::kCols, a.heads, a.bias);
}

void Lister::compressed(const CompressedAttentionSpec& a) {
  const std::int64_t h = model_.hidden;
  replicated("q_a_proj", "q_a", a.q_lora, h, false);
  vector("q_a_norm", "q_norm", a.q_lora);
  linear("q_b_proj", "q_b", a.heads * a.head_dim, a.q_lora, Split::kRows, a.heads, false);
  replicated("kv_proj", "kv_a", a.head_dim, h, false);
  vector("kv_norm", "kv_norm", a.head_dim);
  const auto compressor = [&](const std::string& prefix, const std::string& kernel, std::int64_t width) {
    const std::int64_t wide = (a.overlapping ? 2 : 1) * width;
    replicated(prefix + "kv", kernel, wide, h, false);
    replicated(prefix + "gate", kernel, wide, h, false);
    WeightSpec bias{prefix + "position_bias", kernel, {{a.ratio, wide, Split::kNone, 1, false, false}}, -1};
    add(std::move(bias));
    vector(prefix + "norm", kernel, width);
  };
  if (a.ratio > 0) compressor("compressor_", "compress", a.head_dim);
  if (a.indexer) {
    compressor("indexer_", "indexer_proj", a.indexer->head_dim);
    replicated("indexer_q", "indexer_proj", a.indexer->heads * a.indexer->head_dim, a.q_lora, false);
    replicated("indexer_weights", "indexer_proj", a.indexer->heads, h, false);
    weights_.back().parts.back().quantised = false;
  }
  vector("sinks", "attention", a.heads, Split::kRows, a.heads);
  const std::int64_t group_width = a.heads * a.head_dim / a.o_groups;
  linear("o_a_proj", "out_a", a.o_groups * a.o_lora, group_width, Split::kRows, a.o_groups, false);
  linear("o_b_proj", "out", h, a.o_groups * a.o_lora, Split::kCols, a.o_groups, false);
}

// Heads are split, the groups they share follow them; one tensor holds both.
void Lister::mamba(const MambaSpec& m) {
  const std::int64_t h = model_.hidden;
  const auto by_head = [&](std::int64_t rows, std::int64_t cols, bool matrix) {
    return WeightPart{rows, cols, Split::kRows, m.heads, false, matrix};
  };
  const auto by_group = [&](std::int64_t cols, bool matrix) {
    return WeightPart{2 * m.group_width(), cols, Split::kRows, m.groups, true, matrix};
  };
  WeightSpec in{"in_proj", "ssm_in", {by_head(2 * m.inner() + m.heads, h, true), by_group(h, true)}, -1};
  if (m.proj_bias) {
    in.parts.push_back(by_head(2 * m.inner() + m.heads, 1, false));
    in.parts.push_back(by_group(1, false));
  }
  add(std::move(in));
  WeightSpec conv{"conv1d", "ssm_conv", {by_head(m.inner(), m.conv, false), by_group(m.conv, false)}, -1};
  if (m.conv_bias) {
    conv.parts.push_back(by_head(m.inner(), 1, false));
    conv.parts.push_back(by_group(1, false));
  }
  add(std::move(conv));
  vector("scan_params", "ssm_scan", 3 * m.heads, Split::kRows, m.heads);  // A, D and dt's bias
  vector("ssm_norm", "ssm_norm", m.inner(), Split::kRows, m.heads);
  linear("out_proj", "ssm_out", h, m.inner(), Split::kCols, m.heads, m.proj_bias);
}

void Lister::delta_net(const DeltaNetSpec& d) {
  const std::int64_t h = model_.hidden;
  const auto keys = [&](std::int64_t cols, bool matrix) {
    return WeightPart{2 * d.keys(), cols, Split::kRows, d.key_heads, false, matrix};
  };
  const auto values = [&](std::int64_t rows, std::int64_t cols, bool matrix) {
    return WeightPart{rows, cols, Split::kRows, d.value_heads, false, matrix};
  };
  add({"in_proj_qkvz", "ssm_in", {keys(h, true), values(2 * d.values(), h, true)}, -1});
  add({"in_proj_ba", "ssm_in", {values(2 * d.value_heads, h, true)}, -1});
  add({"conv1d", "ssm_conv", {keys(d.conv, false), values(d.values(), d.conv, false)}, -1});
  vector("scan_params", "ssm_scan", 2 * d.value_heads, Split::kRows, d.value_heads);  // A and dt's bias
  vector("ssm_norm", "ssm_norm", d.value_dim);
  linear("out_proj", "ssm_out", h, d.values(), Split::kCols, d.value_heads, false);
}

void Lister::mlp(const MlpSpec& m, const std::string& prefix, const std::string& kernel) {
  const std::int64_t h = model_.hidden;
  if (m.gated)
    linear(prefix + "gate_proj", kernel + "gate_up", m.intermediate, h, Split::kRows, m.intermediate, m.bias);
  linear(prefix + "up_proj", kernel + "gate_up", m.intermediate, h, Split::kRows, m.intermediate, m.bias);
  linear(prefix + "down_proj", kernel + "down", h, m.intermediate, Split::kCols, m.intermediate, m.bias);
}

void Lister::moe(const MoeSpec& m) {
  const std::int64_t h = model_.hidden;
  replicated("router", "router", m.experts, h, m.router_bias);
  weights_.back().parts.front().quantised = false;
  if (m.correction_bias) vector("router_correction", "router", m.experts);
  if (m.router_scales) vector("router_scales", "router", h + m.experts);
  if (m.dense) {
    mlp(*m.dense, "", "");
    for (const char* name : {"dense_out_norm", "expert_in_norm", "expert_out_norm"}) norm(name, h);
  }
  if (m.shared_intermediate > 0) {
    mlp({m.shared_intermediate, m.gated, false}, "shared_", "shared_");
    if (m.shared_gate) {
      replicated("shared_expert_gate", "shared_gate", 1, h, false);
      weights_.back().parts.front().quantised = false;
    }
  }
  WeightSpec expert{"", "experts", {}, 0};
  expert.parts.push_back({(m.gated ? 2 : 1) * m.intermediate, h, Split::kRows, m.intermediate, false, true});
  expert.parts.push_back({h, m.intermediate, Split::kCols, m.intermediate, false, true});
  if (m.expert_bias) {
    expert.parts.push_back(
        {(m.gated ? 2 : 1) * m.intermediate, 1, Split::kRows, m.intermediate, false, false});
    expert.parts.push_back({h, 1, Split::kNone, 1, false, false});
  }
  for (std::int64_t e = 0; e < m.experts; ++e) {
    expert.name = fmt::format("expert.{}", e);
    expert.expert = static_cast<int>(e);
    add(expert);
  }
}

// The mixing of parallel residual streams, before and behind one sub-layer.
void add_streams(Lister& list, const ModelConfig& model, const std::string& name) {
  const std::int64_t n = model.streams, wide = n * model.hidden;
  WeightSpec mix{name, "streams", {}, -1};
  mix.parts = {{(2 + n) * n, wide, Split::kNone, 1, false, false},
               {(2 + n) * n + 3, 1, Split::kNone, 1, false, false}};
  list.add(std::move(mix));
}

}  // namespace

std::vector<WeightSpec> embedding_weights(const ModelConfig& model) {
  Lister list(model);
  list.linear("embed_tokens", "embed", model.vocab, model.hidden, Split::kRows, model.vocab, false);
  if (model.learned_positions > 0)
    list.replicated("embed_positions", "embed", model.learned_positions, model.hidden, false);
  return list.take();
}

std::vector<WeightSpec> layer_weights(const ModelConfig& model, const LayerSpec& layer) {
  Lister list(model);
  const bool mixes = !std::holds_alternative<std::monostate>(layer.mixer);
  const bool feeds = !std::holds_alternative<std::monostate>(layer.ffn);
  if (mixes || layer.one_norm) list.norm("input_norm", model.hidden);
  if (mixes && model.streams > 0) add_streams(list, model, "mixer_streams");
  std::visit(Overloaded{[](std::monostate) {}, [&](const AttentionSpec& a) { list.attention(a); },
                        [&](const MlaSpec& a) { list.mla(a); },
                        [&](const CompressedAttentionSpec& a) { list.compressed(a); },
                        [&](const MambaSpec& m) { list.mamba(m); },
                        [&](const DeltaNetSpec& d) { list.delta_net(d); }},
             layer.mixer);
  if (mixes && layer.post_norms) list.norm("post_attn_norm", model.hidden);
  if (feeds && !layer.one_norm) list.norm("mlp_norm", model.hidden);
  if (feeds && model.streams > 0) add_streams(list, model, "mlp_streams");
  std::visit(Overloaded{[](std::monostate) {}, [&](const MlpSpec& m) { list.mlp(m, "", ""); },
                        [&](const MoeSpec& m) { list.moe(m); }},
             layer.ffn);
  if (feeds && layer.post_norms) list.norm("post_mlp_norm", model.hidden);
  if (layer.layer_scale) list.vector("layer_scale", "scale", 1);
  return list.take();
}

std::vector<WeightSpec> head_weights(const ModelConfig& model) {
  Lister list(model);
  if (model.streams > 0) {
    const std::int64_t n = model.streams;
    WeightSpec mix{"head_streams", "streams", {}, -1};
    mix.parts = {{n, n * model.hidden, Split::kNone, 1, false, false},
                 {n + 1, 1, Split::kNone, 1, false, false}};
    list.add(std::move(mix));
  }
  list.norm("final_norm", model.hidden);
  if (!model.tied_embeddings)
    list.linear("lm_head", "lm_head", model.vocab, model.hidden, Split::kRows, model.vocab,
                model.lm_head_bias);
  return list.take();
}

std::vector<WeightSpec> mtp_weights(const ModelConfig& model) {
  Lister list(model);
  for (const char* name : {"embedding_norm", "hidden_norm", "final_norm"}) list.norm(name, model.hidden);
  list.replicated("join_proj", "join", model.hidden, 2 * model.hidden, false);
  std::vector<WeightSpec> weights = list.take();
  weights.back().parts.front().quantised = false;
  for (WeightSpec& w : layer_weights(model, model.layers.back())) weights.push_back(std::move(w));
  return weights;
}

std::int64_t elements(const WeightSpec& weight) {
  std::int64_t sum = 0;
  for (const WeightPart& part : weight.parts) sum += part.rows * part.cols;
  return sum;
}

WeightSpec local_weight(const WeightSpec& weight, const RankPlace& place) {
  WeightSpec local = weight;
  const bool expert = weight.expert >= 0;
  const int parts = expert ? place.etp : place.tp;
  const int index = expert ? place.etp_rank : place.tp_rank;
  for (WeightPart& part : local.parts) {
    if (part.split == Split::kNone) continue;
    const Share share =
        part.shared_units ? shared_share(part.units, parts, index) : even_share(part.units, parts, index);
    std::int64_t& size = part.split == Split::kRows ? part.rows : part.cols;
    size = size / part.units * share.count();
    part.units = share.count();
  }
  return local;
}

Bytes weight_bytes(const WeightSpec& weight, DataType plain, DataType type, const QuantSpec* quant) {
  const bool kept = quant && std::find(quant->not_quantised.begin(), quant->not_quantised.end(),
                                       weight.kernel) != quant->not_quantised.end();
  const bool expert_type = quant && weight.expert >= 0 && quant->expert_type;
  Bytes sum;
  for (const WeightPart& part : weight.parts) {
    const std::int64_t count = part.rows * part.cols;
    if (!part.quantised || kept) {
      sum += bytes_of(count, plain);
    } else if (!quant) {
      sum += bytes_of(count, type);
    } else {
      std::int64_t rows = expert_type ? quant->expert_block_rows : quant->block_rows;
      std::int64_t cols = expert_type ? quant->expert_block_cols : quant->block_cols;
      if (rows == 0) rows = std::max<std::int64_t>(part.rows, 1);
      if (cols == 0) cols = std::max<std::int64_t>(part.cols, 1);
      const std::int64_t scales = ((part.rows + rows - 1) / rows) * ((part.cols + cols - 1) / cols);
      sum += bytes_of(count, expert_type ? *quant->expert_type : quant->type) +
             Bytes((scales * quant->scale_bits + 7) / 8);
    }
  }
  return sum;
}

}  // namespace hyperoffload
