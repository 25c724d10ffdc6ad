// Multi-head latent attention. The cache holds one compressed vector a token (and the indexer's key).
//
// Tokens that attend over themselves alone (training, a whole prefill) are expanded to keys and values a
// head; so are the cached ones in a later chunk of a prompt, again. A decode step doesn't expand: the
// up-projections are absorbed into the query and the output, and attention runs over the compressed
// vectors. With an indexer each query reads at most top_k tokens.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/kv_cache.h"
#include "sim/workload/program_builder.h"

namespace hyperoffload {
namespace {

struct Latent {
  int q, kv;  // queries a head; compressed keys and values with the shared rotary part
  int index_q, index_k, index_weights;  // of the indexer; -1: none
};

Latent project(ProgramBuilder& b, const MlaSpec& a, int in) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.tokens();
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  Latent l{b.activation("q", tokens * heads * (a.nope_dim + a.rope_dim)), -1, -1, -1, -1};
  int q_in = in;
  if (a.q_lora > 0) {
    const int down = b.activation("q_latent", tokens * a.q_lora);
    q_in = b.value("q_latent_normed", b.bytes(down));
    b.matmul("q_a", "q_a", tokens, in, {down}, {"q_a_proj"});
    b.kernel("norm", "q_norm", {down}, {q_in}, {"q_a_norm"}, {down});
    b.matmul("q_b", "q_b", tokens, q_in, {l.q}, {"q_b_proj"});
  } else {
    b.matmul("q_b", "q_b", tokens, in, {l.q}, {"q_proj"});
  }
  const int raw = b.activation("kv_latent", tokens * (a.kv_lora + a.rope_dim));
  l.kv = b.value("kv_latent_normed", b.bytes(raw));
  b.matmul("kv_a", "kv_a", tokens, in, {raw}, {"kv_a_proj"});
  b.kernel("norm", "kv_norm", {raw}, {l.kv}, {"kv_a_norm"}, {raw});
  Kernel& rope = b.kernel("rope", "rope", {l.q, l.kv}, {l.q, l.kv});
  rope.hbm_bytes = bytes_of(2 * tokens * (heads + 1) * a.rope_dim, c.spec.dtype);  // of each, the rotary part
  if (a.indexer) {
    l.index_q = b.activation("index_q", tokens * a.indexer->heads * a.indexer->head_dim);
    l.index_k = b.activation("index_k", tokens * a.indexer->head_dim);
    l.index_weights = b.activation("index_weights", tokens * a.indexer->heads);
    b.matmul("indexer_proj", "indexer_q", tokens, q_in, {l.index_q}, {"indexer_q"});
    b.matmul("indexer_proj", "indexer_k", tokens, in, {l.index_k, l.index_weights},
             {"indexer_k", "indexer_weights"});
    b.kernel("norm", "indexer_k_norm", {l.index_k}, {l.index_k}, {"indexer_k_norm"});
  }
  return l;
}

Bytes part_of(Bytes bytes, double share) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.value) * share));
}

// Scores every cached token and picks; returns the picked positions' value.
int pick(ProgramBuilder& b, const MlaSpec& a, const TokenGroup& group, const std::string& suffix,
         std::int64_t layer, const Latent& l, double share) {
  const ProgramContext& c = b.context;
  const IndexerSpec& x = *a.indexer;
  GroupCache keys(b, group, ".index", bytes_of(x.head_dim, c.spec.kv()), group.capacity, layer, true);
  Kernel& append = b.kernel("kv_append", "index_append" + suffix, {l.index_k}, {});
  append.state_writes = keys.written();
  append.state_reads = keys.updated();
  append.hbm_bytes = part_of(b.bytes(l.index_k), share) + Bytes(keys.token_bytes().value * group.new_tokens);
  const std::int64_t k = std::min(x.top_k, keys.visible());
  const int picked = b.value("picked" + suffix, Bytes(4 * group.tokens() * k));
  std::vector<int> reads{l.index_q, l.index_weights};
  if (group.cached == 0) reads.push_back(l.index_k);
  Kernel& score = b.kernel("indexer", "indexer" + suffix, reads, {picked});
  const double pairs = static_cast<double>(group.sequences) *
                       static_cast<double>(attended_pairs(group.new_tokens, group.cached, 0, false));
  score.flops = 2.0 * pairs * static_cast<double>(x.heads * x.head_dim);
  score.hbm_bytes = part_of(b.bytes(l.index_q) + b.bytes(l.index_weights), share) + b.bytes(picked);
  if (group.cached == 0) {
    score.hbm_bytes += part_of(b.bytes(l.index_k), share);
  } else {
    score.state_reads = keys.read();
    score.hbm_bytes += Bytes(keys.token_bytes().value * keys.visible());
  }
  return picked;
}

// Attention of one group: absorbed for single new tokens, expanded otherwise.
void attend(ProgramBuilder& b, const MlaSpec& a, const TokenGroup& group, const std::string& suffix,
            std::int64_t layer, const Latent& l, int o, double share) {
  const ProgramContext& c = b.context;
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const std::int64_t width = a.kv_lora + a.rope_dim;
  GroupCache cache(b, group, "", bytes_of(width, c.spec.kv()), group.capacity, layer);
  Kernel& append = b.kernel("kv_append", "kv_append" + suffix, {l.kv}, {});
  append.state_writes = cache.written();
  append.state_reads = cache.updated();
  append.hbm_bytes = part_of(b.bytes(l.kv), share) + Bytes(cache.token_bytes().value * group.new_tokens);

  const int picked = a.indexer ? pick(b, a, group, suffix, layer, l, share) : -1;
  const int picker = b.last_kernel();
  const std::int64_t asked = group.new_tokens == 1 ? c.spec.sparse.top_k : 0;
  const std::int64_t top_k = asked > 0 ? asked : a.indexer ? a.indexer->top_k : 0;
  const double pairs =
      static_cast<double>(group.sequences) *
      static_cast<double>(top_k > 0 ? selected_pairs(group.new_tokens, group.cached, top_k)
                                    : attended_pairs(group.new_tokens, group.cached, 0, false));
  const bool decode = group.new_tokens == 1 && group.cached > 0;
  const std::int64_t read = decode && top_k > 0 ? std::min(top_k, cache.visible()) : cache.visible();
  const Bytes up_k = part_of(b.weight_bytes("kv_b_proj"),
                             static_cast<double>(a.nope_dim) / static_cast<double>(a.nope_dim + a.v_dim));
  const Bytes up_v = b.weight_bytes("kv_b_proj") - up_k;
  const auto also = [&](std::vector<int> reads) {
    if (picked >= 0) reads.push_back(picked);
    if (!suffix.empty()) reads.push_back(o);
    return reads;
  };
  const Bytes extra = (picked >= 0 ? b.bytes(picked) : Bytes(0)) + part_of(b.bytes(o), share);

  if (decode) {
    const std::int64_t rows = group.tokens();
    const int q_lat = b.activation("q_absorbed" + suffix, rows * heads * width);
    const int o_lat = b.activation("o_latent" + suffix, rows * heads * a.kv_lora);
    Kernel& absorb = b.kernel("absorb_q", "absorb_q" + suffix, {l.q}, {q_lat}, {"kv_b_proj"});
    absorb.flops = 2.0 * static_cast<double>(rows * heads * a.nope_dim * a.kv_lora);
    absorb.hbm_bytes = part_of(b.bytes(l.q), share) + b.bytes(q_lat) + up_k;
    Kernel& core = b.kernel("attention", "attention" + suffix,
                            picked >= 0 ? std::vector<int>{q_lat, picked} : std::vector<int>{q_lat}, {o_lat});
    core.flops = 2.0 * pairs * static_cast<double>(heads * (width + a.kv_lora));
    core.state_reads = top_k > 0 ? cache.selected(top_k, c.spec.sparse, c.pass.index) : cache.read();
    core.hbm_bytes += Bytes(cache.token_bytes().value * read);
    if (picked >= 0) core.known_after = picker;
    Kernel& up =
        b.kernel("absorb_v", "absorb_v" + suffix,
                 !suffix.empty() ? std::vector<int>{o_lat, o} : std::vector<int>{o_lat}, {o}, {"kv_b_proj"});
    up.flops = 2.0 * static_cast<double>(rows * heads * a.kv_lora * a.v_dim);
    up.hbm_bytes = b.bytes(o_lat) + part_of(b.bytes(o), share) + up_v;
    return;
  }
  // Expanded: the new tokens, and those cached before them.
  const bool from_cache = group.cached > 0;
  const std::int64_t rows = group.sequences * (group.cached + group.new_tokens);
  const int kv = b.activation("kv_expanded" + suffix, rows * heads * (a.nope_dim + a.v_dim));
  Kernel& expand = b.matmul("kv_b", "kv_b" + suffix, rows, l.kv, {kv}, {"kv_b_proj"});
  expand.hbm_bytes = b.bytes(kv) + b.weight_bytes("kv_b_proj");
  if (from_cache) {
    expand.reads.clear();
    expand.state_reads = cache.read();
    expand.hbm_bytes += Bytes(cache.token_bytes().value * cache.visible());
  } else {
    expand.hbm_bytes += part_of(b.bytes(l.kv), share);
  }
  Kernel& core = b.kernel("attention", "attention" + suffix, also({l.q, kv, l.kv}), {o});
  core.flops = 2.0 * pairs * static_cast<double>(heads * (a.nope_dim + a.rope_dim + a.v_dim));
  core.hbm_bytes =
      part_of(b.bytes(l.q), share) + b.bytes(kv) + bytes_of(rows * a.rope_dim, c.spec.dtype) + extra;
  if (from_cache) core.state_reads = cache.read();
}

void train(ProgramBuilder& b, const MlaSpec& a, const Latent& l, int o) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.tokens(), cp = c.place.cp;
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  int latent = l.kv;
  if (cp > 1) {
    latent = b.value("kv_all", Bytes(b.bytes(l.kv).value * cp));
    b.collective("kv_all_gather", l.kv, latent, "all-gather", "reduce-scatter", b.bytes(latent), "cp");
  }
  const TokenGroup& group = c.pass.groups.front();
  const int kv = b.activation("kv_expanded", tokens * cp * heads * (a.nope_dim + a.v_dim));
  b.matmul("kv_b", "kv_b", tokens * cp, latent, {kv}, {"kv_b_proj"});
  const double pairs = static_cast<double>(group.sequences) *
                       static_cast<double>(attended_pairs(group.new_tokens, 0, 0, false)) /
                       static_cast<double>(cp);
  const int lse = b.value("attn_lse", Bytes(4 * tokens * heads));
  Kernel& core =
      b.kernel("attention", "attention", {l.q, kv, latent}, {o, lse}, {}, {l.q, kv, latent, o, lse});
  const std::int64_t qk = a.nope_dim + a.rope_dim;
  core.flops = 2.0 * pairs * static_cast<double>(heads * (qk + a.v_dim));
  core.input_grad_flops = 2.0 * pairs * static_cast<double>(heads * (3 * qk + 2 * a.v_dim));
}

}  // namespace

int mla_kernels(ProgramBuilder& b, const MlaSpec& a, std::int64_t layer, int resting) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.tokens();
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const int in = b.enter_split("attn_in", resting);
  const Latent l = project(b, a, in);
  const int o = b.activation("attn", tokens * heads * a.v_dim);
  if (c.pass.training()) {
    train(b, a, l, o);
  } else {
    for (std::size_t g = 0; g < c.pass.groups.size(); ++g) {
      const TokenGroup& group = c.pass.groups[g];
      attend(b, a, group, g == 0 ? "" : fmt::format(".{}", g), layer, l, o,
             static_cast<double>(group.tokens()) / static_cast<double>(c.pass.tokens()));
    }
  }
  const int out = b.activation("attn_out", tokens * c.model.hidden);
  b.matmul("out", "out", tokens, o, {out}, {"o_proj"});
  return b.leave_split("attn_out", out);
}

}  // namespace hyperoffload
