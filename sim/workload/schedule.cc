#include "sim/workload/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"

namespace hyperoffload {

std::vector<PassStep> pipeline_schedule(Schedule schedule, int pp, int pp_rank, int chunks, int microbatches,
                                        const std::string& where) {
  const int total = microbatches * chunks;
  if (chunks > 1 && microbatches % pp != 0)
    throw InputError(where, fmt::format("{} micro-batches", microbatches),
                     fmt::format("a multiple of pp = {}, for an interleaved schedule", pp));
  // The k-th forward (or backward) pass: chunks in turn, pp micro-batches of each at a time.
  const auto nth = [&](int k, bool backward) {
    if (chunks == 1) return PassStep{backward, k, 0};
    const int chunk = k / pp % chunks;
    return PassStep{backward, k / (pp * chunks) * pp + k % pp, backward ? chunks - 1 - chunk : chunk};
  };
  int warm_up = total;
  if (schedule == Schedule::k1F1B) {
    warm_up = chunks == 1 ? pp - pp_rank - 1 : (pp - pp_rank - 1) * 2 + (chunks - 1) * pp;
    if (chunks > 1 && microbatches == pp) warm_up = total;
    warm_up = std::min(warm_up, total);
  }
  std::vector<PassStep> steps;
  for (int k = 0; k < warm_up; ++k) steps.push_back(nth(k, false));
  for (int k = warm_up; k < total; ++k) {
    steps.push_back(nth(k, false));
    steps.push_back(nth(k - warm_up, true));
  }
  for (int k = total - warm_up; k < total; ++k) steps.push_back(nth(k, true));
  return steps;
}

}  // namespace hyperoffload
