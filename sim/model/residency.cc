#include "sim/model/residency.h"

#include "sim/model/plan_body.h"

namespace hyperoffload {

Residency::Residency(const Graph& graph, const Plan& plan, ResidencyListener& listener)
    : graph_(graph), plan_(plan), listener_(listener) {
  const Pieces pieces(graph, plan);
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    first_.push_back(static_cast<int>(residents_.size()));
    for (const PlanPiece& p : pieces.of(TensorId(t))) {
      Resident& resident = residents_.emplace_back();
      resident.tensor = TensorId(t);
      resident.from = p.from;
      resident.to = p.to;
    }
  }
  first_.push_back(static_cast<int>(residents_.size()));
  for (const Op& op : graph.ops()) residents_.emplace_back().to = op.workspace;
  here_.resize(residents_.size());
}

void Residency::take(int piece, Resident source) {
  Resident& resident = residents_[static_cast<std::size_t>(piece)];
  if (here(piece) || resident.from == resident.to) return;
  source.tensor = resident.tensor;
  source.from = resident.from;
  source.to = resident.to;
  source.piece = piece;
  resident = source;
  here_[static_cast<std::size_t>(piece)] = 1;
  listener_.taken(resident, event_);
}

void Residency::give(int piece) {
  if (!here(piece)) return;
  here_[static_cast<std::size_t>(piece)] = 0;
  listener_.given(residents_[static_cast<std::size_t>(piece)], event_);
}

void Residency::begin() {
  ++event_;
  const std::vector<bool> in_pool = starts_in_pool(graph_, plan_);
  for (std::size_t t = 0; t < in_pool.size(); ++t)
    if (graph_.tensors()[t].persistent && !in_pool[t])
      for (int p = first_[t]; p < first_[t + 1]; ++p) take(p, {});
}

void Residency::take_input(TensorId tensor) {
  ++event_;
  for (int p = first_piece(tensor); p < last_piece(tensor); ++p) take(p, {});
}

void Residency::start_op(OpId id) {
  ++event_;
  const Op& op = graph_.op(id);
  if (op.memory != Tier::kHbm) return;
  Resident source;
  source.op = id;
  source.by = Resident::By::kWrite;
  for (TensorId t : op.writes)
    for (int p = first_piece(t); p < last_piece(t); ++p) take(p, source);
  source.by = Resident::By::kWorkspace;
  take(pieces() + id.value, source);
}

void Residency::end_op(OpId id) {
  ++event_;
  give(pieces() + id.value);
  if (++ops_ended_ % graph_.ops().size() == 0) listener_.iteration_ended();
}

void Residency::prefetch(int index) {
  ++event_;
  const Action& action = plan_.actions[static_cast<std::size_t>(index)];
  Resident source;
  source.by = Resident::By::kPrefetch;
  source.action = index;
  for (int p = first_piece(action.tensor); p < last_piece(action.tensor); ++p) {
    const Resident& piece = residents_[static_cast<std::size_t>(p)];
    if (piece.from >= action.from && piece.to <= action.to) take(p, source);
  }
}

void Residency::detach(TensorId tensor, Bytes from, Bytes to) {
  ++event_;
  for (int p = first_piece(tensor); p < last_piece(tensor); ++p) {
    const Resident& piece = residents_[static_cast<std::size_t>(p)];
    if (piece.from >= from && piece.to <= to) give(p);
  }
}

void Residency::die(TensorId tensor) {
  ++event_;
  for (int p = first_piece(tensor); p < last_piece(tensor); ++p) give(p);
}

void Residency::end() {
  ++event_;
  for (std::size_t p = 0; p < here_.size(); ++p) give(static_cast<int>(p));
}

}  // namespace hyperoffload
