// Random tiny graphs with random plans, some right and some mutated: the checker says no exactly when
// some interleaving breaks a rule or gets stuck (exhaustive.h).
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "test/model/exhaustive.h"
#include "test/model/tiny.h"
#include "test/support/catch.h"

using namespace hyperoffload;

namespace {

// std distributions differ between libraries; the raw engine doesn't.
struct Dice {
  std::mt19937 engine;
  int below(int n) { return n <= 0 ? 0 : static_cast<int>(engine() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
};

Graph random_graph(Dice& dice, int engines) {
  const int tensor_count = 1 + dice.below(3);
  const int op_count = 2 + dice.below(engines > 1 ? 3 : 4);
  GraphSpec spec;
  for (int e = 1; e < engines; ++e) spec.engines.push_back(fmt::format("engine{}", e));
  for (int t = 0; t < tensor_count; ++t) {
    Tensor tensor;
    tensor.name = fmt::format("t{}", t);
    constexpr TensorKind kKinds[] = {TensorKind::kWeight, TensorKind::kActivation, TensorKind::kInput};
    tensor.kind = kKinds[dice.below(3)];
    tensor.persistent = tensor.kind == TensorKind::kWeight;
    tensor.bytes = Bytes(1 + dice.below(3));
    if (tensor.persistent && dice.one_in(3)) tensor.initial = Tier::kPool;
    spec.tensors.push_back(tensor);
  }
  std::vector<bool> born(spec.tensors.size());
  for (int i = 0; i < op_count; ++i) {
    Op op;
    op.name = fmt::format("op{}", i);
    op.duration = Seconds(1e-6);
    op.engine = EngineId(dice.below(engines));
    if (dice.one_in(5)) op.workspace = Bytes(1 + dice.below(2));
    if (dice.one_in(8)) op.memory = Tier::kPool;
    if (i > 0 && dice.one_in(6)) op.after.emplace_back(dice.below(i));
    for (std::size_t t = 0; t < spec.tensors.size(); ++t) {
      if (!dice.one_in(2)) continue;
      const bool there = born[t] || spec.tensors[t].persistent || spec.tensors[t].kind == TensorKind::kInput;
      const bool writes = !there || dice.one_in(4);
      if (there && (!writes || dice.one_in(2))) op.reads.emplace_back(t);
      if (writes) op.writes.emplace_back(t);
      born[t] = true;
    }
    spec.ops.push_back(op);
  }
  return build_graph(std::move(spec));
}

Action make(ActionKind kind, const Graph& graph, TensorId t, int after,
            IterationScope scope = IterationScope::kEvery) {
  return {kind, t, OpId(after), OpId::none(), Bytes(0), graph.tensor(t).bytes, scope};
}

// Actions of one tensor that mostly keep the rules: away in some gaps between its HBM accesses.
std::vector<Action> random_actions(Dice& dice, const Graph& graph, TensorId t, bool in_pool, bool repeats) {
  std::vector<Action> actions;
  const Tensor& tensor = graph.tensor(t);
  const auto accesses = graph.accesses(t);
  if (accesses.empty()) return actions;
  bool resident = tensor.persistent ? !in_pool : graph.is_input(t);
  bool valid = in_pool;
  int behind = -1;  // what the next action can't stand before
  const auto until = [&](int op) { return behind + dice.below(op - behind); };
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const int op = accesses[i].op.value;
    const bool pool_op = graph.op(accesses[i].op).memory == Tier::kPool;
    const bool needed = accesses[i].reads;
    const bool away = resident && behind < op && (dice.one_in(2) || (pool_op && accesses[i].writes));
    if (resident && !valid && ((away && (tensor.persistent || i < accesses.size())) || (pool_op && needed))) {
      actions.push_back(make(ActionKind::kStore, graph, t, behind = until(op)));
      valid = true;
    }
    if (away) {
      actions.push_back(make(ActionKind::kDetach, graph, t, behind = until(op)));
      resident = false;
    }
    if (!resident && needed && !pool_op) {
      actions.push_back(make(ActionKind::kPrefetch, graph, t, behind = until(op)));
      resident = true;
    }
    behind = op;
    if (accesses[i].writes) {
      resident = !pool_op;
      valid = pool_op;
    }
  }
  if (!tensor.persistent || !repeats) return actions;
  // So that the next iteration starts as this one did: the state must be that of the start.
  const int last = static_cast<int>(graph.ops().size());
  if (in_pool && resident) {
    if (!valid) actions.push_back(make(ActionKind::kStore, graph, t, behind = until(last)));
    actions.push_back(make(ActionKind::kDetach, graph, t, behind = until(last)));
    const bool first_is_prefetch =
        actions.front().kind == ActionKind::kPrefetch && actions.front().after_op.is_none();
    if (first_is_prefetch && dice.one_in(2)) {
      actions.front().scope = IterationScope::kFirst;
      actions.push_back(make(ActionKind::kPrefetch, graph, t, until(last)));
    }
  } else if (!in_pool && !resident) {
    actions.push_back(make(ActionKind::kPrefetch, graph, t, until(last)));
  }
  if (!in_pool && valid)
    for (Action& a : actions)
      if (a.kind == ActionKind::kStore) a.scope = IterationScope::kFirst;
  return actions;
}

// Cuts a tensor's actions into two pieces here and there.
void cut(Dice& dice, const Graph& graph, std::vector<Action>& actions) {
  std::vector<Action> pieces;
  const bool all = dice.one_in(2);
  for (const Action& a : actions) {
    const Bytes bytes = graph.tensor(a.tensor).bytes;
    if (bytes < Bytes(2) || (!all && !dice.one_in(2))) {
      pieces.push_back(a);
      continue;
    }
    Action low = a, high = a;
    low.to = high.from = Bytes(1 + dice.below(static_cast<int>(bytes.value) - 1));
    pieces.push_back(low);
    pieces.push_back(high);
  }
  actions = pieces;
}

Plan random_plan(Dice& dice, const Graph& graph, int iterations) {
  Plan plan;
  std::vector<std::vector<Action>> by_tensor;
  for (std::size_t t = 0; t < graph.tensors().size(); ++t) {
    const Tensor& tensor = graph.tensors()[t];
    const bool in_pool = tensor.persistent && (tensor.initial == Tier::kPool || dice.one_in(2));
    if (in_pool && tensor.initial != Tier::kPool) plan.initial_pool.emplace_back(t);
    by_tensor.push_back(random_actions(dice, graph, TensorId(t), in_pool, iterations > 1));
    if (dice.one_in(3)) cut(dice, graph, by_tensor.back());
  }
  // Merged in the order of their anchors; sometimes another order.
  for (std::vector<std::size_t> next(by_tensor.size(), 0);;) {
    int best = -1;
    for (std::size_t t = 0; t < by_tensor.size(); ++t) {
      if (next[t] == by_tensor[t].size()) continue;
      if (best < 0 || dice.one_in(8) ||
          by_tensor[t][next[t]].after_op <
              by_tensor[static_cast<std::size_t>(best)][next[static_cast<std::size_t>(best)]].after_op)
        best = static_cast<int>(t);
    }
    if (best < 0) return plan;
    plan.actions.push_back(by_tensor[static_cast<std::size_t>(best)][next[static_cast<std::size_t>(best)]++]);
  }
}

void mutate(Dice& dice, const Graph& graph, Plan& plan) {
  auto& actions = plan.actions;
  if (actions.empty()) return;
  const int count = static_cast<int>(actions.size());
  const auto any = [&] { return actions.begin() + dice.below(count); };
  switch (dice.below(7)) {
    case 0:
      actions.erase(any());
      break;
    case 1:
      actions.insert(any(), *any());
      break;
    case 2:
      std::iter_swap(any(), any());
      break;
    case 3:
      any()->after_op = OpId(dice.below(static_cast<int>(graph.ops().size()) + 1) - 1);
      break;
    case 4:
      any()->scope = dice.one_in(2) ? IterationScope::kFirst : IterationScope::kLater;
      break;
    case 5:
      any()->kind = static_cast<ActionKind>(dice.below(3));
      break;
    case 6: {
      Action& a = *any();
      if (a.bytes() > Bytes(1)) (dice.one_in(2) ? a.from : a.to) = a.from + Bytes(1);
      break;
    }
  }
}

struct Case {
  Graph graph;
  Plan plan;
  CheckLimits limits;
  int iterations;
};

Case random_case(unsigned seed, int engines) {
  Dice dice{std::mt19937(seed)};
  Case c;
  c.graph = random_graph(dice, engines);
  c.iterations = 1 + dice.below(3);
  c.plan = random_plan(dice, c.graph, c.iterations);
  for (int mutations = dice.below(3); mutations > 0; --mutations) mutate(dice, c.graph, c.plan);
  while (c.plan.actions.size() > 7) c.plan.actions.pop_back();
  std::int64_t bytes = 0;
  for (const Tensor& t : c.graph.tensors()) bytes += t.bytes.value;
  c.limits.hbm = Bytes(bytes - dice.below(static_cast<int>(bytes)) + dice.below(3));
  c.limits.pool = dice.one_in(3) ? Bytes(dice.below(static_cast<int>(bytes) + 2)) : Bytes(bytes + 4);
  return c;
}

std::string words(const Case& c, unsigned seed, const std::vector<Violation>& found, const Opinion& opinion) {
  std::string text =
      fmt::format("seed {}, hbm {}, pool {}, {} iterations\n{}checker:\n", seed, c.limits.hbm.value,
                  c.limits.pool.value, c.iterations, tiny_words(c.graph, c.plan));
  for (const Violation& v : found) text += "  " + v.rule + ": " + v.message + "\n";
  return text + "exhaustive: " + (opinion.yes ? "fine" : opinion.why);
}

// What may be refused though no timing goes wrong, with several engines only: the charge's caution, or
// an op that program order puts before its transfer's anchor on another engine.
bool may_be_cautious(const std::string& rule) {
  return rule == "stuck" || rule == "read-absent" || rule == "pool-read";
}

}  // namespace

TEST_CASE("on one engine the checker agrees with an exhaustive search of timings") {
  int yes = 0, stuck = 0, rule = 0;
  for (unsigned seed = 1; seed <= 10000; ++seed) {
    const Case c = random_case(seed, 1);
    const auto found = check_plan(c.graph, c.plan, c.limits, c.iterations);
    const Opinion opinion = explore(c.graph, c.plan, c.limits, c.iterations);
    ++(opinion.yes ? yes : found.size() == 1 && found[0].rule == "stuck" ? stuck : rule);
    INFO(words(c, seed, found, opinion));
    REQUIRE(found.empty() == opinion.yes);
  }
  // Worth something only if all three outcomes are common.
  CHECK(yes > 2000);
  CHECK(stuck > 1000);
  CHECK(rule > 2000);
}

TEST_CASE("with several engines nothing the checker allows goes wrong in any timing") {
  // The other way round it refuses plans that no timing sticks: the charge ignores what is freed
  // meanwhile, and accesses and actions keep to program order whatever the engines do. And pool bytes
  // of stores anchored on later ops are no part of the charge, so here the pool has room for all.
  int yes = 0, refused = 0;
  for (unsigned seed = 1; seed <= 10000; ++seed) {
    Case c = random_case(seed, 2 + static_cast<int>(seed % 2));
    c.limits.pool = Bytes(1000);
    const auto found = check_plan(c.graph, c.plan, c.limits, c.iterations);
    const Opinion opinion = explore(c.graph, c.plan, c.limits, c.iterations);
    yes += found.empty();
    refused += opinion.yes && !found.empty();
    INFO(words(c, seed, found, opinion));
    if (found.empty()) REQUIRE(opinion.yes);
    if (opinion.yes && !found.empty()) REQUIRE(may_be_cautious(found[0].rule));
  }
  CHECK(yes > 2000);
  CHECK(refused < 1000);
}
