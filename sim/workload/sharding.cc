#include "sim/workload/sharding.h"

#include <fmt/format.h>

#include "sim/model/error.h"

namespace hyperoffload {
namespace {

void require_positive(const char* name, std::int64_t value, const std::string& where) {
  if (value < 1) throw InputError(where + "." + name, std::to_string(value), "a whole number, 1 or more");
}

}  // namespace

RankPlace place_of(const ParallelSpec& parallel, const std::string& where) {
  require_positive("tp", parallel.tp, where);
  require_positive("pp", parallel.pp, where);
  require_positive("dp", parallel.dp, where);
  require_positive("ep", parallel.ep, where);
  require_positive("cp", parallel.cp, where);
  require_positive("virtual_stages", parallel.virtual_stages, where);

  RankPlace p;
  p.tp = parallel.tp;
  p.cp = parallel.cp;
  p.dp = parallel.dp;
  p.pp = parallel.pp;
  p.ep = parallel.ep;
  p.etp = parallel.etp > 0 ? parallel.etp : parallel.ep == 1 ? parallel.tp : 1;
  if (p.etp != 1 && p.etp != p.tp)
    throw InputError(where + ".etp", std::to_string(p.etp), fmt::format("1 or tp = {}", p.tp));
  const std::int64_t experts = std::int64_t{p.ep} * p.etp;
  const std::int64_t model = std::int64_t{p.tp} * p.cp;
  std::int64_t stage = model * p.dp;
  // More expert ranks than the stage has: each further one is a data-parallel replica.
  if (experts > stage) {
    if (experts % model != 0)
      throw InputError(where + ".ep", std::to_string(p.ep),
                       fmt::format("ep x etp to be a multiple of tp x cp = {}", model));
    p.dp = static_cast<int>(experts / model);
    stage = experts;
  }
  if (stage % experts != 0)
    throw InputError(
        where + ".ep", std::to_string(p.ep),
        fmt::format("ep x etp = {} to divide tp x cp x dp = {}: expert ranks are taken from those", experts,
                    stage));
  p.edp = static_cast<int>(stage / experts);
  const std::int64_t world = stage * p.pp;
  if (world > 1'000'000) throw InputError(where, fmt::format("{} ranks", world), "at most 1000000");
  p.world = static_cast<int>(world);
  p.rank = parallel.rank;
  if (p.rank < 0 || p.rank >= p.world)
    throw InputError(where + ".rank", std::to_string(p.rank), fmt::format("0 to {}", p.world - 1));

  const int in_stage = p.rank % static_cast<int>(stage);
  p.pp_rank = p.rank / static_cast<int>(stage);
  p.tp_rank = in_stage % p.tp;
  p.cp_rank = in_stage / p.tp % p.cp;
  p.dp_rank = in_stage / (p.tp * p.cp);
  p.etp_rank = in_stage % p.etp;
  p.ep_rank = in_stage / p.etp % p.ep;
  p.edp_rank = in_stage / (p.etp * p.ep);
  return p;
}

}  // namespace hyperoffload
