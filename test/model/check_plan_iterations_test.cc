// A plan's body repeated: what is carried from one iteration to the next.
#include <fmt/format.h>

#include <ctime>

#include "test/model/tiny.h"
#include "test/support/catch.h"

using namespace hyperoffload;

namespace {

Lines found(const Graph& graph, const Plan& plan, int iterations, std::int64_t hbm = 1000) {
  return rules(check_tiny(graph, plan, hbm, 1000, iterations));
}

Graph stream() { return tiny_graph({"w weight 10", "v weight 10"}, {"a reads=w", "b", "c reads=v"}); }

}  // namespace

TEST_CASE("a wrap-around prefetch serves the next iteration, the first needs its own") {
  const Graph g = stream();
  const Lines body = {"detach w after=a", "prefetch w after=c before=a"};
  Lines both = {"prefetch w iteration=first"};
  both.insert(both.end(), body.begin(), body.end());
  for (int iterations : {1, 2, 3, 50}) CHECK(found(g, tiny_plan(g, both, {"w"}), iterations).empty());
  CHECK(found(g, tiny_plan(g, body, {"w"}), 1) == Lines{"read-absent"});
  // With w in HBM from the start it has no pool copy yet; a first-only store makes one.
  CHECK(found(g, tiny_plan(g, body), 1) == Lines{"detach-last-copy"});
  Lines stored = {"store w iteration=first"};
  stored.insert(stored.end(), body.begin(), body.end());
  for (int iterations : {1, 2, 3, 50}) CHECK(found(g, tiny_plan(g, stored), iterations).empty());
}

TEST_CASE("a body that isn't repeatable is found in the second iteration, and reported once") {
  const Graph g = stream();
  const Plan plan = tiny_plan(g, {"store v", "detach v after=c"});
  CHECK(found(g, plan, 1).empty());
  const auto broken = check_tiny(g, plan, 1000, 1000, 20);
  REQUIRE(rules(broken) == Lines{"store-absent", "read-absent"});
  for (const Violation& v : broken) {
    CHECK(v.iteration == 1);
    CHECK(v.message.find("in iteration 2") != std::string::npos);
  }
  CHECK(found(g, tiny_plan(g, {"store v"}), 1).empty());
  CHECK(found(g, tiny_plan(g, {"store v"}), 2) == Lines{"store-valid"});
  CHECK(found(g, tiny_plan(g, {"store v iteration=first"}), 2).empty());
}

TEST_CASE("later-only actions stand in the second iteration and after") {
  const Graph g = stream();
  const Plan plan = tiny_plan(g, {"store v iteration=later", "detach v after=a iteration=later",
                                  "prefetch v after=b iteration=later"});
  CHECK(found(g, plan, 1).empty());
  CHECK(found(g, plan, 2).empty());
  CHECK(found(g, plan, 3) == Lines{"store-valid"});
}

TEST_CASE("an action of other iterations moves nobody") {
  // In the first iteration the detach stands behind c, in later ones the prefetch is the first again.
  const Graph g = tiny_graph({"w weight 10"}, {"a reads=w", "b", "c reads=w", "d"});
  const Lines actions = {"store w iteration=first", "detach w after=c iteration=first",
                         "prefetch w after=d iteration=first", "detach w after=a iteration=later",
                         "prefetch w after=b iteration=later"};
  for (int iterations : {1, 2, 3}) CHECK(found(g, tiny_plan(g, actions), iterations).empty());
}

TEST_CASE("tensors that aren't persistent start over in each iteration") {
  const Graph g = tiny_graph({"i input 10", "x activation 10"}, {"a reads=i writes=x", "b", "c reads=x,i"});
  const Plan plan = tiny_plan(g, {"store x after=a", "detach x after=a", "prefetch x after=b", "store i",
                                  "detach i after=a", "prefetch i after=b"});
  for (int iterations : {1, 2, 3}) CHECK(found(g, plan, iterations).empty());
  // A prefetch behind the last op is for a next iteration that it won't live to see.
  CHECK(found(g, tiny_plan(g, {"prefetch x after=c"}), 2) == Lines{"dead"});
}

TEST_CASE("what was accessed since its prefetch is remembered across iterations") {
  const Graph g = tiny_graph({"w weight 10"}, {"a", "b reads=w", "c"});
  const Lines trailing = {"store w iteration=first", "detach w after=b", "prefetch w after=c"};
  CHECK(found(g, tiny_plan(g, trailing), 3).empty());
  const Lines early = {"store w iteration=first", "detach w after=a", "prefetch w after=a",
                       "detach w after=b", "prefetch w after=c"};
  CHECK(found(g, tiny_plan(g, early), 1).empty());
  CHECK(found(g, tiny_plan(g, early), 2) == Lines{"detach-unaccessed"});
}

TEST_CASE("transfers that nothing waits for may wait for ever, over all iterations") {
  // v's store (first only) finds no pool room and blocks its queue, in which nothing else stands.
  const Graph g = tiny_graph({"w weight 10", "v weight 10"}, {"a reads=w", "b reads=v"});
  const Plan plan = tiny_plan(g, {"store v iteration=first"});
  CHECK(rules(check_tiny(g, plan, 20, 5, 1)).empty());
  CHECK(rules(check_tiny(g, plan, 20, 5, 20000)).empty());
}

TEST_CASE("a transfer that waits for ever blocks the next iteration's behind it") {
  const Graph g = tiny_graph({"v weight 10", "x activation 4", "y activation 1"},
                             {"a writes=x", "b", "c reads=x writes=y", "d reads=y"});
  const Plan plan = tiny_plan(
      g, {"store x after=a", "detach x after=a", "prefetch x after=b", "store v after=d iteration=first"});
  CHECK(rules(check_tiny(g, plan, 20, 14, 3)).empty());
  CHECK(rules(check_tiny(g, plan, 20, 9, 1)).empty());
  const auto broken = check_tiny(g, plan, 20, 9, 3);
  REQUIRE(rules(broken) == Lines{"stuck"});
  CHECK(broken.front().iteration == 1);
  CHECK(broken.front().step == OpId(2));
  INFO(broken.front().message);
  CHECK(broken.front().message.find(
            "queued behind the store of \"v\" behind op \"d\" (actions[3]) of iteration 1") !=
        std::string::npos);
}

TEST_CASE("what is stuck from the third iteration on is found there") {
  // The first iteration puts w back into the pool, the second leaves it in HBM for the third.
  const Graph g = tiny_graph({"w weight 10 pool", "x activation 15"}, {"a writes=x", "b writes=w"});
  const Plan plan = tiny_plan(g, {"store w after=b iteration=first", "detach w after=b iteration=first"});
  CHECK(rules(check_tiny(g, plan, 24, 10, 2)).empty());
  CHECK(rules(check_tiny(g, plan, 25, 10, 1000)).empty());
  const auto broken = check_tiny(g, plan, 24, 10, 1000);
  REQUIRE(rules(broken) == Lines{"stuck"});
  CHECK(broken.front().iteration == 2);
  CHECK(broken.front().step == OpId(0));
}

TEST_CASE("a hundred thousand ops and actions are checked in a blink") {
  // A stream of 25,000 weights through 3 engines' ops: each is stored once, fetched and given up.
  constexpr int kOps = 100'000, kWeights = 25'000;
  GraphSpec spec;
  spec.engines = {"compute", "comm", "host"};
  Plan plan;
  for (int w = 0; w < kWeights; ++w) {
    spec.tensors.push_back({fmt::format("w{}", w), Bytes(100), TensorKind::kWeight, true, Tier::kPool});
    spec.tensors.push_back({fmt::format("x{}", w), Bytes(10), TensorKind::kActivation, false, Tier::kHbm});
  }
  for (int i = 0; i < kOps; ++i) {
    Op op;
    op.name = fmt::format("op{}", i);
    op.duration = Seconds(1e-6);
    op.engine = EngineId(i % 4 == 3 ? 1 + i / 4 % 2 : 0);
    const int w = i / 4;
    op.reads = {TensorId(2 * w)};
    if (i % 4 == 0) op.writes = {TensorId(2 * w + 1)};
    if (i % 4 > 0) op.reads.emplace_back(2 * w + 1);
    if (i >= 4) op.after = {OpId(i - 4)};
    spec.ops.push_back(op);
    const auto piece = [&](ActionKind kind, int after, int from, int to) {
      plan.actions.push_back(
          {kind, TensorId(2 * w), OpId(after), OpId::none(), Bytes(from), Bytes(to), IterationScope::kEvery});
    };
    if (i % 4 == 0) {
      piece(ActionKind::kPrefetch, i - 1, 0, 50);
      piece(ActionKind::kPrefetch, i - 1, 50, 100);
    }
    if (i % 4 == 3) {
      piece(ActionKind::kDetach, i, 0, 50);
      piece(ActionKind::kDetach, i, 50, 100);
    }
  }
  const Graph g = build_graph(std::move(spec));
  REQUIRE(plan.actions.size() == kOps);
  const std::clock_t start = std::clock();  // of this process alone: the machine may be busy
  CHECK(check_plan(g, plan, {Bytes(100'000'000), Bytes(100'000'000)}, 1000).empty());
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  INFO(took << " s");
  CHECK(took < 5.0);  // 0.1 s for the three iterations that differ
}

TEST_CASE("many iterations cost as little as a few") {
  Lines tensors, ops, actions, pool;
  for (int i = 0; i < 500; ++i) {
    tensors.push_back(fmt::format("w{} weight 10", i));
    ops.push_back(fmt::format("o{0} reads=w{0}", i));
    pool.push_back(fmt::format("w{}", i));
    actions.push_back(fmt::format("prefetch w{}{}", i, i == 0 ? "" : fmt::format(" after=o{}", i - 1)));
    actions.push_back(fmt::format("detach w{0} after=o{0}", i));
  }
  const Graph g = tiny_graph(tensors, ops);
  const Plan plan = tiny_plan(g, actions, pool);
  const std::clock_t start = std::clock();  // of this process alone: the machine may be busy
  CHECK(rules(check_tiny(g, plan, 20, 5000, 1'000'000'000)).empty());
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(took < 2.0);  // a few ms; one by one it would be hours
}
