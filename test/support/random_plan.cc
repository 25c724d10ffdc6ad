#include "test/support/random_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "test/support/random_graph.h"
#include "test/support/reference_replay.h"

namespace hyperoffload {
namespace {

struct PieceState {
  bool exists = false;
  bool hbm = false;
  bool valid = false;         // the pool copy
  bool touched = true;        // accessed since its last prefetch
  bool store_unused = false;  // nothing has needed its copy since it was stored
  bool operator==(const PieceState&) const = default;
};
using States = std::vector<PieceState>;

struct Move {
  ActionKind kind;
  std::size_t first_piece, last_piece;
  int place;
  bool operator==(const Move&) const = default;
};
using Gap = std::vector<Move>;

struct Walk {
  std::vector<Gap> gaps;       // before each access, and behind the last
  std::vector<States> before;  // states as each gap opens
  States out;
};

// What the access behind a gap asks for.
struct Need {
  bool resident = false, valid = false, absent = false;
};

class TensorWalk {
 public:
  TensorWalk(const Graph& graph, TensorId t, bool tied, Rng& rng)
      : graph_(graph),
        tensor_(graph.tensor(t)),
        accesses_(graph.accesses(t)),
        is_input_(graph.is_input(t)),
        rng_(rng) {
    eagerness_ = rng.one_of(std::vector<double>{0.05, 0.3, 0.8});
    const std::int64_t bytes = tensor_.bytes.value, unit = tied ? 500 : 1;
    cuts_ = {0, bytes};
    if (rng.chance(0.4))
      for (int i = rng.pick(1, 3); i-- > 0;) cuts_.push_back(rng.between(0, bytes / unit) * unit);
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    if (cuts_.size() == 1) cuts_.push_back(cuts_[0]);  // no bytes: one empty piece
  }

  // The tensor's actions in order, `place` in after_op; none when no walk was found.
  std::optional<std::vector<Action>> draw(TensorId t, bool starts_in_pool) {
    if (!tensor_.persistent && accesses_.empty()) return std::vector<Action>{};
    States start(cuts_.size() - 1);
    if (tensor_.persistent)
      for (PieceState& s : start) s = {true, !starts_in_pool, starts_in_pool, true, false};
    for (int attempt = 0; attempt < 200; ++attempt) {
      late_ = !tensor_.persistent && attempt == 0 && rng_.chance(0.2);
      if (attempt == 100) eagerness_ = 0;  // only what must be
      const auto first = iterate(start, nullptr);
      if (!first) continue;
      auto later = first;
      if (tensor_.persistent && first->out != start) {
        later = iterate(first->out, &*first);
        if (!later || later->out != first->out) continue;
      } else if (!tensor_.persistent && rng_.chance(0.1)) {
        later = iterate(start, &*first);
        if (!later) continue;
      }
      return merge(t, *first, *later);
    }
    return std::nullopt;
  }

 private:
  std::int32_t last_op() const { return static_cast<std::int32_t>(graph_.ops().size()) - 1; }
  bool in_pool(const Access& a) const { return graph_.op(a.op).memory == Tier::kPool; }

  std::optional<Walk> iterate(States states, const Walk* guide) {
    Walk walk;
    for (std::size_t i = 0; i <= accesses_.size(); ++i) {
      const bool behind_last = i == accesses_.size();
      if (i == 0 && is_input_)
        for (PieceState& s : states) s = {true, true, false, true, false};
      const int from = i == 0 ? -1 : accesses_[i - 1].op.value;
      const int to = behind_last ? last_op() : accesses_[i].op.value - 1;
      walk.before.push_back(states);
      auto gap = states[0].exists ? draw_gap(states, from, to, i, guide) : Gap{};
      if (!gap) return std::nullopt;
      walk.gaps.push_back(std::move(*gap));
      if (!behind_last) access(states, accesses_[i]);
    }
    if (!tensor_.persistent)
      for (const PieceState& s : states)
        if (s.store_unused) return std::nullopt;  // stored, then about to die undetached
    for (PieceState& s : states) s.store_unused = false;
    walk.out = states;
    return walk;
  }

  Need need(std::size_t i) const {
    if (i == accesses_.size()) return {};
    const Access& a = accesses_[i];
    if (in_pool(a)) return {false, a.reads, a.writes};
    return {a.reads, false, false};
  }

  void access(States& states, const Access& a) const {
    for (PieceState& s : states) {
      if (in_pool(a)) {
        if (a.writes) s = {true, false, true, true, false};
        s.store_unused = false;
      } else if (a.writes) {
        s = {true, true, false, true, s.store_unused};
      }
      s.touched = true;
      s.exists = true;
    }
  }

  std::optional<Gap> draw_gap(States& states, int from, int to, std::size_t i, const Walk* guide) {
    if (guide != nullptr && guide->before[i] == states && rng_.chance(0.95)) {
      // The same again, so that one action serves every iteration.
      const Gap& same = guide->gaps[i];
      for (const Move& m : same)
        for (std::size_t p = m.first_piece; p <= m.last_piece; ++p) apply(states[p], m.kind);
      return same;
    }
    Gap gap;
    for (std::size_t first = 0; first < states.size();) {
      std::size_t last = first;
      while (last + 1 < states.size() && states[last + 1] == states[first] && rng_.chance(0.7)) ++last;
      const auto kinds = draw_kinds(states[first], i);
      if (!kinds) return std::nullopt;
      std::vector<int> places;
      for (std::size_t k = 0; k < kinds->size(); ++k)
        places.push_back(rng_.chance(0.3) ? from : rng_.pick(from, to));
      std::sort(places.begin(), places.end());
      for (std::size_t k = 0; k < kinds->size(); ++k) gap.push_back({(*kinds)[k], first, last, places[k]});
      for (std::size_t p = first + 1; p <= last; ++p) states[p] = states[first];
      first = last + 1;
    }
    std::stable_sort(gap.begin(), gap.end(), [](const Move& a, const Move& b) { return a.place < b.place; });
    return gap;
  }

  // What one run of pieces does in a gap; none when what the next access needs can't be had.
  std::optional<std::vector<ActionKind>> draw_kinds(PieceState& s, std::size_t i) {
    const Need want = need(i);
    const bool leave = want.absent || rng_.chance(eagerness_);
    std::vector<ActionKind> kinds;
    const auto go = [&](ActionKind kind) {
      apply(s, kind);
      kinds.push_back(kind);
    };
    // Behind the last access of what dies, only a store that was made before may still be detached.
    const bool dying = !tensor_.persistent && i == accesses_.size();
    const bool keep = late_ && i + 1 < accesses_.size();
    const bool only_store = late_ && i + 1 == accesses_.size();
    if (s.hbm && !s.valid && !dying && !keep && (leave || want.valid || only_store)) go(ActionKind::kStore);
    if (s.hbm && s.valid && s.touched && !keep && !only_store &&
        (dying ? s.store_unused : leave && rng_.chance(0.9)))
      go(ActionKind::kDetach);
    const bool may_return = !s.hbm && s.valid && !want.absent && !dying;
    if (may_return && (want.resident || rng_.chance(0.1))) go(ActionKind::kPrefetch);
    const bool met = (!want.resident || s.hbm) && (!want.valid || s.valid) && (!want.absent || !s.hbm);
    return met ? std::optional(kinds) : std::nullopt;
  }

  static void apply(PieceState& s, ActionKind kind) {
    switch (kind) {
      case ActionKind::kStore:
        s.valid = s.store_unused = true;
        break;
      case ActionKind::kDetach:
        s.hbm = s.store_unused = false;
        s.touched = true;
        break;
      case ActionKind::kPrefetch:
        s.hbm = true;
        s.touched = false;
        break;
    }
  }

  std::vector<Action> merge(TensorId t, const Walk& first, const Walk& later) const {
    std::vector<Action> actions;
    const auto add = [&](const Gap& gap, IterationScope scope, std::size_t i) {
      for (const Move& m : gap) {
        Action a;
        a.kind = m.kind;
        a.tensor = t;
        a.after_op = OpId(m.place);
        a.from = Bytes(cuts_[m.first_piece]);
        a.to = Bytes(cuts_[m.last_piece + 1]);
        a.scope = scope;
        if (m.kind == ActionKind::kPrefetch) a.before_op = reader(i);
        actions.push_back(a);
      }
    };
    for (std::size_t i = 0; i < first.gaps.size(); ++i) {
      const bool same = first.gaps[i] == later.gaps[i];
      add(first.gaps[i], same ? IterationScope::kEvery : IterationScope::kFirst, i);
      if (!same) add(later.gaps[i], IterationScope::kLater, i);
    }
    return actions;
  }

  // The first reader behind a gap, if that is the next access; behind the last one, the next iteration's.
  OpId reader(std::size_t gap) const {
    if (accesses_.empty()) return OpId::none();
    const Access& a = accesses_[gap % accesses_.size()];
    return a.reads ? a.op : OpId::none();
  }

  const Graph& graph_;
  const Tensor& tensor_;
  const std::span<const Access> accesses_;
  const bool is_input_;
  Rng& rng_;
  double eagerness_ = 0;
  bool late_ = false;  // a store before the last access, a detach behind it, nothing else
  std::vector<std::int64_t> cuts_;
};

// An earlier anchor changes nothing about an action's place when the tensor's previous action, in
// every iteration of this one, stands there anyway.
void lower_anchors(std::vector<Action>& actions, Rng& rng) {
  std::vector<int> place;
  for (const Action& a : actions) place.push_back(a.after_op.value);
  for (std::size_t i = 0; i < actions.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const bool always = actions[j].scope == IterationScope::kEvery || actions[j].scope == actions[i].scope;
      if (actions[j].tensor != actions[i].tensor || place[j] != place[i] || !always || !rng.chance(0.4))
        continue;
      actions[i].after_op = OpId(rng.pick(-1, place[i]));
      actions[i].before_op = OpId::none();
      break;
    }
}

void disturb_order(std::vector<Action>& actions, Rng& rng) {
  if (actions.size() < 2 || !rng.chance(0.4)) return;
  for (int n = rng.pick(1, 3); n-- > 0;) {
    const auto i = static_cast<std::size_t>(rng.between(0, static_cast<std::int64_t>(actions.size()) - 2));
    if (actions[i].tensor != actions[i + 1].tensor) std::swap(actions[i], actions[i + 1]);
  }
}

}  // namespace

std::optional<Plan> random_plan(const Graph& graph, bool tied, Rng& rng) {
  Plan plan;
  std::vector<std::pair<std::uint64_t, std::vector<Action>>> by_tensor;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId t(i);
    const Tensor& tensor = graph.tensor(t);
    const bool wish = tensor.persistent && tensor.initial == Tier::kHbm && rng.chance(0.4);
    const bool bound = tensor.initial == Tier::kPool;
    if (wish || (bound && rng.chance(0.5))) plan.initial_pool.push_back(t);
    auto actions = TensorWalk(graph, t, tied, rng).draw(t, wish || bound);
    if (!actions) return std::nullopt;
    by_tensor.emplace_back(rng.bits(), std::move(*actions));
  }
  std::sort(by_tensor.begin(), by_tensor.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, actions] : by_tensor)
    plan.actions.insert(plan.actions.end(), actions.begin(), actions.end());
  std::stable_sort(plan.actions.begin(), plan.actions.end(),
                   [](const Action& a, const Action& b) { return a.after_op < b.after_op; });
  lower_anchors(plan.actions, rng);
  disturb_order(plan.actions, rng);
  return plan;
}

namespace {

// The capacity of one tier: what was used with room to spare, a little more, or less: down to where
// the run just gets through, by bisection in steps of `unit`, or a little less still.
void tighten_tier(Bytes& capacity, Bytes reserved, Bytes peak, std::int64_t unit, Rng& rng,
                  const std::function<bool()>& stuck) {
  const double dice = rng.real(0, 1);
  if (dice < 0.2) {
    capacity = reserved + peak;
    if (rng.chance(0.5)) capacity += Bytes(rng.between(0, peak.value / 3));
    return;
  }
  std::int64_t enough = peak.value, short_of = peak.value / 4;
  const std::int64_t stop = dice < 0.7 ? 0 : rng.between(0, peak.value / 8);
  while (enough - short_of > unit + stop) {
    const std::int64_t middle = enough - (enough - short_of + unit) / (2 * unit) * unit;
    capacity = reserved + Bytes(middle);
    (stuck() ? short_of : enough) = middle;
  }
  capacity = reserved + Bytes(rng.chance(0.02) ? short_of : enough);
}

RandomCase random_graph_case(std::uint64_t seed, Rng& rng, bool pool_ops) {
  RandomGraphOptions options;
  options.shape = kAllShapes[rng.pick(0, 4)];
  options.tied = rng.chance(0.5);
  options.engines = rng.chance(0.6);
  options.pool_ops = pool_ops && rng.chance(0.6);
  const double dice = rng.real(0, 1);
  options.size = dice < 0.7 ? rng.pick(3, 12) : dice < 0.98 ? rng.pick(12, 40) : rng.pick(60, 120);
  RandomCase c;
  c.seed = seed;
  c.tied = options.tied;
  c.graph = random_graph(options, rng);
  c.hardware = random_hardware(c.graph, options.tied, rng);
  c.iterations = rng.pick(1, 4);
  return c;
}

}  // namespace

void tighten(const Graph& graph, const Plan& plan, bool tied, Hardware& hardware, int iterations, Rng& rng) {
  const ReferenceResult roomy = reference_replay(graph, plan, hardware, iterations);
  if (roomy.stuck) return;
  const auto unit = [&](Bytes peak) { return tied ? 500 : 1 + peak.value / 64; };
  const auto stuck = [&] { return reference_replay(graph, plan, hardware, iterations).stuck; };
  tighten_tier(hardware.hbm_capacity, hardware.hbm_reserved, roomy.hbm_peak, unit(roomy.hbm_peak), rng,
               stuck);
  tighten_tier(hardware.pool_capacity, Bytes(0), roomy.pool_peak, unit(roomy.pool_peak), rng, stuck);
}

RandomCase random_case(std::uint64_t seed) {
  Rng rng(seed);
  for (;;) {
    RandomCase c = random_graph_case(seed, rng, true);
    auto plan = random_plan(c.graph, c.tied, rng);
    if (!plan) continue;
    c.plan = std::move(*plan);
    tighten(c.graph, c.plan, c.tied, c.hardware, c.iterations, rng);
    return c;
  }
}

RandomCase random_on_demand_case(std::uint64_t seed) {
  Rng rng(seed);
  RandomCase c = random_graph_case(seed, rng, false);
  const auto run = [&] { return reference_on_demand(c.graph, c.hardware, c.iterations); };
  const std::int64_t all = c.hardware.hbm_usable().value;
  for (double part = rng.real(0.15, 1.0); part < 1.5; part *= 1.25) {
    c.hardware.hbm_capacity =
        c.hardware.hbm_reserved + Bytes(static_cast<std::int64_t>(static_cast<double>(all) * part));
    if (!run().stuck || rng.chance(0.01)) break;
  }
  const ReferenceResult roomy = run();
  if (!roomy.stuck)
    tighten_tier(c.hardware.pool_capacity, Bytes(0), roomy.pool_peak, 1 + roomy.pool_peak.value / 64, rng,
                 [&] { return run().stuck; });
  return c;
}

std::string describe(const Plan& plan, const Graph& graph) {
  std::string text = "plan: initial pool";
  for (TensorId t : plan.initial_pool) text += " " + graph.tensor(t).name;
  text += "\n";
  const char* scopes[] = {"", ", first", ", later"};
  for (std::size_t i = 0; i < plan.actions.size(); ++i) {
    const Action& a = plan.actions[i];
    text += fmt::format("  action {}: {} {} [{}, {}) after op {}{}\n", i, to_string(a.kind),
                        graph.tensor(a.tensor).name, a.from.value, a.to.value, a.after_op.value,
                        scopes[static_cast<int>(a.scope)]);
  }
  return text;
}

std::string describe(const RandomCase& c) {
  return fmt::format("seed {}, {} iterations\n", c.seed, c.iterations) + describe(c.hardware) +
         describe(c.graph) + describe(c.plan, c.graph);
}

}  // namespace hyperoffload
