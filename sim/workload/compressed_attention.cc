// DeepSeek-V4 attention (inference only). The cache holds the latest `window` tokens as they are, one
// compressed entry for every `ratio` tokens before, and the indexer's key of each entry. A query reads the
// window and the entries (those the indexer picks, where there is one). An entry is written when its
// tokens are complete; the few tokens waiting for that are not counted.
// Figures: https://github.com/huggingface/transformers, models/deepseek_v4.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/kv_cache.h"
#include "sim/workload/program_builder.h"

namespace hyperoffload {
namespace {

// Entries that query positions cached .. cached + new - 1 see: position p those of its complete windows,
// at most `top_k` (0: all).
std::int64_t entry_pairs(std::int64_t new_tokens, std::int64_t cached, std::int64_t ratio,
                         std::int64_t top_k) {
  const auto up_to = [&](std::int64_t positions) {  // sum over p < positions of min(top_k, (p + 1) / ratio)
    const std::int64_t full = positions / ratio;    // complete windows
    std::int64_t sum = 0;
    const std::int64_t rising = top_k > 0 ? std::min(full, top_k) : full;
    // Each count e < full is seen by `ratio` positions, the last one by what remains and itself.
    sum += ratio * rising * (rising - 1) / 2;
    if (rising < full) sum += ratio * (full - rising) * top_k;
    const std::int64_t now = top_k > 0 ? std::min(full, top_k) : full;
    sum += (positions - full * ratio + 1) * now;
    return full == 0 ? std::int64_t{0} : sum;
  };
  return up_to(cached + new_tokens) - up_to(cached);
}

// A cache of compressed entries, as a group whose tokens are entries.
TokenGroup entries_of(const TokenGroup& group, std::int64_t ratio) {
  TokenGroup e = group;
  e.cached = group.cached / ratio;
  e.new_tokens = (group.cached + group.new_tokens) / ratio - e.cached;
  e.capacity = std::max<std::int64_t>(group.capacity / ratio, 1);
  e.persistent = group.persistent / ratio;
  return e;
}

void attend(ProgramBuilder& b, const CompressedAttentionSpec& a, const TokenGroup& group,
            const std::string& suffix, std::int64_t layer, std::vector<int> q_kv, int index_q, int o) {
  const ProgramContext& c = b.context;
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const Bytes entry = bytes_of(a.head_dim, c.spec.kv());
  const std::int64_t kept = kept_tokens(group.capacity, a.window);
  GroupCache window(b, group, "", entry, kept, layer);
  Kernel& append = b.kernel("kv_append", "kv_append" + suffix, {q_kv[1]}, {});
  append.state_writes = window.written();
  append.state_reads = window.updated();
  append.hbm_bytes =
      b.group_bytes(q_kv[1], group) + Bytes(window.token_bytes().value * std::min(group.new_tokens, kept));

  double pairs =
      static_cast<double>(group.sequences * attended_pairs(group.new_tokens, group.cached, a.window, false));
  std::vector<int> reads{q_kv[0]};
  std::vector<int> states;
  Bytes traffic = b.group_bytes(q_kv[0], group) + b.group_bytes(o, group) + b.weight_bytes("sinks");
  if (group.cached > 0) {
    states = window.read();
    traffic += Bytes(window.token_bytes().value * window.visible());
  } else {
    reads.push_back(q_kv[1]);
    traffic += b.group_bytes(q_kv[1], group);
  }
  int picker = -1;
  if (a.ratio > 0) {
    const TokenGroup e = entries_of(group, a.ratio);
    GroupCache entries(b, e, ".entries", entry, e.capacity, layer);
    const std::int64_t there = e.cached + e.new_tokens;
    if (e.new_tokens > 0) {
      Kernel& pool = b.kernel("kv_append", "compress" + suffix, {q_kv[2]}, {},
                              {"compressor_position_bias", "compressor_norm"});
      pool.state_writes = entries.written();
      pool.state_reads = entries.updated();
      pool.hbm_bytes = b.group_bytes(q_kv[2], group) + Bytes(entries.token_bytes().value * e.new_tokens);
    }
    const std::int64_t top_k = a.indexer ? a.indexer->top_k : 0;
    if (a.indexer && there > 0) {
      GroupCache keys(b, e, ".index", bytes_of(a.indexer->head_dim, c.spec.kv()), e.capacity, layer, true);
      if (e.new_tokens > 0) {
        Kernel& index_append = b.kernel("kv_append", "index_append" + suffix, {q_kv[3]}, {},
                                        {"indexer_position_bias", "indexer_norm"});
        index_append.state_writes = keys.written();
        index_append.state_reads = keys.updated();
        index_append.hbm_bytes =
            b.group_bytes(q_kv[3], group) + Bytes(keys.token_bytes().value * e.new_tokens);
      }
      const int picked = b.value("picked" + suffix, Bytes(4 * group.tokens() * std::min(top_k, there)));
      Kernel& score = b.kernel("indexer", "indexer" + suffix, {index_q}, {picked});
      score.flops =
          2.0 *
          static_cast<double>(group.sequences * entry_pairs(group.new_tokens, group.cached, a.ratio, 0)) *
          static_cast<double>(a.indexer->heads * a.indexer->head_dim);
      score.state_reads = keys.read();
      score.hbm_bytes =
          b.group_bytes(index_q, group) + b.bytes(picked) + Bytes(keys.token_bytes().value * there);
      picker = b.last_kernel();
      reads.push_back(picked);
      traffic += b.bytes(picked);
    }
    if (there > 0) {
      pairs +=
          static_cast<double>(group.sequences * entry_pairs(group.new_tokens, group.cached, a.ratio, top_k));
      const bool sparse = group.new_tokens == 1 && top_k > 0;
      const std::vector<int> from =
          sparse ? entries.selected(top_k, c.spec.sparse, c.pass.index) : entries.read();
      states.insert(states.end(), from.begin(), from.end());
      traffic += Bytes(entries.token_bytes().value * (sparse ? std::min(top_k, there) : there));
    }
  }
  if (!suffix.empty()) reads.push_back(o);
  Kernel& core = b.kernel("attention", "attention" + suffix, reads, {o}, {"sinks"});
  core.flops = 4.0 * pairs * static_cast<double>(heads * a.head_dim);
  core.state_reads = states;
  core.hbm_bytes = traffic;
  core.known_after = picker;
}

}  // namespace

int compressed_attention_kernels(ProgramBuilder& b, const CompressedAttentionSpec& a, std::int64_t layer,
                                 int resting) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.tokens();
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const int in = b.enter_split("attn_in", resting);
  const int down = b.activation("q_latent", tokens * a.q_lora),
            q_in = b.value("q_latent_normed", b.bytes(down));
  const int q = b.activation("q", tokens * heads * a.head_dim);
  b.matmul("q_a", "q_a", tokens, in, {down}, {"q_a_proj"});
  b.kernel("norm", "q_norm", {down}, {q_in}, {"q_a_norm"}, {down});
  b.matmul("q_b", "q_b", tokens, q_in, {q}, {"q_b_proj"});
  b.kernel("qk_norm", "q_b_norm", {q}, {q});
  const int raw = b.activation("kv_raw", tokens * a.head_dim), kv = b.value("kv_new", b.bytes(raw));
  b.matmul("kv_a", "kv_a", tokens, in, {raw}, {"kv_proj"});
  b.kernel("norm", "kv_norm", {raw}, {kv}, {"kv_norm"}, {raw});
  Kernel& rope = b.kernel("rope", "rope", {q, kv}, {q, kv});
  rope.hbm_bytes = bytes_of(2 * tokens * (heads + 1) * a.rope_dim, c.spec.dtype);
  std::vector<int> q_kv{q, kv};
  int index_q = -1;
  const std::int64_t wide = a.overlapping ? 2 : 1;
  if (a.ratio > 0) {
    const int both = b.activation("to_compress", tokens * 2 * wide * a.head_dim);
    b.matmul("compress", "compressor_proj", tokens, in, {both}, {"compressor_kv", "compressor_gate"});
    q_kv.push_back(both);
  }
  if (a.indexer) {
    const int keys =
        b.activation("index_to_compress", tokens * (2 * wide * a.indexer->head_dim + a.indexer->heads));
    b.matmul("indexer_proj", "indexer_k", tokens, in, {keys},
             {"indexer_kv", "indexer_gate", "indexer_weights"});
    index_q = b.activation("index_q", tokens * a.indexer->heads * a.indexer->head_dim);
    b.matmul("indexer_proj", "indexer_q", tokens, q_in, {index_q}, {"indexer_q"});
    q_kv.push_back(keys);
  }
  const int o = b.activation("attn", tokens * heads * a.head_dim);
  for (std::size_t g = 0; g < c.pass.groups.size(); ++g) {
    const TokenGroup& group = c.pass.groups[g];
    attend(b, a, group, g == 0 ? "" : fmt::format(".{}", g), layer, q_kv, index_q, o);
  }
  Kernel& unrope = b.kernel("rope", "output_rope", {o}, {o});
  unrope.hbm_bytes = bytes_of(2 * tokens * heads * a.rope_dim, c.spec.dtype);
  const std::int64_t groups = even_share(a.o_groups, c.place.tp, c.place.tp_rank).count();
  const int low = b.activation("attn_low", tokens * groups * a.o_lora);
  b.matmul("out_a", "out_a", tokens, o, {low}, {"o_a_proj"});  // each group its own block of the matrix
  const int out = b.activation("attn_out", tokens * c.model.hidden);
  b.matmul("out", "out", tokens, low, {out}, {"o_b_proj"});
  return b.leave_split("attn_out", out);
}

}  // namespace hyperoffload
