#include "sim/model/check_pieces.h"

#include <algorithm>
#include <utility>

namespace hyperoffload {

bool range_is_bad(const Graph& graph, const Action& action) {
  const Bytes bytes = graph.tensor(action.tensor).bytes;
  if (bytes == Bytes(0)) return action.from != Bytes(0) || action.to != Bytes(0);
  return action.from < Bytes(0) || action.to > bytes || action.from >= action.to;
}

Pieces::Pieces(const Graph& graph, const Plan& plan) {
  std::vector<std::pair<TensorId, Bytes>> cuts;
  for (const Action& a : plan.actions) {
    if (range_is_bad(graph, a)) continue;
    if (a.from > Bytes(0)) cuts.emplace_back(a.tensor, a.from);
    if (a.to < graph.tensor(a.tensor).bytes) cuts.emplace_back(a.tensor, a.to);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  auto cut = cuts.begin();
  begin_.reserve(graph.tensors().size() + 1);
  all_.reserve(graph.tensors().size() + cuts.size());
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    begin_.push_back(all_.size());
    Bytes from(0);
    for (; cut != cuts.end() && cut->first == TensorId(t); from = cut++->second) {
      PlanPiece& piece = all_.emplace_back();
      piece.from = from;
      piece.to = cut->second;
    }
    PlanPiece& rest = all_.emplace_back();
    rest.from = from;
    rest.to = graph.tensors()[t].bytes;
  }
  begin_.push_back(all_.size());
}

std::vector<Bytes> Pieces::allocated(const Allocation& allocation) const {
  std::vector<Bytes> sums(begin_.size() - 1);
  for (std::size_t t = 0; t < sums.size(); ++t)
    for (const PlanPiece& piece : of(TensorId(t))) sums[t] += allocated_bytes(allocation, piece.bytes());
  return sums;
}

std::span<PlanPiece> Pieces::of(const Action& action) {
  const std::span<PlanPiece> whole = of(action.tensor);
  const auto first = std::lower_bound(whole.begin(), whole.end(), action.from,
                                      [](const PlanPiece& p, Bytes from) { return p.from < from; });
  const auto last =
      std::lower_bound(first, whole.end(), action.to, [](const PlanPiece& p, Bytes to) { return p.to < to; });
  return {first, last + 1};
}

}  // namespace hyperoffload
