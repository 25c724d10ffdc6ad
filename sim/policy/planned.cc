#include "sim/policy/planned.h"

#include <algorithm>

namespace hyperoffload {
namespace {

Direction direction_of(ActionKind kind) {
  return kind == ActionKind::kPrefetch ? Direction::kPoolToHbm : Direction::kHbmToPool;
}

}  // namespace

PlannedPolicy::PlannedPolicy(const Graph& graph, const Plan& plan)
    : graph_(graph),
      plan_(plan),
      first_(build_body(0)),
      later_(build_body(1)),
      done_(graph.tensors().size(), 0) {}

std::vector<std::vector<Bytes>> PlannedPolicy::cuts(const Graph& graph) {
  std::vector<std::vector<Bytes>> cuts(graph.tensors().size());
  for (const Action& action : plan_.actions) {
    if (action.from == Bytes(0) && action.to == graph.tensor(action.tensor).bytes) continue;
    cuts[action.tensor.index()].push_back(action.from);
    cuts[action.tensor.index()].push_back(action.to);
  }
  return cuts;
}

PlannedPolicy::Body PlannedPolicy::build_body(int iteration) const {
  Body body;
  const std::size_t tensors = graph_.tensors().size();
  body.chain.resize(tensors);
  body.waits.resize(plan_.actions.size());
  body.needs.resize(graph_.ops().size());
  body.anchored_detaches.resize(graph_.ops().size());
  body.last_move.assign(tensors, -1);
  body.last_any.assign(tensors, -1);
  for (std::size_t a = 0; a < plan_.actions.size(); ++a) {
    const Action& action = plan_.actions[a];
    if (!action.in_iteration(iteration)) continue;
    body.chain[action.tensor.index()].push_back(static_cast<int>(a));
    if (action.kind != ActionKind::kDetach)
      body.queue[static_cast<int>(direction_of(action.kind))].push_back(static_cast<int>(a));
    else if (action.after_op.is_none())
      body.starting_detaches.push_back(action.tensor);
    else
      body.anchored_detaches[action.after_op.index()].push_back(action.tensor);
  }
  // Tensors with actions in any iteration: an op may have to wait for those of an earlier one.
  std::vector<char> moved(tensors, 0);
  for (const Action& action : plan_.actions) moved[action.tensor.index()] = 1;
  for (std::size_t t = 0; t < tensors; ++t)
    if (moved[t]) build_chain(body, TensorId(t));
  return body;
}

// Walks a tensor's accesses and actions in program order: an action stands right behind its after_op,
// or behind the tensor's previous action if that stands later.
void PlannedPolicy::build_chain(Body& body, TensorId t) const {
  const auto accesses = graph_.accesses(t);
  const std::size_t engines = graph_.engines().size();
  std::vector<OpId> last_write(engines), last_access(engines);
  std::size_t next = 0;
  int last_move = -1, last_any = -1;
  const auto pass_accesses = [&](OpId up_to, bool all) {
    for (; next < accesses.size() && (all || accesses[next].op <= up_to); ++next) {
      const Access& access = accesses[next];
      const Op& op = graph_.op(access.op);
      const bool stores = access.writes || op.memory == Tier::kPool;
      body.needs[access.op.index()].push_back({t, stores ? last_any : last_move, stores});
      last_access[op.engine.index()] = access.op;
      if (access.writes) last_write[op.engine.index()] = access.op;
    }
  };
  OpId position;
  for (std::size_t place = 0; place < body.chain[t.index()].size(); ++place) {
    const int a = body.chain[t.index()][place];
    const Action& action = plan_.actions[static_cast<std::size_t>(a)];
    position = std::max(position, action.after_op);
    pass_accesses(position, false);
    for (OpId access : action.kind == ActionKind::kDetach ? last_access : last_write)
      if (!access.is_none()) body.waits[static_cast<std::size_t>(a)].push_back(access);
    last_any = static_cast<int>(place);
    if (action.kind != ActionKind::kStore) last_move = last_any;
  }
  pass_accesses(OpId::none(), true);
  body.last_move[t.index()] = last_move;
  body.last_any[t.index()] = last_any;
}

std::int64_t PlannedPolicy::chain_before(TensorId t, int iteration) const {
  if (iteration == 0) return 0;
  return static_cast<std::int64_t>(first_.chain[t.index()].size()) +
         static_cast<std::int64_t>(iteration - 1) * static_cast<std::int64_t>(later_.chain[t.index()].size());
}

// How many of the tensor's actions must be done. Without a relevant one earlier in this body it is the
// last relevant one of the iteration before, or else of the first.
std::int64_t PlannedPolicy::needed(const Need& need, int iteration) const {
  if (need.place >= 0) return chain_before(need.tensor, iteration) + need.place + 1;
  for (int before : {iteration - 1, 0}) {
    if (before < 0 || before >= iteration) continue;
    const Body& earlier = body(before);
    const int place = (need.stores ? earlier.last_any : earlier.last_move)[need.tensor.index()];
    if (place >= 0) return chain_before(need.tensor, before) + place + 1;
  }
  return 0;
}

bool PlannedPolicy::op_may_start(OpId op, const NpuView& view) {
  for (const Need& need : body(view.iteration).needs[op.index()])
    if (done_[need.tensor.index()] < needed(need, view.iteration)) return false;
  return true;
}

// Its iteration has started (and taken its inputs, if it moves one), its after_op and the accesses it
// waits for are done.
bool PlannedPolicy::anchored(const Body& body, int action, int iteration, const NpuView& view) const {
  if (iteration != view.iteration) return iteration < view.iteration;
  const OpId after = plan_.actions[static_cast<std::size_t>(action)].after_op;
  const TensorId tensor = plan_.actions[static_cast<std::size_t>(action)].tensor;
  if (!view.inputs_taken && graph_.is_input(tensor)) return false;
  if (!after.is_none() && !view.op_done(after)) return false;
  const auto& waits = body.waits[static_cast<std::size_t>(action)];
  return std::all_of(waits.begin(), waits.end(), [&](OpId op) { return view.op_done(op); });
}

std::optional<Move> PlannedPolicy::next_transfer(Direction direction, const NpuView& view) {
  const int d = static_cast<int>(direction);
  while (queue_iteration_[d] <= view.iteration &&
         queue_place_[d] == body(queue_iteration_[d]).queue[d].size()) {
    ++queue_iteration_[d];
    queue_place_[d] = 0;
  }
  const int iteration = queue_iteration_[d];
  if (iteration > view.iteration) return std::nullopt;
  const Body& mine = body(iteration);
  const int a = mine.queue[d][queue_place_[d]];
  const Action& action = plan_.actions[static_cast<std::size_t>(a)];
  if (!anchored(mine, a, iteration, view)) return std::nullopt;
  const auto& chain = mine.chain[action.tensor.index()];
  const std::int64_t place = std::lower_bound(chain.begin(), chain.end(), a) - chain.begin();
  if (done_[action.tensor.index()] != chain_before(action.tensor, iteration) + place) return std::nullopt;
  return Move{action.tensor, action.from, action.to, iteration, a};
}

void PlannedPolicy::transfer_ended(Direction direction, const Move& move, const NpuView&) {
  ++queue_place_[static_cast<int>(direction)];
  ++done_[move.tensor.index()];
  maybe_detaches_.push_back(move.tensor);
}

void PlannedPolicy::op_ended(OpId op, const NpuView& view) {
  const Body& mine = body(view.iteration);
  for (const Need& need : mine.needs[op.index()]) maybe_detaches_.push_back(need.tensor);
  const auto& anchored_here = mine.anchored_detaches[op.index()];
  maybe_detaches_.insert(maybe_detaches_.end(), anchored_here.begin(), anchored_here.end());
}

void PlannedPolicy::iteration_started(const NpuView& view) {
  const auto& starting = body(view.iteration).starting_detaches;
  maybe_detaches_.insert(maybe_detaches_.end(), starting.begin(), starting.end());
}

// The next action of the tensor, if it is a detach whose time has come.
std::optional<Move> PlannedPolicy::due_detach(TensorId t, const NpuView& view) const {
  const std::int64_t done = done_[t.index()];
  const auto in_first = static_cast<std::int64_t>(first_.chain[t.index()].size());
  const auto in_later = static_cast<std::int64_t>(later_.chain[t.index()].size());
  if (done >= in_first && in_later == 0) return std::nullopt;
  const int iteration = done < in_first ? 0 : 1 + static_cast<int>((done - in_first) / in_later);
  if (iteration > view.iteration) return std::nullopt;
  const Body& mine = body(iteration);
  const int a = mine.chain[t.index()][static_cast<std::size_t>(done - chain_before(t, iteration))];
  const Action& action = plan_.actions[static_cast<std::size_t>(a)];
  if (action.kind != ActionKind::kDetach || !anchored(mine, a, iteration, view)) return std::nullopt;
  return Move{t, action.from, action.to, iteration, a};
}

std::optional<Move> PlannedPolicy::next_detach(const NpuView& view, bool) {
  while (!maybe_detaches_.empty()) {
    const TensorId t = maybe_detaches_.back();
    if (const auto move = due_detach(t, view)) {
      ++done_[t.index()];
      return move;  // the tensor stays: its next action may be another
    }
    maybe_detaches_.pop_back();
  }
  return std::nullopt;
}

}  // namespace hyperoffload
