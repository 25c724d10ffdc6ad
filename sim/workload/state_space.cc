// Mamba-2 and gated delta-rule layers: a state of fixed size instead of a cache.
//
// FLOPs of the scans, the matrix products only. Mamba-2, chunks of Q tokens (Dao and Gu 2024, section 6):
// C B^T per group, its product with X per head, and the states in and out of a chunk:
// 2 T (Q N G + H P (Q + 2 N)); one token at a time: 4 H P N. Delta rule, chunks of 64 (Yang et al. 2024):
// 2 T H (3 C dk + 2 C dv + 3 dk dv); one token at a time: 6 H dk dv.
#include <fmt/format.h>

#include <algorithm>

#include "sim/workload/kv_cache.h"
#include "sim/workload/program_builder.h"

namespace hyperoffload {
namespace {

constexpr std::int64_t kDeltaChunk = 64;  // tokens a chunk in the published kernels

struct Widths {
  std::int64_t in, conv, out;  // local channels of the projection, of the convolution, of the result
  Bytes conv_state, state;     // of one sample
  double flops_a_token_chunked, flops_a_token_single;
};

// The kernels both have: projection, causal convolution, scan, gated norm, output.
int recurrent_kernels(ProgramBuilder& b, const Widths& w, const std::vector<std::string>& in_weights,
                      int resting) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.tokens();
  const int in = b.enter_split("ssm_in", resting);
  const int x = b.activation("ssm_x", tokens * w.conv);
  const int gate = b.activation("ssm_gate", tokens * (w.in - w.conv));
  b.matmul("ssm_in", "ssm_in", tokens, in, {x, gate}, in_weights);
  const int mixed = b.activation("ssm_mixed", tokens * w.conv);
  const int y = b.activation("ssm_y", tokens * w.out);
  const bool train = c.pass.training();
  Kernel& conv = b.kernel("ssm_conv", "ssm_conv", {x}, {mixed}, {"conv1d"}, {x});
  if (!train)
    for (const TokenGroup& group : c.pass.groups) {
      const int state = b.state(group.cache + ".conv_state", Bytes(w.conv_state.value * group.sequences));
      conv.state_writes.push_back(state);
      if (group.cached > 0) conv.state_reads.push_back(state);
      conv.hbm_bytes += Bytes(w.conv_state.value * group.sequences * (group.cached > 0 ? 2 : 1));
    }
  Kernel& scan = b.kernel("ssm_scan", "ssm_scan", {mixed, gate}, {y}, {"scan_params"}, {mixed, gate});
  for (const TokenGroup& group : c.pass.groups) {
    const double rows = static_cast<double>(group.tokens());
    scan.flops += rows * (group.new_tokens == 1 ? w.flops_a_token_single : w.flops_a_token_chunked);
    if (train) continue;
    const int state = b.state(group.cache + ".ssm_state", Bytes(w.state.value * group.sequences));
    scan.state_writes.push_back(state);
    if (group.cached > 0) scan.state_reads.push_back(state);
    scan.hbm_bytes += Bytes(w.state.value * group.sequences * (group.cached > 0 ? 2 : 1));
  }
  scan.input_grad_flops = 2 * scan.flops;
  const int normed = b.value("ssm_normed", b.bytes(y));
  b.kernel("norm", "ssm_norm", {y, gate}, {normed}, {"ssm_norm"}, {y, gate});
  const int out = b.activation("ssm_out", tokens * c.model.hidden);
  b.matmul("ssm_out", "ssm_out", tokens, normed, {out}, {"out_proj"});
  return b.leave_split("ssm_out", out);
}

}  // namespace

int mamba_kernels(ProgramBuilder& b, const MambaSpec& m, int in) {
  const ProgramContext& c = b.context;
  const std::int64_t heads = even_share(m.heads, c.place.tp, c.place.tp_rank).count();
  const std::int64_t groups = shared_share(m.groups, c.place.tp, c.place.tp_rank).count();
  const std::int64_t inner = heads * m.head_dim;
  Widths w;
  w.conv = inner + 2 * groups * m.state;
  w.in = inner + w.conv + heads;
  w.out = inner;
  w.state = bytes_of(inner * m.state, m.state_type.value_or(c.spec.kv()));
  w.conv_state = bytes_of(w.conv * (m.conv - 1), c.spec.kv());
  w.flops_a_token_chunked =
      2.0 * static_cast<double>(m.chunk * m.state * groups + inner * (m.chunk + 2 * m.state));
  w.flops_a_token_single = 4.0 * static_cast<double>(inner * m.state);
  return recurrent_kernels(b, w, {"in_proj"}, in);
}

int delta_net_kernels(ProgramBuilder& b, const DeltaNetSpec& d, int in) {
  const ProgramContext& c = b.context;
  const std::int64_t keys = even_share(d.key_heads, c.place.tp, c.place.tp_rank).count() * d.key_dim;
  const std::int64_t heads = even_share(d.value_heads, c.place.tp, c.place.tp_rank).count();
  const std::int64_t values = heads * d.value_dim;
  Widths w;
  w.conv = 2 * keys + values;
  w.in = w.conv + values + 2 * heads;
  w.out = values;
  w.state = bytes_of(heads * d.key_dim * d.value_dim, d.state_type.value_or(c.spec.kv()));
  w.conv_state = bytes_of(w.conv * (d.conv - 1), c.spec.kv());
  const std::int64_t chunk = kDeltaChunk;
  w.flops_a_token_chunked =
      2.0 * static_cast<double>(
                heads * (3 * chunk * d.key_dim + 2 * chunk * d.value_dim + 3 * d.key_dim * d.value_dim));
  w.flops_a_token_single = 6.0 * static_cast<double>(heads * d.key_dim * d.value_dim);
  return recurrent_kernels(b, w, {"in_proj_qkvz", "in_proj_ba"}, in);
}

}  // namespace hyperoffload
