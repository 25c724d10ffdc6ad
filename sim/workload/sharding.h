// Who holds what: the place of one rank in the parallel job, and its share of anything that is split.
//
// Ranks are numbered tp fastest, then cp, dp, pp, as Megatron-LM does. Expert parallelism takes its ranks
// from tp x cp x dp of one pipeline stage: among those, etp (tensor parallelism inside an expert) is
// fastest, then ep, and what is left holds copies. Splits are even: of n units over k ranks the first
// n mod k ranks hold one more. Key/value heads fewer than tp are held by several ranks each.
#pragma once

#include <cstdint>
#include <string>

namespace hyperoffload {

struct ParallelSpec {
  int tp = 1, pp = 1, dp = 1, ep = 1, cp = 1;
  int etp = 0;             // 0: tp where ep is 1, else 1
  bool sp = false;         // sequence parallel: what lies between tp regions is split over tp, too
  int virtual_stages = 1;  // pipeline chunks a rank (interleaved schedule)
  int rank = 0;            // whose trace is wanted
};

// Half-open range of the units (heads, rows, experts, layers) one rank holds.
struct Share {
  std::int64_t from = 0, to = 0;
  std::int64_t count() const { return to - from; }
};

// The `index`-th of `parts` even parts of `n` units.
constexpr Share even_share(std::int64_t n, int parts, int index) {
  const std::int64_t base = n / parts, more = n % parts;
  const std::int64_t from = base * index + (index < more ? index : more);
  return {from, from + base + (index < more ? 1 : 0)};
}

// Of `n` units of which fewer than `parts` may exist: then neighbouring ranks hold the same one.
constexpr Share shared_share(std::int64_t n, int parts, int index) {
  if (n >= parts) return even_share(n, parts, index);
  const std::int64_t unit = static_cast<std::int64_t>(index) * n / parts;
  return {unit, unit + 1};
}

struct RankPlace {
  int tp = 1, cp = 1, dp = 1, pp = 1, ep = 1, etp = 1, edp = 1;  // sizes
  int tp_rank = 0, cp_rank = 0, dp_rank = 0, pp_rank = 0, ep_rank = 0, etp_rank = 0, edp_rank = 0;
  int rank = 0, world = 1;
};

// InputError with `where` ("workload.yaml: parallel") if the numbers don't fit together.
RankPlace place_of(const ParallelSpec& parallel, const std::string& where);

}  // namespace hyperoffload
