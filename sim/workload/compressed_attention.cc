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

// What the attention kernel of one group reads, as it comes together.
struct Operands {
  std::vector<int> values, states;
  Bytes traffic;
  double pairs = 0;
  int picker = -1;  // the kernel that decides which entries are read
};

// A cache of entries, filled from `source`.
void append_entries(ProgramBuilder& b, const std::string& name, const std::string& weights,
                    const GroupCache& cache, const TokenGroup& group, const TokenGroup& entries, int source) {
  if (entries.new_tokens == 0) return;
  Kernel& k = b.kernel("kv_append", name, {source}, {}, {weights + "position_bias", weights + "norm"});
  k.state_writes = cache.written();
  k.state_reads = cache.updated();
  k.hbm_bytes = b.group_bytes(source, group) + Bytes(cache.token_bytes().value * entries.new_tokens);
}

void read_window(ProgramBuilder& b, const CompressedAttentionSpec& a, const TokenGroup& group,
                 const std::string& suffix, std::int64_t layer, int kv, Operands& operands) {
  const std::int64_t kept = kept_tokens(group.capacity, a.window);
  GroupCache window(b, group, "", bytes_of(a.head_dim, b.context.spec.kv()), kept, layer);
  Kernel& append = b.kernel("kv_append", "kv_append" + suffix, {kv}, {});
  append.state_writes = window.written();
  append.state_reads = window.updated();
  append.hbm_bytes =
      b.group_bytes(kv, group) + Bytes(window.token_bytes().value * std::min(group.new_tokens, kept));
  operands.pairs +=
      static_cast<double>(group.sequences * attended_pairs(group.new_tokens, group.cached, a.window, false));
  if (group.cached > 0) {
    operands.states = window.read();
    const std::int64_t seen = std::min(group.cached + group.new_tokens, a.window - 1 + group.new_tokens);
    operands.traffic += Bytes(window.token_bytes().value * seen);
  } else {
    operands.values.push_back(kv);
    operands.traffic += b.group_bytes(kv, group);
  }
}

// `sources`: what entries, and the indexer's keys, are made of.
void read_entries(ProgramBuilder& b, const CompressedAttentionSpec& a, const TokenGroup& group,
                  const std::string& suffix, std::int64_t layer, std::vector<int> sources, int index_q,
                  Operands& operands) {
  const ProgramContext& c = b.context;
  const TokenGroup e = entries_of(group, a.ratio);
  const std::int64_t there = e.cached + e.new_tokens;
  const std::int64_t top_k = a.indexer ? a.indexer->top_k : 0;
  GroupCache entries(b, e, ".entries", bytes_of(a.head_dim, c.spec.kv()), e.capacity, layer);
  append_entries(b, "compress" + suffix, "compressor_", entries, group, e, sources[0]);
  if (there == 0) return;
  if (a.indexer) {
    const std::int64_t width = a.indexer->head_dim;
    GroupCache keys(b, e, ".index", bytes_of(width, c.spec.kv()), e.capacity, layer, true);
    append_entries(b, "index_append" + suffix, "indexer_", keys, group, e, sources[1]);
    const int picked = b.value("picked" + suffix, Bytes(4 * group.tokens() * std::min(top_k, there)));
    Kernel& score = b.kernel("indexer", "indexer" + suffix, {index_q}, {picked});
    const std::int64_t all = group.sequences * entry_pairs(group.new_tokens, group.cached, a.ratio, 0);
    score.flops = 2.0 * static_cast<double>(all) * static_cast<double>(a.indexer->heads * width);
    score.state_reads = keys.read();
    score.hbm_bytes =
        b.group_bytes(index_q, group) + b.bytes(picked) + Bytes(keys.token_bytes().value * there);
    operands.picker = b.last_kernel();
    operands.values.push_back(picked);
    operands.traffic += b.bytes(picked);
  }
  operands.pairs +=
      static_cast<double>(group.sequences * entry_pairs(group.new_tokens, group.cached, a.ratio, top_k));
  const bool sparse = group.new_tokens == 1 && top_k > 0;
  const std::vector<int> from =
      sparse ? entries.selected(top_k, c.spec.sparse, c.pass.index) : entries.read();
  operands.states.insert(operands.states.end(), from.begin(), from.end());
  operands.traffic += Bytes(entries.token_bytes().value * (sparse ? std::min(top_k, there) : there));
}

void attend(ProgramBuilder& b, const CompressedAttentionSpec& a, const TokenGroup& group,
            const std::string& suffix, std::int64_t layer, const std::vector<int>& q_kv, int index_q, int o) {
  const std::int64_t heads = even_share(a.heads, b.context.place.tp, b.context.place.tp_rank).count();
  Operands operands;
  operands.values = {q_kv[0]};
  operands.traffic = b.group_bytes(q_kv[0], group) + b.group_bytes(o, group) + b.weight_bytes("sinks");
  read_window(b, a, group, suffix, layer, q_kv[1], operands);
  if (a.ratio > 0)
    read_entries(b, a, group, suffix, layer, {q_kv.begin() + 2, q_kv.end()}, index_q, operands);
  if (!suffix.empty()) operands.values.push_back(o);
  Kernel& core = b.kernel("attention", "attention" + suffix, operands.values, {o}, {"sinks"});
  core.flops = 4.0 * operands.pairs * static_cast<double>(heads * a.head_dim);
  core.state_reads = operands.states;
  core.hbm_bytes = operands.traffic;
  core.known_after = operands.picker;
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
