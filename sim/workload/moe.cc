// Mixture of experts: router, dispatch, experts, combine.
//
// Each rank routes its share of the tokens: of T tokens that all tp ranks hold, T * etp / tp, so that each
// token is routed once. Its k assignments a token go to the ranks that hold the experts (all-to-all over
// ep) and come back. Routing is balanced or random (see RoutingSpec): a rank's experts get T * etp / tp * k
// assignments when balanced. Every expert is one tensor; a pass that doesn't visit all of a rank's experts
// reads only those it visits, and they are known only after the router.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/model/error.h"
#include "sim/workload/program_builder.h"
#include "sim/workload/splitmix.h"

namespace hyperoffload {
namespace {

struct Visits {
  std::vector<std::int64_t> experts;  // of this rank, those visited; by index in the model
  std::int64_t assignments = 0;       // that they get together
};

constexpr std::int64_t kMostRandom = std::int64_t{1} << 24;  // draws a layer and pass

Visits random_visits(const ProgramContext& c, const MoeSpec& m, std::int64_t layer, std::int64_t tokens,
                     Share mine) {
  if (tokens * m.top_k > kMostRandom)
    throw InputError(c.spec.at("experts.routing"),
                     fmt::format("random with {} assignments a layer", tokens * m.top_k),
                     fmt::format("at most {}, or balanced", kMostRandom));
  std::map<std::int64_t, std::int64_t> counts;
  std::vector<std::int64_t> order(static_cast<std::size_t>(m.experts));
  for (std::int64_t e = 0; e < m.experts; ++e) order[static_cast<std::size_t>(e)] = e;
  SplitMix draw(c.spec.experts.seed, layer, c.pass.index);
  Visits v;
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t k = 0; k < m.top_k; ++k) {  // the first top_k of a shuffle: distinct
      const std::int64_t other = k + draw.below(m.experts - k);
      std::swap(order[static_cast<std::size_t>(k)], order[static_cast<std::size_t>(other)]);
      const std::int64_t e = order[static_cast<std::size_t>(k)];
      if (e >= mine.from && e < mine.to) ++counts[e];
    }
  for (const auto& [expert, count] : counts) {
    v.experts.push_back(expert);
    v.assignments += count;
  }
  return v;
}

Visits visits(const ProgramContext& c, const MoeSpec& m, std::int64_t layer, std::int64_t routed) {
  const Share mine = even_share(m.experts, c.place.ep, c.place.ep_rank);
  if (c.spec.experts.routing == Routing::kRandom)
    return random_visits(c, m, layer, routed * c.place.ep, mine);
  Visits v;
  v.assignments = routed * m.top_k;
  const std::int64_t visited = std::min(mine.count(), v.assignments);
  const std::int64_t first = (layer * m.top_k + c.pass.index * v.assignments) % mine.count();
  for (std::int64_t i = 0; i < visited; ++i) v.experts.push_back(mine.from + (first + i) % mine.count());
  std::sort(v.experts.begin(), v.experts.end());
  return v;
}

// The experts' three kernels over `assignments` rows.
int expert_kernels(ProgramBuilder& b, const MoeSpec& m, const Visits& v, int in, int router) {
  const ProgramContext& c = b.context;
  const std::int64_t rows = v.assignments;
  const std::int64_t width = even_share(m.intermediate, c.place.etp, c.place.etp_rank).count();
  const std::int64_t up = m.gated ? 2 : 1;
  std::vector<std::string> names;
  for (std::int64_t e : v.experts) names.push_back(fmt::format("expert.{}", e));
  const bool all = static_cast<std::int64_t>(v.experts.size()) ==
                   even_share(m.experts, c.place.ep, c.place.ep_rank).count();

  const int wide = b.activation("expert_wide", rows * width * up);
  const int active = b.activation("expert_active", rows * width);
  const int out = b.activation("expert_out", rows * c.model.hidden);
  // Of each expert's tensor, the part with the up (and gate) projection, then the one with the down
  // projection.
  const auto gemm = [&](const std::string& name, int from, int to, std::int64_t n, std::int64_t k,
                        std::int64_t share) {
    Kernel& kernel = b.kernel("experts", name, {from}, {to}, names, {from});
    Bytes weights = kernel.hbm_bytes - b.bytes(from) - b.bytes(to);
    const Bytes part = Bytes(weights.value / (up + 1) * share);
    kernel.hbm_bytes = b.bytes(from) + b.bytes(to) + part;
    kernel.weight_elements = kernel.weight_elements / (up + 1) * share;
    kernel.flops = kernel.input_grad_flops = kernel.weight_grad_flops =
        2.0 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k);
    kernel.backward = BackwardForm::kMatmul;
    if (!all) kernel.known_after = router;
  };
  gemm("experts_gate_up", in, wide, up * width, c.model.hidden, up);
  b.kernel("act", "experts_act", {wide}, {active}, {}, {wide});
  gemm("experts_down", active, out, c.model.hidden, width, 1);
  return out;
}

int shared_kernels(ProgramBuilder& b, const MoeSpec& m, int in) {
  int out = mlp_kernels(b, {m.shared_intermediate, m.gated, false}, "shared_", in);
  if (m.shared_gate) {
    const ProgramContext& c = b.context;
    const int gated = b.value("shared_gated", b.bytes(out));
    Kernel& k = b.kernel("gate", "shared_gate", {in, out}, {gated}, {"shared_expert_gate"}, {in, out});
    k.flops = 2.0 * static_cast<double>(c.tokens() * c.model.hidden);
    k.input_grad_flops = 2 * k.flops;
    out = gated;
  }
  return out;
}

}  // namespace

int moe_kernels(ProgramBuilder& b, const MoeSpec& m, std::int64_t layer, int resting, int residual) {
  const ProgramContext& c = b.context;
  const RankPlace& p = c.place;
  const std::int64_t hidden = c.model.hidden;
  const bool split_inside = p.etp == p.tp;  // experts are split like everything else
  const std::int64_t routed = split_inside ? c.tokens() : even_share(c.tokens(), p.tp, p.tp_rank).count();

  const bool need_whole = split_inside || m.shared_intermediate > 0 || m.dense;
  const int whole = need_whole ? b.enter_split("moe_in", resting) : resting;
  int in = split_inside ? whole : resting;
  if (m.dense) in = b.norm("expert_in_norm", residual, "expert_in_norm");
  if (!split_inside && !c.sequence_parallel() && p.tp > 1) {
    const int slice = b.activation("moe_slice", routed * hidden);
    Kernel& k = b.kernel("slice", "moe_slice", {in}, {slice});
    k.forward = false;
    k.backward_collective = Collective{"all-gather", b.bytes(in), "tp"};
    in = slice;
  }
  const int choice = b.value("routing", Bytes(8 * routed * m.top_k));  // an index and a weight each
  std::vector<std::string> router{"router"};
  if (m.correction_bias) router.push_back("router_correction");
  if (m.router_scales) router.push_back("router_scales");
  const int router_in = m.dense ? residual : in;
  b.matmul("router", "router", routed, router_in, {choice}, router);
  const int router_kernel = b.last_kernel();

  const Visits v = visits(c, m, layer, routed);
  const int sent = b.activation("dispatched", routed * m.top_k * hidden);
  b.kernel("dispatch", "dispatch", {in, choice}, {sent}, {}, {choice}).grads = {in};
  int arrived = sent;
  if (p.ep > 1) {
    arrived = b.activation("expert_in", v.assignments * hidden);
    b.collective("dispatch_all_to_all", sent, arrived, "all-to-all", "all-to-all", b.bytes(sent), "ep");
  }
  int back = expert_kernels(b, m, v, arrived, router_kernel);
  if (p.ep > 1) {
    const int home = b.activation("expert_home", routed * m.top_k * hidden);
    back = b.collective("combine_all_to_all", back, home, "all-to-all", "all-to-all", b.bytes(home), "ep");
  }
  int out = b.activation("moe_out", routed * hidden);
  b.kernel("combine", "combine", {back, choice}, {out}, {}, {back, choice});

  int beside = -1;
  if (m.shared_intermediate > 0) beside = shared_kernels(b, m, whole);
  if (m.dense) {
    int dense = mlp_kernels(b, *m.dense, "", whole);
    dense = b.leave_split("dense_out", dense);
    if (split_inside) out = b.leave_split("moe_out", out);
    dense = b.norm("dense_out_norm", dense, "dense_out_norm");
    out = b.norm("expert_out_norm", out, "expert_out_norm");
    return b.add("moe_sum", dense, out);
  }
  if (split_inside) {
    if (beside >= 0) out = b.add("moe_sum", out, beside);
    return b.leave_split("moe_out", out);
  }
  if (!c.sequence_parallel() && p.tp > 1) {
    const int gathered = b.activation("moe_gathered", c.tokens() * hidden);
    out = b.collective("moe_all_gather", out, gathered, "all-gather", "", b.bytes(gathered), "tp");
  }
  if (beside >= 0) out = b.add("moe_sum", out, b.leave_split("shared_out", beside));
  return out;
}

}  // namespace hyperoffload
