#include "sim/workload/program.h"

#include <algorithm>

#include "sim/workload/program_builder.h"

namespace hyperoffload {
namespace {

// Several residual streams: mixed into one before a sub-layer, and its result spread over them behind it.
int collapse(ProgramBuilder& b, const std::string& name, int streams, std::vector<int>& mixing) {
  const ProgramContext& c = b.context;
  const std::int64_t n = c.model.streams, rows = c.resting_tokens();
  const int one = b.activation(name + ".collapsed", rows * c.model.hidden);
  const int how = b.value(name + ".mixing", Bytes(4 * rows * (n + n * n)));
  Kernel& k = b.kernel("streams", name + ".collapse", {streams}, {one, how}, {name}, {streams});
  k.flops = 2.0 * static_cast<double>(rows * (2 + n) * n * n * c.model.hidden);
  k.input_grad_flops = 2 * k.flops;
  mixing = {streams, how};
  return one;
}

int expand(ProgramBuilder& b, const std::string& name, const std::vector<int>& mixing, int block_out) {
  const ProgramContext& c = b.context;
  const std::int64_t n = c.model.streams, rows = c.resting_tokens();
  const int out = b.value(name + ".expanded", b.bytes(mixing[0]));
  Kernel& k = b.kernel("streams", name + ".expand", {mixing[0], mixing[1], block_out}, {out}, {},
                       {mixing[0], mixing[1], block_out});
  k.flops = 2.0 * static_cast<double>(rows * n * n * c.model.hidden);
  k.input_grad_flops = 2 * k.flops;
  return out;
}

int mixer_kernels(ProgramBuilder& b, const Mixer& mixer, std::int64_t layer, int in) {
  if (const auto* a = std::get_if<AttentionSpec>(&mixer)) return attention_kernels(b, *a, layer, in);
  if (const auto* a = std::get_if<MlaSpec>(&mixer)) return mla_kernels(b, *a, layer, in);
  if (const auto* a = std::get_if<CompressedAttentionSpec>(&mixer))
    return compressed_attention_kernels(b, *a, layer, in);
  if (const auto* m = std::get_if<MambaSpec>(&mixer)) return mamba_kernels(b, *m, in);
  return delta_net_kernels(b, std::get<DeltaNetSpec>(mixer), in);
}

int ffn_kernels(ProgramBuilder& b, const FeedForward& ffn, std::int64_t layer, int in, int residual) {
  if (const auto* moe = std::get_if<MoeSpec>(&ffn)) return moe_kernels(b, *moe, layer, in, residual);
  const int out = mlp_kernels(b, std::get<MlpSpec>(ffn), "", b.enter_split("mlp_in", in));
  return b.leave_split("mlp_out", out);
}

}  // namespace

Program embedding_program(const ProgramContext& c, std::shared_ptr<const PartWeights> weights) {
  ProgramBuilder b(c, std::move(weights));
  const std::int64_t tokens = c.tokens();
  const int ids = b.value("tokens", Bytes(4 * tokens));
  const int h = b.activation("embedded", tokens * c.model.hidden);
  std::vector<std::string> tables{"embed_tokens"};
  if (c.model.learned_positions > 0) tables.push_back("embed_positions");
  Kernel& k = b.kernel("embed", "embed", {ids}, {h}, tables, {ids});
  k.grads = {};
  k.rows_of_table = true;
  k.weight_elements =
      tokens * c.model.hidden * static_cast<std::int64_t>(tables.size());  // of the tables, these rows
  k.hbm_bytes = b.bytes(ids) + b.bytes(h) + bytes_of(k.weight_elements, c.spec.dtype);
  int out = b.leave_split("embed", h);
  if (c.model.streams > 0) {  // every stream starts as the embedding
    const int streams = b.activation("streams", c.resting_tokens() * c.resting_width());
    b.kernel("streams", "spread", {out}, {streams});
    out = streams;
  }
  return b.finish(ids, out);
}

int layer_kernels(ProgramBuilder& b, const LayerSpec& layer, std::int64_t index, int h) {
  const bool streams = b.context.model.streams > 0;
  std::vector<int> mixing;
  int normed = -1;
  if (!std::holds_alternative<std::monostate>(layer.mixer)) {
    normed = b.norm("input_norm", streams ? collapse(b, "mixer_streams", h, mixing) : h, "input_norm");
    int out = mixer_kernels(b, layer.mixer, index, normed);
    if (layer.post_norms) out = b.norm("post_attn_norm", out, "post_attn_norm");
    h = streams ? expand(b, "mixer_streams", mixing, out) : b.add("mixer_add", h, out);
  }
  if (!std::holds_alternative<std::monostate>(layer.ffn)) {
    if (!layer.one_norm)
      normed = b.norm("mlp_norm", streams ? collapse(b, "mlp_streams", h, mixing) : h, "mlp_norm");
    int out = ffn_kernels(b, layer.ffn, index, normed, h);
    if (layer.post_norms) out = b.norm("post_mlp_norm", out, "post_mlp_norm");
    h = streams ? expand(b, "mlp_streams", mixing, out) : b.add("mlp_add", h, out);
  }
  if (layer.layer_scale) {
    const int scaled = b.value("scaled", b.bytes(h));
    b.kernel("scale", "scale", {h}, {scaled}, {"layer_scale"}, {h});
    h = scaled;
  }
  return h;
}

Program layer_program(const ProgramContext& c, const LayerSpec& layer, std::int64_t index,
                      std::shared_ptr<const PartWeights> weights) {
  ProgramBuilder b(c, std::move(weights));
  const int input = b.activation("hidden_in", c.resting_tokens() * c.resting_width());
  return b.finish(input, layer_kernels(b, layer, index, input));
}

bool depends_on_layer(const ProgramContext& c, const LayerSpec& layer) {
  if (c.spec.kv_block > 0 && !c.pass.training()) return true;
  const auto* moe = std::get_if<MoeSpec>(&layer.ffn);
  if (!moe) return false;
  const std::int64_t routed =
      c.place.etp == c.place.tp ? c.tokens() : even_share(c.tokens(), c.place.tp, c.place.tp_rank).count();
  return c.spec.experts.routing == Routing::kRandom ||
         routed * moe->top_k < even_share(moe->experts, c.place.ep, c.place.ep_rank).count();
}

}  // namespace hyperoffload
