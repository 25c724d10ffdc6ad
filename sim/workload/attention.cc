// Grouped-query attention; multi-head and multi-query are its two ends.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/kv_cache.h"
#include "sim/workload/program_builder.h"

namespace hyperoffload {
namespace {

// What one group of tokens attends over: what it has just computed, or the cache.
void attend(ProgramBuilder& b, const AttentionSpec& a, const TokenGroup& group, const std::string& suffix,
            std::int64_t layer, const std::vector<int>& qkv, const std::vector<int>& all_kv, int o) {
  const ProgramContext& c = b.context;
  const std::int64_t cp = c.place.cp;
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const std::int64_t kv_heads = shared_share(a.kv_heads, c.place.tp, c.place.tp_rank).count();
  const Bytes token = bytes_of(kv_heads * (a.head_dim + a.v_head_dim), c.spec.kv());
  const TokenGroup mine = own_tokens(group, c.place);
  const std::int64_t kept = kept_tokens(mine.capacity, a.window);
  GroupCache cache(b, mine, "", token, kept, layer);

  Kernel& append = b.kernel("kv_append", "kv_append" + suffix, {qkv[1], qkv[2]}, {});
  append.state_writes = cache.written();
  append.state_reads = cache.updated();
  append.hbm_bytes = b.group_bytes(qkv[1], group) + b.group_bytes(qkv[2], group) +
                     Bytes(cache.token_bytes().value * std::min(mine.new_tokens, kept));
  const int append_kernel = b.last_kernel();

  const std::int64_t top_k = group.new_tokens == 1 && a.window == 0 ? c.spec.sparse.top_k : 0;
  const std::int64_t window = top_k > 0 ? top_k : a.window;
  const double pairs =
      static_cast<double>(group.sequences) *
      static_cast<double>(attended_pairs(group.new_tokens, group.cached, window, a.chunked)) /
      static_cast<double>(cp);
  const bool from_cache = group.cached > 0;
  std::vector<int> reads{qkv[0]};
  if (!from_cache) reads.insert(reads.end(), all_kv.begin(), all_kv.end());
  if (!suffix.empty()) reads.push_back(o);  // the groups before have written their part of it
  std::vector<std::string> weights;
  if (a.sinks) weights.push_back("sinks");
  Kernel& core = b.kernel("attention", "attention" + suffix, reads, {o}, weights);
  core.flops = 2.0 * pairs * static_cast<double>(heads * (a.head_dim + a.v_head_dim));
  core.hbm_bytes =
      b.group_bytes(qkv[0], group) + b.group_bytes(o, group) + (a.sinks ? b.weight_bytes("sinks") : Bytes(0));
  if (!from_cache) {
    for (int v : all_kv) core.hbm_bytes += b.group_bytes(v, group);
    return;
  }
  core.state_reads = top_k > 0 ? cache.selected(top_k, c.spec.sparse, c.pass.index) : cache.read();
  // Tokens at least one new query sees: all, or those of its window (its chunk) and the new ones.
  std::int64_t seen = group.cached + group.new_tokens;
  if (window > 0)
    seen =
        std::min(seen, a.chunked ? group.cached % window + group.new_tokens : window - 1 + group.new_tokens);
  core.hbm_bytes += Bytes(cache.token_bytes().value * seen);
  if (top_k > 0) core.known_after = append_kernel;  // which blocks: once queries and keys are there
}

// Keys and values of the tokens of all context-parallel ranks.
std::vector<int> gather_kv(ProgramBuilder& b, int k, int v) {
  const std::int64_t cp = b.context.place.cp;
  if (cp == 1) return {k, v};
  const int ka = b.value("k_all", Bytes(b.bytes(k).value * cp));
  const int va = b.value("v_all", Bytes(b.bytes(v).value * cp));
  Kernel& g = b.kernel("all-gather", "kv_all_gather", {k, v}, {ka, va});
  g.collective = Collective{"all-gather", b.bytes(ka) + b.bytes(va), "cp"};
  g.backward_collective = Collective{"reduce-scatter", b.bytes(ka) + b.bytes(va), "cp"};
  return {ka, va};
}

}  // namespace

int attention_kernels(ProgramBuilder& b, const AttentionSpec& a, std::int64_t layer, int resting) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.tokens();
  const std::int64_t heads = even_share(a.heads, c.place.tp, c.place.tp_rank).count();
  const std::int64_t kv_heads = shared_share(a.kv_heads, c.place.tp, c.place.tp_rank).count();
  const int in = b.enter_split("attn_in", resting);

  int q = b.activation("q", tokens * heads * a.head_dim);
  int k = b.activation("k", tokens * kv_heads * a.head_dim);
  int v = b.activation("v", tokens * kv_heads * a.v_head_dim);
  std::vector<int> outs{q, k};
  std::vector<std::string> weights{"q_proj", "k_proj"};
  if (!a.k_eq_v) {
    outs.push_back(v);
    weights.push_back("v_proj");
  }
  int gate = -1;
  if (a.output_gate) outs.push_back(gate = b.activation("gate", tokens * heads * a.head_dim));
  if (a.head_gate) {
    outs.push_back(gate = b.activation("gate", tokens * heads));
    weights.push_back("head_gate");
  }
  b.matmul("qkv", "qkv", tokens, in, outs, weights);
  if (a.k_eq_v) b.kernel("qk_norm", "v_norm", {k}, {v}, {}, {k});

  if (a.qk_norm != QkNorm::kNone) {
    const int qn = b.value("q_normed", b.bytes(q)), kn = b.value("k_normed", b.bytes(k));
    std::vector<std::string> norms;
    if (a.qk_norm != QkNorm::kUnweighted) norms = {"q_norm", "k_norm"};
    b.kernel("qk_norm", "qk_norm", {q, k}, {qn, kn}, norms, {q, k});
    q = qn;
    k = kn;
  }
  if (a.rope) b.kernel("rope", "rope", {q, k}, {q, k});

  const int o = b.activation("attn", tokens * heads * a.v_head_dim);
  const std::vector<int> all_kv = gather_kv(b, k, v);
  if (c.pass.training()) {
    const TokenGroup& group = c.pass.groups.front();
    const double pairs = static_cast<double>(group.sequences) *
                         static_cast<double>(attended_pairs(group.new_tokens, 0, a.window, a.chunked)) /
                         static_cast<double>(c.place.cp);
    const int lse = b.value("attn_lse", Bytes(4 * tokens * heads));
    std::vector<std::string> sinks;
    if (a.sinks) sinks.push_back("sinks");
    const std::vector<int> qkv{q, all_kv[0], all_kv[1]};
    Kernel& core =
        b.kernel("attention", "attention", qkv, {o, lse}, sinks, {q, all_kv[0], all_kv[1], o, lse});
    core.flops = 2.0 * pairs * static_cast<double>(heads * (a.head_dim + a.v_head_dim));
    // Flash attention's backward: the scores again, then the gradients of V, P, Q and K.
    core.input_grad_flops = 2.0 * pairs * static_cast<double>(heads * (3 * a.head_dim + 2 * a.v_head_dim));
  } else {
    for (std::size_t g = 0; g < c.pass.groups.size(); ++g)
      attend(b, a, c.pass.groups[g], g == 0 ? "" : fmt::format(".{}", g), layer, {q, k, v}, all_kv, o);
  }
  int before_out = o;
  if (gate >= 0) {
    before_out = b.value("attn_gated", b.bytes(o));
    b.kernel("gate", "attn_gate", {o, gate}, {before_out}, {}, {o, gate});
  }
  const int out = b.activation("attn_out", tokens * c.model.hidden);
  b.matmul("out", "out", tokens, before_out, {out}, {"o_proj"});
  return b.leave_split("attn_out", out);
}

}  // namespace hyperoffload
