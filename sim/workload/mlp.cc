// The dense feed-forward part.
#include "sim/workload/program_builder.h"

namespace hyperoffload {

int mlp_kernels(ProgramBuilder& b, const MlpSpec& mlp, int in) {
  const ProgramContext& c = b.context;
  const std::int64_t tokens = c.pass.tokens();
  const std::int64_t width = even_share(mlp.intermediate, c.place.tp, c.place.tp_rank).count();
  std::vector<std::string> up;
  if (mlp.gated) up.push_back("gate_proj");
  up.push_back("up_proj");
  const int wide = b.activation("gate_up", tokens * width * static_cast<std::int64_t>(up.size()));
  b.matmul("gate_up", "gate_up", tokens, in, {wide}, up);
  const int active = b.activation("act", tokens * width);
  b.kernel("act", "act", {wide}, {active});
  const int out = b.activation("mlp_out", tokens * c.model.hidden);
  b.matmul("down", "down", tokens, active, {out}, {"down_proj"});
  return out;
}

}  // namespace hyperoffload
