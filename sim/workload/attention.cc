// Grouped-query attention (multi-head and multi-query are its two ends) and what its cache keeps.
#include <algorithm>

#include "sim/workload/program_builder.h"

namespace hyperoffload {

std::int64_t attended_pairs(std::int64_t new_tokens, std::int64_t cached, std::int64_t window, bool chunked) {
  // Sum over positions p = cached .. cached + new_tokens - 1 of the keys that p sees.
  const auto triangle = [](std::int64_t n) { return n * (n + 1) / 2; };  // 1 + 2 + ... + n
  const auto up_to = [&](std::int64_t positions) {                       // positions 0 .. positions - 1
    if (window <= 0) return triangle(positions);
    if (chunked) return positions / window * triangle(window) + triangle(positions % window);
    const std::int64_t rising = std::min(positions, window);
    return triangle(rising) + (positions - rising) * window;
  };
  return up_to(cached + new_tokens) - up_to(cached);
}

std::int64_t kept_tokens(std::int64_t capacity, const AttentionSpec& attention) {
  return attention.window > 0 ? std::min(capacity, attention.window) : capacity;
}

Bytes kv_bytes_per_token(const LayerSpec& layer, DataType type, const RankPlace& place) {
  if (const auto* a = std::get_if<AttentionSpec>(&layer.mixer)) {
    const std::int64_t heads = shared_share(a->kv_heads, place.tp, place.tp_rank).count();
    return bytes_of(heads * (a->head_dim + a->v_head_dim), type);
  }
  return Bytes(0);
}

Bytes state_bytes_per_sample(const LayerSpec&, DataType, const RankPlace&) { return Bytes(0); }

int attention_kernels(ProgramBuilder& b, const AttentionSpec& a, int in) {
  const ProgramContext& c = b.context;
  const Pass& pass = c.pass;
  const std::int64_t tokens = pass.tokens();
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const std::int64_t kv_heads = shared_share(a.kv_heads, c.place.tp, c.place.tp_rank).count();

  const int q = b.activation("q", tokens * heads * a.head_dim);
  const int k = b.activation("k", tokens * kv_heads * a.head_dim);
  const int v = b.activation("v", tokens * kv_heads * a.v_head_dim);
  b.matmul("qkv", "qkv", tokens, in, {q, k, v}, {"q_proj", "k_proj", "v_proj"});
  if (a.rope) b.kernel("rope", "rope", {q, k}, {q, k});

  // The cache: a whole prefill fills it and attends over what it has just computed; later tokens are
  // appended and attend over the cache.
  const std::int64_t seen = std::min(pass.cached + pass.new_tokens, kept_tokens(pass.capacity, a));
  const Bytes token_bytes = bytes_of(kv_heads * (a.head_dim + a.v_head_dim), c.spec.kv());
  const Bytes kept_new =
      Bytes(token_bytes.value * pass.sequences * std::min(pass.new_tokens, kept_tokens(pass.capacity, a)));
  const int cache = b.state("kv", Bytes(token_bytes.value * pass.sequences * kept_tokens(pass.capacity, a)));
  Kernel& append = b.kernel("kv_append", "kv_append", {k, v}, {});
  append.state_writes = {cache};
  if (pass.cached > 0) append.state_reads = {cache};
  append.hbm_bytes = b.bytes(k) + b.bytes(v) + kept_new;

  const double pairs = static_cast<double>(pass.sequences) *
                       static_cast<double>(attended_pairs(pass.new_tokens, pass.cached, a.window, a.chunked));
  const double flops = 2.0 * pairs * static_cast<double>(heads * (a.head_dim + a.v_head_dim));
  const int o = b.activation("attn", tokens * heads * a.v_head_dim);
  if (pass.cached > 0) {
    Kernel& core = b.kernel("attention", "attention", {q}, {o}, {}, flops);
    core.state_reads = {cache};
    core.hbm_bytes += Bytes(token_bytes.value * pass.sequences * seen);
  } else {
    b.kernel("attention", "attention", {q, k, v}, {o}, {}, flops);
  }
  const int out = b.activation("attn_out", tokens * c.model.hidden);
  b.matmul("out", "out", tokens, o, {out}, {"o_proj"});
  return out;
}

}  // namespace hyperoffload
