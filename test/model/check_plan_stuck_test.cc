// Could the plan get stuck? Tiny cases around the byte where the answer changes.
#include <fmt/format.h>

#include "test/model/tiny.h"
#include "test/support/catch.h"

using namespace hyperoffload;

namespace {

constexpr std::int64_t kRoomy = 1'000'000;
constexpr std::int64_t kMaxBytes = INT64_MAX;

bool fits(const Graph& graph, const Plan& plan, std::int64_t hbm, std::int64_t pool, int iterations = 1) {
  const auto found = check_tiny(graph, plan, hbm, pool, iterations);
  if (!found.empty()) CHECK(rules(found) == Lines{"stuck"});
  return found.empty();
}

std::string message(const Graph& graph, const Plan& plan, std::int64_t hbm, std::int64_t pool,
                    int iterations = 1) {
  const auto found = check_tiny(graph, plan, hbm, pool, iterations);
  return found.size() == 1 ? found.front().message : "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("births, missing bytes of pure writes and workspace need room at once") {
  // At a: w 10 + x 20 + missing v 5 + workspace 7.
  const Graph g =
      tiny_graph({"w weight 10", "v weight 5 pool", "x activation 20"}, {"a reads=w writes=x,v workspace=7"});
  CHECK(fits(g, tiny_plan(g, {}), 10 + 20 + 5 + 7, 5));
  const std::string text = message(g, tiny_plan(g, {}), 10 + 20 + 5 + 7 - 1, 5);
  CHECK(has(text, "\"a\" can't start"));
  CHECK(has(text, "32 B of HBM"));
  CHECK(has(text, "31 B of 41 B are free, 1 B short"));
  CHECK(has(text, "largest residents: \"w\" 10 B"));
}

TEST_CASE("deaths and workspace of earlier ops make room") {
  const Graph g = tiny_graph({"x activation 20", "y activation 20"},
                             {"a writes=x workspace=20", "b reads=x workspace=20", "c writes=y"});
  CHECK(fits(g, tiny_plan(g, {}), 40, 0));
  CHECK_FALSE(fits(g, tiny_plan(g, {}), 39, 0));
}

TEST_CASE("an eager prefetch that fills HBM keeps an output from its room") {
  // w (10) is meant for c; prefetched behind a it may be there before b's output y (10) is born.
  const Graph g = tiny_graph({"w weight 10 pool", "x activation 10", "y activation 10"},
                             {"a writes=x", "b reads=x writes=y", "c reads=w,y"});
  CHECK(fits(g, tiny_plan(g, {"prefetch w after=b"}), 20, 10));
  CHECK(fits(g, tiny_plan(g, {"prefetch w after=a"}), 30, 10));
  const auto found = check_tiny(g, tiny_plan(g, {"prefetch w after=a"}), 29, 10);
  REQUIRE(rules(found) == Lines{"stuck"});
  CHECK(found.front().step == OpId(1));
  CHECK(has(found.front().message, "\"b\" can't start"));
  CHECK(has(found.front().message, "1 B short"));
  CHECK(has(found.front().message, "\"w\" 10 B, \"x\" 10 B"));
}

TEST_CASE("a detach gives its bytes back once its store is done, and only then") {
  const Graph g = tiny_graph({"x activation 10", "y activation 10"},
                             {"a writes=x", "b writes=y", "c reads=y", "d reads=x"});
  CHECK(fits(g, tiny_plan(g, {"store x after=a", "detach x after=a", "prefetch x after=c"}), 10, 10));
  CHECK_FALSE(fits(g, tiny_plan(g, {"store x after=a", "detach x after=a", "prefetch x after=c"}), 9, 10));
  // The pool has no room for the copy, so x stays and y has no room.
  const std::string text =
      message(g, tiny_plan(g, {"store x after=a", "detach x after=a", "prefetch x after=c"}), 10, 9);
  CHECK(has(text, "\"b\" can't start"));
  CHECK(has(text, "of HBM"));
}

TEST_CASE("an op waits for a prefetch that finds no room") {
  const Graph g = tiny_graph({"w weight 10 pool", "v weight 20"}, {"a", "b reads=v,w"});
  CHECK(fits(g, tiny_plan(g, {"prefetch w after=a"}), 30, 10));
  const auto found = check_tiny(g, tiny_plan(g, {"prefetch w after=a"}), 29, 10);
  REQUIRE(rules(found) == Lines{"stuck"});
  CHECK(found.front().step == OpId(1));
  CHECK(found.front().action == 0);
  CHECK(has(found.front().message,
            "\"b\" can't start, nothing more can move: it waits for the prefetch of \"w\" behind op \"a\""));
  CHECK(has(found.front().message, "1 B short; largest residents: \"v\" 20 B"));
}

TEST_CASE("a head that can't go blocks those behind it") {
  // b reads w1, but w0 stands before it in the file and can't start before c.
  const Graph g =
      tiny_graph({"w0 weight 10 pool", "w1 weight 10 pool"}, {"a", "b reads=w1", "c", "d reads=w0"});
  CHECK(fits(g, tiny_plan(g, {"prefetch w1 after=a", "prefetch w0 after=c"}), 20, 20));
  const std::string text = message(g, tiny_plan(g, {"prefetch w0 after=c", "prefetch w1 after=a"}), 20, 20);
  CHECK(has(text, "\"b\" can't start"));
  CHECK(has(text,
            "the prefetch of \"w1\" behind op \"a\" (actions[1]), queued behind the prefetch of \"w0\" "
            "behind op \"c\""));
  CHECK(has(text, "waits for op \"c\", which comes later"));
}

TEST_CASE("a head without room blocks those behind it, though they would fit") {
  const Graph g = tiny_graph({"big weight 100 pool", "w weight 10 pool"}, {"a", "b reads=w", "c reads=big"});
  CHECK(fits(g, tiny_plan(g, {"prefetch w after=a", "prefetch big after=a"}), 110, 110));
  CHECK_FALSE(fits(g, tiny_plan(g, {"prefetch big after=a", "prefetch w after=a"}), 109, 110));
  // Behind b nothing needs w any more, but big's place in the queue is before it.
  CHECK(fits(g, tiny_plan(g, {"prefetch w after=a", "detach w after=b", "prefetch big after=b"}), 100, 110));
  CHECK(has(message(g, tiny_plan(g, {"prefetch big after=a", "prefetch w after=a"}), 99, 110),
            "queued behind the prefetch of \"big\""));
}

TEST_CASE("the two directions have queues of their own") {
  const Graph g = tiny_graph({"w weight 10 pool", "v weight 10"}, {"a reads=v", "b reads=w", "c reads=v"});
  // The store can't get pool room (10 of 15 are w's own), which nobody waits for.
  CHECK(fits(g, tiny_plan(g, {"store v", "prefetch w after=a"}), 20, 15));
}

TEST_CASE("a writer waits for an earlier store, a reader does not") {
  const Graph read = tiny_graph({"v weight 10"}, {"a", "b reads=v", "c"});
  CHECK(fits(read, tiny_plan(read, {"store v after=a"}), 10, 9));
  const Graph write = tiny_graph({"v weight 10"}, {"a", "b reads=v writes=v", "c"});
  CHECK(fits(write, tiny_plan(write, {"store v after=a"}), 10, 10));
  const std::string text = message(write, tiny_plan(write, {"store v after=a"}), 10, 9);
  CHECK(has(text, "\"b\" can't start"));
  CHECK(has(text, "it waits for the store of \"v\" behind op \"a\" (actions[0]), which needs 10 B of pool"));
  CHECK(has(text, "10 B of pool but 9 B of 9 B are free, 1 B short"));
}

TEST_CASE("a pool op waits for an earlier store") {
  const Graph g = tiny_graph({"v weight 10"}, {"a", "b reads=v memory=pool", "c"});
  CHECK(fits(g, tiny_plan(g, {"store v after=a"}), 10, 10));
  CHECK_FALSE(fits(g, tiny_plan(g, {"store v after=a"}), 10, 9));
}

TEST_CASE("pool bytes stay a tensor's own until it dies") {
  // x's second store reuses its bytes; y's comes while x is alive, z's after its death.
  const Graph g =
      tiny_graph({"x activation 10", "y activation 10", "z activation 10"},
                 {"a writes=x", "b reads=x writes=x", "c reads=x", "d writes=z", "e", "f reads=z"});
  const Lines twice = {"store x after=a", "store x after=b", "detach x after=b", "prefetch x after=b"};
  CHECK(fits(g, tiny_plan(g, twice), kRoomy, 10));
  Lines and_z = twice;
  for (const char* line : {"store z after=d", "detach z after=d", "prefetch z after=e"})
    and_z.push_back(line);
  CHECK(fits(g, tiny_plan(g, and_z), kRoomy, 10));
  const Graph both =
      tiny_graph({"x activation 10", "z activation 10"}, {"a writes=x", "d writes=z", "e", "f reads=z,x"});
  const Lines two = {"store x after=a",  "detach x after=a",   "store z after=d",
                     "detach z after=d", "prefetch x after=e", "prefetch z after=e"};
  CHECK(fits(both, tiny_plan(both, two), kRoomy, 20));
  CHECK_FALSE(fits(both, tiny_plan(both, two), kRoomy, 19));
}

TEST_CASE("a store that waits for ever keeps a later one, and the op behind it, from going") {
  const Graph g = tiny_graph({"v weight 10", "x activation 10", "y activation 10"},
                             {"a writes=x", "b reads=x memory=pool", "c writes=y"});
  CHECK(fits(g, tiny_plan(g, {"store x after=a"}), 20, 10));
  CHECK_FALSE(fits(g, tiny_plan(g, {"store v", "store x after=a"}), 20, 10));
}

TEST_CASE("births and missing bytes of pool ops, and their workspace, need pool room") {
  const Graph g = tiny_graph({"w weight 10", "v weight 5", "x activation 20"},
                             {"a reads=w writes=x workspace=7 memory=pool", "b reads=x memory=pool"});
  const Plan plan = tiny_plan(g, {}, {"w"});
  CHECK(fits(g, plan, 5, 10 + 20 + 7));
  const std::string text = message(g, plan, 5, 10 + 20 + 7 - 1);
  CHECK(has(text, "\"a\" can't start"));
  CHECK(has(text, "27 B of pool but 26 B of 36 B are free, 1 B short; largest residents: \"w\" 10 B"));
}

TEST_CASE("inputs are taken together at each iteration's start") {
  const Graph g = tiny_graph({"i input 10", "j input 5", "w weight 3"}, {"a reads=i", "b reads=j"});
  CHECK(fits(g, tiny_plan(g, {}), 18, 0));
  const auto found = check_tiny(g, tiny_plan(g, {}), 17, 0);
  REQUIRE(rules(found) == Lines{"stuck"});
  CHECK(found.front().step.is_none());
  CHECK(has(found.front().message, "the inputs can't start"));
  CHECK(has(found.front().message,
            "15 B of HBM but 14 B of 17 B are free, 1 B short; largest residents: \"w\" 3 B"));
}

TEST_CASE("trailing prefetches may fill HBM before the second iteration's inputs come") {
  const Graph g = tiny_graph({"i input 10", "w weight 10"}, {"a reads=i", "b reads=w"});
  const Lines actions = {"prefetch w after=a iteration=first", "detach w after=b", "prefetch w after=b"};
  CHECK(fits(g, tiny_plan(g, actions, {"w"}), 10, 10, 1));
  CHECK(fits(g, tiny_plan(g, actions, {"w"}), 20, 10, 2));
  const auto found = check_tiny(g, tiny_plan(g, actions, {"w"}), 19, 10, 2);
  REQUIRE(rules(found) == Lines{"stuck"});
  CHECK(found.front().iteration == 1);
  CHECK(found.front().step.is_none());
  CHECK(has(found.front().message, "the inputs can't start in iteration 2"));
}

TEST_CASE("prefetches at the iteration's start go before its inputs") {
  const Graph g = tiny_graph({"i input 10", "w weight 10 pool"}, {"a reads=i", "b reads=w"});
  CHECK(fits(g, tiny_plan(g, {"prefetch w after=a"}), 10, 10));
  CHECK(fits(g, tiny_plan(g, {"prefetch w"}), 20, 10));
  CHECK_FALSE(fits(g, tiny_plan(g, {"prefetch w"}), 19, 10));
}

TEST_CASE("a store of an input waits for its bytes") {
  const Graph g = tiny_graph({"i input 10", "x activation 10"}, {"a writes=x", "b reads=x", "c reads=i"});
  CHECK(fits(g, tiny_plan(g, {"store i", "detach i", "prefetch i after=b"}), 10, 10, 3));
  CHECK_FALSE(fits(g, tiny_plan(g, {"store i", "detach i", "prefetch i after=b"}), 10, 9, 1));
}

TEST_CASE("what is stuck only in a later iteration is found there") {
  // Each iteration grows nothing, but the second starts with both weights in HBM.
  const Graph g = tiny_graph({"w weight 10 pool", "v weight 10 pool", "x activation 5"},
                             {"a reads=w writes=x", "b reads=x", "c reads=v"});
  const Lines actions = {"prefetch w iteration=first", "detach w after=a",
                         "prefetch v after=b iteration=first", "prefetch w after=c"};
  CHECK(fits(g, tiny_plan(g, actions), 20, 20, 1));
  CHECK(fits(g, tiny_plan(g, actions), 25, 20, 2));
  const auto found = check_tiny(g, tiny_plan(g, actions), 24, 20, 20);
  REQUIRE(rules(found) == Lines{"stuck"});
  CHECK(found.front().iteration == 1);
  CHECK(found.front().step == OpId(0));
}

TEST_CASE("with two engines an op is charged with the later ops that don't depend on it") {
  // b (comm) is independent of a: both outputs may be there at once.
  const auto graph = [](const std::string& b) {
    return tiny_graph({"x activation 10", "y activation 20"}, {"a writes=x", b});
  };
  const Graph one = graph("b writes=y");
  CHECK(fits(one, tiny_plan(one, {}), 20, 0));
  const Graph two = graph("b writes=y engine=comm");
  CHECK(fits(two, tiny_plan(two, {}), 30, 0));
  const std::string text = message(two, tiny_plan(two, {}), 29, 0);
  CHECK(has(text, "\"a\" can't start"));
  CHECK(has(text, "10 B of HBM, and 20 B for later ops that don't depend on it"));
  CHECK(has(text, "1 B short"));
  const Graph after = graph("b writes=y engine=comm after=a");
  CHECK(fits(after, tiny_plan(after, {}), 20, 0));
}

TEST_CASE("dependence of later ops is transitive, through data, after and engine order") {
  // d depends on a through b (data) and c (engine order); so only e is a's charge.
  const Graph g = tiny_graph({"x activation 10", "y activation 20", "z activation 40", "u activation 80"},
                             {"a writes=x", "e writes=u engine=other", "b reads=x writes=y engine=comm",
                              "c engine=comm", "d writes=z engine=third after=c"});
  // At a: x + u. At e (u, not dependent: b's y and d's z): u + y + z, x still alive.
  CHECK(fits(g, tiny_plan(g, {}), 10 + 80 + 20 + 40, 0));
  const std::string text = message(g, tiny_plan(g, {}), 10 + 80 + 20 + 40 - 1, 0);
  CHECK(has(text, "\"e\" can't start"));
  CHECK(has(text, "80 B of HBM, and 60 B for later ops"));
}

TEST_CASE("an op that depends on a dependent one on a third engine is no charge") {
  // x (10) is dead before d takes z (40): b reads it, and d runs after b.
  const Graph g = tiny_graph({"x activation 10", "z activation 40"},
                             {"a writes=x", "b reads=x engine=comm", "d writes=z engine=third after=b"});
  CHECK(fits(g, tiny_plan(g, {}), 40, 0));
  CHECK_FALSE(fits(g, tiny_plan(g, {}), 39, 0));
}

TEST_CASE("an op that takes nothing is charged all the same") {
  // b may take y before a's weight comes, and y lives until c, which runs after a.
  const Graph g = tiny_graph({"w weight 10 pool", "y activation 20"},
                             {"a reads=w", "b writes=y engine=comm", "c reads=y"});
  CHECK(fits(g, tiny_plan(g, {"prefetch w"}), 30, 10));
  const std::string text = message(g, tiny_plan(g, {"prefetch w", "detach w after=a"}), 29, 10);
  CHECK(has(text, "\"a\" can't start"));
  CHECK(has(text, "needs 0 B of HBM, and 20 B for later ops"));
}

TEST_CASE("the charge counts workspace and missing bytes of pure writes, in the op's tier") {
  const Graph g = tiny_graph({"w weight 20 pool", "x activation 10"},
                             {"a writes=x", "b writes=w workspace=5 engine=comm"});
  CHECK(fits(g, tiny_plan(g, {}), 10 + 20 + 5, 20));
  CHECK_FALSE(fits(g, tiny_plan(g, {}), 10 + 20 + 5 - 1, 20));
  const Graph pool =
      tiny_graph({"w weight 20 pool", "x activation 10", "y activation 7"},
                 {"a writes=x memory=pool", "b writes=w,y workspace=5 engine=comm memory=pool"});
  CHECK(fits(pool, tiny_plan(pool, {}), 0, 20 + 10 + 7 + 5));
  const std::string text = message(pool, tiny_plan(pool, {}), 0, 20 + 10 + 7 + 5 - 1);
  CHECK(has(text, "10 B of pool, and 12 B for later ops"));
}

TEST_CASE("the charge counts the prefetches anchored on those later ops") {
  const Graph g =
      tiny_graph({"w weight 20 pool", "x activation 10"}, {"a writes=x", "b engine=comm", "c reads=w"});
  CHECK(fits(g, tiny_plan(g, {"prefetch w after=b"}), 30, 20));
  const std::string text = message(g, tiny_plan(g, {"prefetch w after=b"}), 29, 20);
  CHECK(has(text, "\"a\" can't start"));
  CHECK(has(text, "and 20 B for later ops that don't depend on it and their prefetches"));
  // Anchored on an op that depends on a, it is not charged: x is dead by then.
  CHECK(fits(g, tiny_plan(g, {"prefetch w after=a"}), 20, 20));
}

TEST_CASE("charges are made with each iteration's own missing bytes and prefetches") {
  // w is in the pool for iteration 1 only; b's pure write misses it there.
  const Graph g =
      tiny_graph({"w weight 20 pool", "x activation 10"}, {"a writes=x", "b writes=w engine=comm"});
  CHECK(fits(g, tiny_plan(g, {}), 30, 20, 3));
  // A later-only prefetch is no charge in the first.
  const Graph h =
      tiny_graph({"w weight 20 pool", "x activation 10"}, {"a writes=x", "b engine=comm", "c reads=w"});
  const Lines actions = {"prefetch w after=a iteration=first", "detach w after=c",
                         "prefetch w after=b iteration=later"};
  const auto found = check_tiny(h, tiny_plan(h, actions), 29, 20, 2);
  CHECK(rules(found).size() == 1);
}

TEST_CASE("sums of the largest sizes don't overflow") {
  Lines tensors, ops;
  for (int i = 0; i < 5; ++i) {
    tensors.push_back(fmt::format("x{} activation {}", i, kMaxBytes));
    ops.push_back(
        fmt::format("a{0} writes=x{0}{1} workspace={2}", i, i % 2 ? " engine=comm" : "", kMaxBytes));
  }
  const Graph g = tiny_graph(tensors, ops);
  const auto found = check_tiny(g, tiny_plan(g, {}), kMaxBytes, kMaxBytes);
  REQUIRE(rules(found) == Lines{"stuck"});
  // a0: x0 and its workspace; a1 and a3 with theirs are charged.
  CHECK(has(found.front().message, "it needs 18446744073709551614 B"));
  CHECK(has(found.front().message, "36893488147419103228 B"));
  const Graph start = tiny_graph({"w0 weight 9223372036854775807", "w1 weight 9223372036854775807"}, {"a"});
  CHECK(rules(check_tiny(start, tiny_plan(start, {}), kMaxBytes, kMaxBytes)) == Lines{"start-hbm"});
  CHECK(check_tiny(start, tiny_plan(start, {}, {"w1"}), kMaxBytes, kMaxBytes).empty());
}

TEST_CASE("tensors of no bytes need no room") {
  const Graph g = tiny_graph({"w weight 0", "x activation 0"}, {"a reads=w writes=x", "b reads=x"});
  CHECK(
      fits(g, tiny_plan(g, {"store w iteration=first", "detach w after=a", "prefetch w after=a"}), 0, 0, 4));
}
