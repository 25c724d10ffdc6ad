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

// Scores every cached token and picks; returns the picked positions' value.
int pick(ProgramBuilder& b, const MlaSpec& a, const TokenGroup& group, const std::string& suffix,
         std::int64_t layer, const Latent& l) {
  const ProgramContext& c = b.context;
  const IndexerSpec& x = *a.indexer;
  GroupCache keys(b, group, ".index", bytes_of(x.head_dim, c.spec.kv()), group.capacity, layer, true);
  Kernel& append = b.kernel("kv_append", "index_append" + suffix, {l.index_k}, {});
  append.state_writes = keys.written();
  append.state_reads = keys.updated();
  append.hbm_bytes = b.group_bytes(l.index_k, group) + Bytes(keys.token_bytes().value * group.new_tokens);
  const std::int64_t k = std::min(x.top_k, keys.visible());
  const int picked = b.value("picked" + suffix, Bytes(4 * group.tokens() * k));
  std::vector<int> reads{l.index_q, l.index_weights};
  if (group.cached == 0) reads.push_back(l.index_k);
  Kernel& score = b.kernel("indexer", "indexer" + suffix, reads, {picked});
  const double pairs = static_cast<double>(group.sequences) *
                       static_cast<double>(attended_pairs(group.new_tokens, group.cached, 0, false));
  score.flops = 2.0 * pairs * static_cast<double>(x.heads * x.head_dim);
  score.hbm_bytes = b.group_bytes(l.index_q, group) + b.group_bytes(l.index_weights, group) + b.bytes(picked);
  if (group.cached == 0) {
    score.hbm_bytes += b.group_bytes(l.index_k, group);
  } else {
    score.state_reads = keys.read();
    score.hbm_bytes += Bytes(keys.token_bytes().value * keys.visible());
  }
  return picked;
}

// One group's attention and what it needs.
struct Job {
  const MlaSpec& a;
  const TokenGroup& group;
  const std::string& suffix;
  const Latent& l;
  int latent;  // compressed keys and values of all context-parallel ranks
  int o;       // the result; other groups write their own part of it
  std::int64_t top_k = 0;
  double pairs = 0;
  int picked = -1, picker = -1;  // value, and the kernel that makes it

  std::vector<int> with_shared(std::vector<int> reads) const {
    if (!suffix.empty()) reads.push_back(o);
    return reads;
  }
};

void attend_absorbed(ProgramBuilder& b, const Job& job, const GroupCache& cache) {
  const ProgramContext& c = b.context;
  const MlaSpec& a = job.a;
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const std::int64_t width = a.kv_lora + a.rope_dim, rows = job.group.tokens();
  // Of the up-projection, the keys' part goes to the query, the values' to the result.
  const std::int64_t up = b.weight_bytes("kv_b_proj").value / (a.nope_dim + a.v_dim);
  const int q_lat = b.activation("q_absorbed" + job.suffix, rows * heads * width);
  const int o_lat = b.activation("o_latent" + job.suffix, rows * heads * a.kv_lora);
  Kernel& absorb = b.kernel("absorb_q", "absorb_q" + job.suffix, {job.l.q}, {q_lat}, {"kv_b_proj"});
  absorb.flops = 2.0 * static_cast<double>(rows * heads * a.nope_dim * a.kv_lora);
  absorb.hbm_bytes = b.group_bytes(job.l.q, job.group) + b.bytes(q_lat) + Bytes(up * a.nope_dim);
  std::vector<int> reads{q_lat};
  if (job.picked >= 0) reads.push_back(job.picked);
  Kernel& core = b.kernel("attention", "attention" + job.suffix, reads, {o_lat});
  core.flops = 2.0 * job.pairs * static_cast<double>(heads * (width + a.kv_lora));
  core.state_reads = job.top_k > 0 ? cache.selected(job.top_k, c.spec.sparse, c.pass.index) : cache.read();
  const std::int64_t read = job.top_k > 0 ? std::min(job.top_k, cache.visible()) : cache.visible();
  core.hbm_bytes += Bytes(cache.token_bytes().value * read);
  if (job.top_k > 0) core.known_after = job.picker;
  Kernel& back =
      b.kernel("absorb_v", "absorb_v" + job.suffix, job.with_shared({o_lat}), {job.o}, {"kv_b_proj"});
  back.flops = 2.0 * static_cast<double>(rows * heads * a.kv_lora * a.v_dim);
  back.hbm_bytes = b.bytes(o_lat) + b.group_bytes(job.o, job.group) + Bytes(up * a.v_dim);
}

// The new tokens, and those cached before them, as keys and values a head.
void attend_expanded(ProgramBuilder& b, const Job& job, const GroupCache& cache) {
  const ProgramContext& c = b.context;
  const MlaSpec& a = job.a;
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const bool from_cache = job.group.cached > 0;
  const std::int64_t rows = job.group.sequences * (job.group.cached + job.group.new_tokens);
  const int kv = b.activation("kv_expanded" + job.suffix, rows * heads * (a.nope_dim + a.v_dim));
  Kernel& expand = b.matmul("kv_b", "kv_b" + job.suffix, rows, job.latent, {kv}, {"kv_b_proj"});
  expand.hbm_bytes = b.bytes(kv) + b.weight_bytes("kv_b_proj");
  if (from_cache) {
    expand.reads.clear();
    expand.state_reads = cache.read();
    expand.hbm_bytes += Bytes(cache.token_bytes().value * cache.visible());
  } else {
    expand.hbm_bytes += b.group_bytes(job.latent, job.group);
  }
  std::vector<int> reads{job.l.q, kv};
  if (!from_cache) reads.push_back(job.latent);
  if (job.picked >= 0) reads.push_back(job.picked);
  Kernel& core = b.kernel("attention", "attention" + job.suffix, job.with_shared(reads), {job.o});
  core.flops = 2.0 * job.pairs * static_cast<double>(heads * (a.nope_dim + a.rope_dim + a.v_dim));
  core.hbm_bytes = b.group_bytes(job.l.q, job.group) + b.bytes(kv) +
                   bytes_of(rows * a.rope_dim, c.spec.dtype) + b.group_bytes(job.o, job.group) +
                   (job.picked >= 0 ? b.bytes(job.picked) : Bytes(0));
  if (from_cache) core.state_reads = cache.read();
}

void attend(ProgramBuilder& b, Job job, std::int64_t layer) {
  const ProgramContext& c = b.context;
  const TokenGroup& group = job.group;
  const TokenGroup mine = own_tokens(group, c.place);
  GroupCache cache(b, mine, "", bytes_of(job.a.kv_lora + job.a.rope_dim, c.spec.kv()), mine.capacity, layer);
  Kernel& append = b.kernel("kv_append", "kv_append" + job.suffix, {job.l.kv}, {});
  append.state_writes = cache.written();
  append.state_reads = cache.updated();
  append.hbm_bytes = b.group_bytes(job.l.kv, group) + Bytes(cache.token_bytes().value * mine.new_tokens);

  if (job.a.indexer) job.picked = pick(b, job.a, group, job.suffix, layer, job.l);
  job.picker = b.last_kernel();
  const std::int64_t asked = group.new_tokens == 1 ? c.spec.sparse.top_k : 0;
  job.top_k = asked > 0 ? asked : job.a.indexer ? job.a.indexer->top_k : 0;
  job.pairs = static_cast<double>(group.sequences) / static_cast<double>(c.place.cp) *
              static_cast<double>(job.top_k > 0 ? selected_pairs(group.new_tokens, group.cached, job.top_k)
                                                : attended_pairs(group.new_tokens, group.cached, 0, false));
  if (group.new_tokens == 1 && group.cached > 0)
    attend_absorbed(b, job, cache);
  else
    attend_expanded(b, job, cache);
}

void train(ProgramBuilder& b, const MlaSpec& a, const Latent& l, int latent, int o) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.tokens(), cp = c.place.cp;
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
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
  int latent = l.kv;
  if (c.place.cp > 1) {
    latent = b.value("kv_all", Bytes(b.bytes(l.kv).value * c.place.cp));
    b.collective("kv_all_gather", l.kv, latent, "all-gather", "reduce-scatter", b.bytes(latent), "cp");
  }
  if (c.pass.training()) train(b, a, l, latent, o);
  for (std::size_t g = 0; !c.pass.training() && g < c.pass.groups.size(); ++g) {
    const std::string suffix = g == 0 ? "" : fmt::format(".{}", g);
    attend(b, {a, c.pass.groups[g], suffix, l, latent, o}, layer);
  }
  const int out = b.activation("attn_out", tokens * c.model.hidden);
  b.matmul("out", "out", tokens, o, {out}, {"o_proj"});
  return b.leave_split("attn_out", out);
}

}  // namespace hyperoffload
