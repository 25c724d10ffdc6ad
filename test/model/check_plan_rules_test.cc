// One tiny case a rule: the plan that keeps it, and its neighbour that breaks it.
#include <fmt/format.h>

#include "test/model/tiny.h"
#include "test/support/catch.h"

using namespace hyperoffload;

namespace {

constexpr std::int64_t kRoomy = 1'000'000;

// What is broken with plenty of room in both tiers.
std::vector<Violation> broken(const Graph& graph, const Plan& plan, int iterations = 1) {
  return check_tiny(graph, plan, kRoomy, kRoomy, iterations);
}

Lines one(const std::string& rule) { return {rule}; }

bool says(const std::vector<Violation>& found, const Lines& parts) {
  for (const std::string& part : parts)
    if (found.empty() || found.front().message.find(part) == std::string::npos) return false;
  return true;
}

// w is read twice with a gap of two ops; x is born, read twice with a gap, and dies.
Graph gaps() {
  return tiny_graph({"w weight 10", "x activation 8"}, {"a reads=w writes=x", "b", "c", "d reads=w,x", "e"});
}

}  // namespace

TEST_CASE("a plan without actions keeps every rule") {
  const Graph g = gaps();
  CHECK(broken(g, tiny_plan(g, {})).empty());
  CHECK(broken(g, tiny_plan(g, {}), 5).empty());
}

TEST_CASE("store, detach and prefetch between two reads keep every rule") {
  const Graph g = gaps();
  CHECK(broken(g, tiny_plan(g, {"store x after=a", "detach x after=a", "prefetch x after=b before=d"}))
            .empty());
  CHECK(broken(g, tiny_plan(g, {"store w", "detach w after=a", "prefetch w after=b"})).empty());
}

TEST_CASE("a tensor that isn't persistent can't be in initial_pool") {
  const Graph g = gaps();
  const auto found = broken(g, tiny_plan(g, {}, {"x"}));
  CHECK(rules(found) == one("initial-pool"));
  CHECK(says(found, {"\"x\""}));
}

TEST_CASE("what starts in HBM fits, to the byte") {
  const Graph g = tiny_graph({"w0 weight 10", "w1 weight 20", "w2 weight 30"}, {"a reads=w0"});
  CHECK(check_tiny(g, tiny_plan(g, {}), 60, 0).empty());
  const auto found = check_tiny(g, tiny_plan(g, {}), 59, 0);
  CHECK(rules(found) == one("start-hbm"));
  CHECK(says(found, {"60 B", "1 B more than its 59 B", "\"w2\" 30 B, \"w1\" 20 B, \"w0\" 10 B"}));
}

TEST_CASE("what starts in the pool fits, to the byte") {
  const Graph g = tiny_graph({"w0 weight 10", "w1 weight 20 pool"}, {"a"});
  CHECK(check_tiny(g, tiny_plan(g, {}, {"w0"}), 0, 30).empty());
  CHECK(rules(check_tiny(g, tiny_plan(g, {}, {"w0"}), 0, 29)) == one("start-pool"));
  CHECK(rules(check_tiny(g, tiny_plan(g, {}), 9, 19)) == Lines{"start-hbm", "start-pool"});
}

TEST_CASE("a persistent tensor takes its bytes even if nothing accesses it, another does not") {
  const Graph g = tiny_graph({"w weight 10", "i input 10", "x activation 10"}, {"a"});
  CHECK(check_tiny(g, tiny_plan(g, {}), 10, 0).empty());
  CHECK(rules(check_tiny(g, tiny_plan(g, {}), 9, 0)) == one("start-hbm"));
}

TEST_CASE("prefetching what is in HBM is an error") {
  const Graph g = gaps();
  const auto found = broken(g, tiny_plan(g, {"store w", "prefetch w after=b"}));
  CHECK(rules(found) == one("prefetch-resident"));
  CHECK(says(found, {"prefetch of \"w\" behind op \"b\"", "in HBM already"}));
  CHECK(found.front().step == OpId(1));
  CHECK(found.front().tensor == TensorId(0));
  CHECK(found.front().action == 1);
}

TEST_CASE("a prefetch that may have started counts as started") {
  const Graph g = gaps();
  CHECK(broken(g, tiny_plan(g, {"prefetch w"}, {"w"})).empty());
  const auto found = broken(g, tiny_plan(g, {"prefetch w", "prefetch w after=b"}, {"w"}));
  CHECK(rules(found) == one("prefetch-resident"));
  CHECK(found.front().action == 1);
}

TEST_CASE("prefetching without a valid pool copy is an error") {
  const Graph g = tiny_graph({"w weight 8"}, {"a reads=w writes=w", "b"});
  const auto never = broken(g, tiny_plan(g, {"prefetch w after=a"}));
  CHECK(rules(never) == one("prefetch-resident"));
  CHECK(says(never, {"no valid pool copy", "never stored"}));
  const auto stale = broken(g, tiny_plan(g, {"store w", "prefetch w after=a"}));
  CHECK(says(stale, {"no valid pool copy", "written by op \"a\""}));
}

TEST_CASE("what follows from a broken rule is not reported again") {
  const Graph g = tiny_graph({"x activation 8"}, {"a writes=x", "b", "c reads=x"});
  CHECK(rules(broken(g, tiny_plan(g, {"detach x after=a", "prefetch x after=b"}))) ==
        one("detach-last-copy"));
}

TEST_CASE("actions on what is not born yet are errors") {
  const Graph g = tiny_graph({"x activation 8"}, {"z", "a writes=x", "b", "c reads=x"});
  for (const char* kind : {"prefetch", "store", "detach"}) {
    const auto found = broken(g, tiny_plan(g, {std::string(kind) + " x after=z"}));
    CHECK(rules(found) == one("unborn"));
    CHECK(says(found, {kind, "\"x\"", "behind op \"z\"", "first write is op \"a\""}));
  }
  CHECK(broken(g, tiny_plan(g, {"store x after=a", "detach x after=b", "prefetch x after=b"})).empty());
}

TEST_CASE("actions on what is dead are errors") {
  const Graph g = tiny_graph({"x activation 8"}, {"a writes=x", "b reads=x", "c"});
  for (const char* kind : {"prefetch", "store", "detach"}) {
    CHECK(rules(broken(g, tiny_plan(g, {std::string(kind) + " x after=b"}))) == one("dead"));
    CHECK(rules(broken(g, tiny_plan(g, {std::string(kind) + " x after=c"}))) == one("dead"));
  }
}

TEST_CASE("actions on what never exists are errors") {
  const Graph g = tiny_graph({"x activation 8", "i input 8"}, {"a", "b"});
  const auto found = broken(g, tiny_plan(g, {"store x after=a", "store i"}));
  CHECK(rules(found) == Lines{"unborn", "unborn"});
  CHECK(says(found, {"no op accesses it"}));
}

TEST_CASE("an input lives from the iteration's start to its last access") {
  const Graph g = tiny_graph({"i input 8"}, {"a", "b reads=i", "c"});
  CHECK(broken(g, tiny_plan(g, {"store i", "detach i", "prefetch i after=a"})).empty());
  CHECK(rules(broken(g, tiny_plan(g, {"store i after=b"}))) == one("dead"));
}

TEST_CASE("storing what is not in HBM is an error") {
  const Graph g = gaps();
  const auto found = broken(
      g, tiny_plan(g, {"store x after=a", "detach x after=a", "store x after=b", "prefetch x after=c"}));
  CHECK(rules(found) == one("store-absent"));
  CHECK(says(found, {"store of \"x\" behind op \"b\"", "not in HBM", "\"a\""}));
  CHECK(rules(broken(g, tiny_plan(g, {"store w", "prefetch w"}, {"w"}))) == one("store-absent"));
}

TEST_CASE("storing what is valid in the pool already is an error") {
  const Graph g = gaps();
  CHECK(broken(g, tiny_plan(g, {"store w"})).empty());
  CHECK(rules(broken(g, tiny_plan(g, {"store w", "store w after=b"}))) == one("store-valid"));
  CHECK(rules(broken(g, tiny_plan(g, {"prefetch w", "store w after=b"}, {"w"}))) == one("store-valid"));
}

TEST_CASE("a write makes the pool copy stale, so that it may be stored again") {
  const Graph g = tiny_graph({"w weight 8"}, {"a reads=w", "b reads=w writes=w", "c"});
  CHECK(broken(g, tiny_plan(g, {"store w after=a", "store w after=b"})).empty());
  CHECK(rules(broken(g, tiny_plan(g, {"store w after=b", "store w after=c"}))) == one("store-valid"));
}

TEST_CASE("storing what is about to die undetached is an error") {
  const Graph g = gaps();
  const auto found = broken(g, tiny_plan(g, {"store x after=a"}));
  CHECK(rules(found) == one("store-undetached"));
  CHECK(says(found, {"store of \"x\" behind op \"a\"", "die behind op \"d\""}));
  CHECK(broken(g, tiny_plan(g, {"store w after=a"})).empty());  // persistent: it doesn't die
}

TEST_CASE("a store whose copy a pool op reads needs no detach") {
  const Graph g = tiny_graph({"x activation 8"}, {"a writes=x", "b reads=x memory=pool"});
  CHECK(broken(g, tiny_plan(g, {"store x after=a"})).empty());
  CHECK(broken(g, tiny_plan(g, {"store x after=a", "detach x after=a"})).empty());
}

TEST_CASE("a detach without a valid pool copy would lose the last one") {
  const Graph g = tiny_graph({"w3 weight 8"}, {"a reads=w3", "opt.3 reads=w3 writes=w3", "mlp.5 reads=w3"});
  CHECK(broken(g, tiny_plan(g, {"store w3 after=opt.3", "detach w3 after=mlp.5"})).empty());
  const auto never = broken(g, tiny_plan(g, {"detach w3 after=mlp.5"}));
  CHECK(rules(never) == one("detach-last-copy"));
  CHECK(says(never, {"never stored"}));
  const auto stale = broken(g, tiny_plan(g, {"store w3 after=a", "detach w3 after=mlp.5"}));
  CHECK(rules(stale) == one("detach-last-copy"));
  CHECK(stale.front().message ==
        "detach of \"w3\" behind op \"mlp.5\" (actions[1]): no valid pool copy (written by op \"opt.3\" "
        "since its last store), "
        "its last "
        "copy would be lost");
}

TEST_CASE("detaching what is not in HBM is an error") {
  const Graph g = gaps();
  CHECK(rules(broken(g, tiny_plan(g, {"detach w"}, {"w"}))) == Lines{"detach-absent", "read-absent"});
  const auto found =
      broken(g, tiny_plan(g, {"store w", "detach w after=a", "detach w after=b", "prefetch w after=c"}));
  CHECK(rules(found) == one("detach-absent"));
}

TEST_CASE("detaching what nothing accessed since its prefetch is an error") {
  const Graph g = tiny_graph({"w weight 8"}, {"a", "b reads=w", "c"});
  CHECK(broken(g, tiny_plan(g, {"prefetch w", "detach w after=b"}, {"w"})).empty());
  const auto found = broken(g, tiny_plan(g, {"prefetch w", "detach w after=a", "prefetch w after=a"}, {"w"}));
  CHECK(rules(found) == one("detach-unaccessed"));
  CHECK(says(found, {"detach of \"w\" behind op \"a\""}));
  // What started in HBM was not prefetched.
  CHECK(broken(g, tiny_plan(g, {"store w", "detach w after=a", "prefetch w after=a"})).empty());
}

TEST_CASE("a pure write counts as an access of what was prefetched") {
  const Graph g = tiny_graph({"w weight 8"}, {"a", "b writes=w", "c"});
  CHECK(broken(g, tiny_plan(g, {"prefetch w", "store w after=b", "detach w after=b"}, {"w"})).empty());
}

TEST_CASE("a reader needs all its bytes") {
  const Graph g = gaps();
  CHECK(broken(g, tiny_plan(g, {"prefetch w"}, {"w"})).empty());
  const auto found = broken(g, tiny_plan(g, {"prefetch w after=a"}, {"w"}));
  CHECK(rules(found) == one("read-absent"));
  CHECK(says(found, {"\"a\" reads \"w\"", "no prefetch"}));
  CHECK(found.front().step == OpId(0));
  CHECK(found.front().tensor == TensorId(0));
  const auto gone = broken(g, tiny_plan(g, {"store x after=a", "detach x after=b"}));
  CHECK(rules(gone) == one("read-absent"));
  CHECK(says(gone, {"\"d\" reads \"x\"", "detach behind op \"b\""}));
  const auto half = broken(g, tiny_plan(g, {"prefetch w range=0:4"}, {"w"}));
  CHECK(rules(half) == one("read-absent"));
  CHECK(says(half, {"bytes [4, 10)"}));
}

TEST_CASE("an update in place needs the old bytes, a pure write does not") {
  const Graph update = tiny_graph({"w weight 8 pool"}, {"a reads=w writes=w"});
  CHECK(rules(broken(update, tiny_plan(update, {}))) == one("read-absent"));
  const Graph write = tiny_graph({"w weight 8 pool"}, {"a writes=w", "b reads=w"});
  CHECK(broken(write, tiny_plan(write, {})).empty());
  CHECK(rules(broken(write, tiny_plan(write, {"detach w after=a"}))) ==
        Lines{"detach-last-copy", "read-absent"});
}

TEST_CASE("a prefetch stands behind the tensor's previous action where that one stands later") {
  // The prefetch's own after_op is earlier than its detach's: it follows the detach.
  const Graph g = gaps();
  CHECK(broken(g, tiny_plan(g, {"store x after=a", "detach x after=b", "prefetch x after=a"})).empty());
  // With the detach behind the reader, the prefetch would come too late for it and stand behind death.
  const auto found = broken(g, tiny_plan(g, {"store x after=a", "detach x after=d", "prefetch x after=a"}));
  CHECK(rules(found) == Lines{"store-undetached", "dead", "dead"});
}

TEST_CASE("before_op is not later than the first reader") {
  const Graph g = tiny_graph({"w weight 8"}, {"a", "b", "c reads=w", "d reads=w", "e"});
  const auto with = [&](const std::string& before) {
    return broken(g, tiny_plan(g, {"prefetch w after=a before=" + before}, {"w"}));
  };
  CHECK(with("b").empty());
  CHECK(with("c").empty());
  const auto found = with("d");
  CHECK(rules(found) == one("before-op"));
  CHECK(says(found, {"prefetch of \"w\" behind op \"a\"", "`before_op` op \"d\"", "\"c\""}));
  // Not after after_op: the next iteration's, and "c" of this one reads it first.
  CHECK(rules(with("a")) == one("before-op"));
}

TEST_CASE("a wrap-around before_op is the next iteration's") {
  const Graph g = tiny_graph({"w weight 8"}, {"a reads=w", "b reads=w", "c"});
  const auto with = [&](const std::string& before) {
    return tiny_plan(g,
                     {"store w iteration=first", "detach w after=b", "prefetch w after=c before=" + before});
  };
  for (int iterations : {1, 2, 5}) {
    CHECK(broken(g, with("a"), iterations).empty());
    CHECK(rules(broken(g, with("b"), iterations)) == one("before-op"));
  }
}

TEST_CASE("a range must lie within the tensor") {
  const Graph g = gaps();
  CHECK(broken(g, tiny_plan(g, {"store w range=0:10"})).empty());
  CHECK(rules(broken(g, tiny_plan(g, {"store w range=0:11"}))) == one("range"));
  CHECK(rules(broken(g, tiny_plan(g, {"store w range=4:4"}))) == one("range"));
}

TEST_CASE("pieces of a tensor move on their own") {
  const Graph g = gaps();
  CHECK(broken(g, tiny_plan(g, {"store x after=a range=0:4", "detach x after=a range=0:4",
                                "prefetch x after=b range=0:4"}))
            .empty());
  CHECK(broken(g, tiny_plan(g, {"store x after=a range=0:4", "store x after=a range=4:8", "detach x after=b",
                                "prefetch x after=b range=2:8", "prefetch x after=c range=0:2"}))
            .empty());
}

TEST_CASE("a rule broken for any byte of a range is broken") {
  const Graph g = gaps();
  const auto found = [&](const Lines& actions) { return rules(broken(g, tiny_plan(g, actions))); };
  CHECK(found({"store x after=a range=0:4", "detach x after=a"}) == Lines{"detach-last-copy", "read-absent"});
  CHECK(found({"store x after=a range=0:4", "store x after=a", "detach x after=b", "prefetch x after=b"}) ==
        one("store-valid"));
  CHECK(found({"store x after=a", "detach x after=a range=0:4", "prefetch x after=b"}) ==
        Lines{"store-undetached", "prefetch-resident"});
  CHECK(found({"store x after=a", "detach x after=a range=0:4", "prefetch x after=b range=0:4"}) ==
        one("store-undetached"));
  CHECK(found({"store x after=a", "detach x after=a range=0:4", "detach x after=b", "prefetch x after=b"}) ==
        one("detach-absent"));
}

TEST_CASE("a pool op reads a valid pool copy") {
  const Graph g = tiny_graph({"w weight 8"}, {"a reads=w writes=w", "b reads=w memory=pool", "c"});
  CHECK(broken(g, tiny_plan(g, {"store w after=a"})).empty());
  const auto found = broken(g, tiny_plan(g, {"store w"}));
  CHECK(rules(found) == one("pool-read"));
  CHECK(says(found, {"\"b\" reads \"w\"", "written by op \"a\""}));
  CHECK(rules(broken(g, tiny_plan(g, {}))) == one("pool-read"));
}

TEST_CASE("a store that comes too late for a pool op is reported at the op alone") {
  const Graph g = tiny_graph({"w weight 8"}, {"a reads=w memory=pool", "b reads=w memory=pool", "c"});
  const auto found = broken(g, tiny_plan(g, {"store w after=b"}));
  CHECK(rules(found) == one("pool-read"));
  CHECK(found.front().step == OpId(0));
}

TEST_CASE("what a pool op writes is not in HBM, in any byte") {
  const Graph g = tiny_graph({"w weight 8"}, {"a reads=w", "b reads=w writes=w memory=pool", "c"});
  CHECK(broken(g, tiny_plan(g, {"store w", "detach w after=a"})).empty());
  const auto found = broken(g, tiny_plan(g, {"store w"}));
  CHECK(rules(found) == one("pool-write"));
  CHECK(says(found, {"\"b\" writes \"w\"", "in HBM"}));
  CHECK(rules(broken(g, tiny_plan(g, {"store w", "detach w after=a range=0:4"}))) == one("pool-write"));
}

TEST_CASE("what a pool op wrote has a valid pool copy") {
  const Graph g = tiny_graph({"w weight 8 pool", "x activation 4"},
                             {"a writes=w,x memory=pool", "b", "c reads=w,x", "d reads=w"});
  CHECK(broken(g, tiny_plan(g, {"prefetch w after=a", "prefetch x after=a"})).empty());
  CHECK(rules(broken(g, tiny_plan(g, {"prefetch w after=a"}))) == one("read-absent"));
  CHECK(rules(broken(g, tiny_plan(g, {"prefetch w after=a", "prefetch x after=a", "store w after=b"}))) ==
        one("store-valid"));
}

TEST_CASE("a pool op's reads are not the first reader of a prefetch") {
  const Graph g = tiny_graph({"w weight 8"}, {"a", "b reads=w memory=pool", "c reads=w"});
  CHECK(broken(g, tiny_plan(g, {"prefetch w after=a before=c"}, {"w"})).empty());
}

TEST_CASE("tensors of no bytes follow the same rules") {
  const Graph g = tiny_graph({"w weight 0", "x activation 0"}, {"a reads=w writes=x", "b", "c reads=x"});
  CHECK(check_tiny(g, tiny_plan(g, {"store x after=a", "detach x after=a", "prefetch x after=b"}), 0, 0)
            .empty());
  CHECK(rules(check_tiny(g, tiny_plan(g, {"prefetch w after=a"}), 0, 0)) == one("prefetch-resident"));
  CHECK(rules(check_tiny(g, tiny_plan(g, {"detach x after=a"}), 0, 0)) ==
        Lines{"detach-last-copy", "read-absent"});
}

TEST_CASE("an order keeps the trace's dependencies") {
  const Graph g = tiny_graph({"x activation 8", "y activation 8"},
                             {"a writes=x", "b writes=y", "c reads=x", "d reads=y", "e after=b"});
  const auto with = [&](const std::vector<int>& order) {
    Plan plan = tiny_plan(g, {});
    for (int op : order) plan.order.emplace_back(op);
    return broken(g, plan);
  };
  CHECK(with({0, 2, 1, 3, 4}).empty());
  CHECK(with({1, 3, 0, 4, 2}).empty());
  const auto found = with({2, 0, 1, 3, 4});
  CHECK(rules(found) == one("order"));
  CHECK(says(found, {"op \"c\" before op \"a\"", "\"x\""}));
  CHECK(found.front().step == OpId(2));
  CHECK(rules(with({0, 4, 1, 2, 3})) == one("order"));             // e runs after b
  CHECK(rules(with({0, 0, 1, 2, 3})) == Lines{"order", "order"});  // a twice, e never
}

TEST_CASE("the given order is the program order") {
  // In the trace's order x and y are alive together (16 B); in the plan's never.
  const Graph g = tiny_graph({"x activation 8", "y activation 8"},
                             {"a writes=x", "b writes=y", "c reads=x", "d reads=y"});
  Plan plan = tiny_plan(g, {});
  CHECK(rules(check_tiny(g, plan, 8, 0)) == one("stuck"));
  plan.order = {OpId(0), OpId(2), OpId(1), OpId(3)};
  CHECK(check_tiny(g, plan, 8, 0).empty());
  // Steps in a report are the trace's: behind c (second in the order) x is dead.
  plan.actions = tiny_plan(g, {"store x after=c"}).actions;
  const auto found = check_tiny(g, plan, 8, 8);
  CHECK(rules(found) == one("dead"));
  CHECK(found.front().step == OpId(2));
}

TEST_CASE("a long list of broken rules is cut with a count of the rest") {
  Lines tensors, actions;
  for (int i = 0; i < 150; ++i) {
    tensors.push_back(fmt::format("w{} weight 1", i));
    actions.push_back(fmt::format("prefetch w{}", i));
  }
  const Graph g = tiny_graph(tensors, {"a"});
  const auto found = broken(g, tiny_plan(g, actions));
  REQUIRE(found.size() == 101);
  CHECK(found[99].rule == "prefetch-resident");
  CHECK(found[100].message == "and 50 more broken rules");
}
