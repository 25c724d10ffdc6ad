// The dense feed-forward part, and the shared experts, which are one.
#include "sim/workload/program_builder.h"

namespace hyperoffload {

int mlp_kernels(ProgramBuilder& b, const MlpSpec& mlp, const std::string& prefix, int in) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.tokens();
  const std::int64_t width = even_share(mlp.intermediate, c.place.tp, c.place.tp_rank).count();
  std::vector<std::string> up;
  if (mlp.gated) up.push_back(prefix + "gate_proj");
  up.push_back(prefix + "up_proj");
  const int wide = b.activation(prefix + "wide", tokens * width * static_cast<std::int64_t>(up.size()));
  b.matmul("gate_up", prefix + "gate_up", tokens, in, {wide}, up);
  const int active = b.activation(prefix + "active", tokens * width);
  b.kernel("act", prefix + "act", {wide}, {active}, {}, {wide});
  const int out = b.activation(prefix + "mlp_out", tokens * c.model.hidden);
  b.matmul("down", prefix + "down", tokens, active, {out}, {prefix + "down_proj"});
  return out;
}

}  // namespace hyperoffload
