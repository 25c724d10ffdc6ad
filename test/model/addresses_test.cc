// Addresses of a plan: read and written, and judged without time. Bytes are small integers.
#include "sim/model/address_space.h"
#include "sim/model/error.h"
#include "test/model/tiny.h"
#include "test/support/catch.h"

using namespace hyperoffload;

namespace {

// w is in HBM from the start, x is born at a and dies with b; b has a workspace, v comes from the pool.
Graph graph() {
  return tiny_graph({"w weight 10", "v weight 6", "x activation 4"},
                    {"a reads=w writes=x", "b reads=x workspace=5", "c reads=v"});
}

Plan plan(const Graph& g) {
  Plan p = tiny_plan(g, {"detach w after=a", "prefetch v after=a"}, {"v"});
  p.actions.erase(p.actions.begin());  // w stays
  p.actions[0].offset = Bytes(19);
  p.addresses = {{TensorId(0), OpId::none(), Bytes(0)},
                 {TensorId(2), OpId(0), Bytes(10)},
                 {TensorId::none(), OpId(1), Bytes(14)}};
  p.arena = Bytes(25);
  return p;
}

std::string fault(const Graph& g, const Plan& p, std::int64_t hbm = 100) {
  const auto broken = check_tiny(g, p, hbm, 1000);
  if (broken.empty()) return "";
  CHECK(rules(broken) == Lines{"address"});
  return broken.front().message;
}

}  // namespace

TEST_CASE("an address space names who holds what is asked for, and gives back what was taken") {
  AddressSpace space;
  CHECK_FALSE(space.take(0, 10, 1));
  CHECK_FALSE(space.take(20, 30, 2));
  CHECK_FALSE(space.take(10, 20, 3));  // half-open: touches both
  for (const auto& [from, to, who] : {std::tuple{9, 10, 1}, {25, 40, 2}, {12, 20, 3}, {-5, 1, 1}}) {
    const auto other = space.take(from, to, 9);
    REQUIRE(other);
    CHECK(other->who == who);
  }
  space.give(10);
  CHECK_FALSE(space.take(12, 18, 4));
  CHECK_FALSE(space.take(10, 12, 5));
}

TEST_CASE("check passes addresses that never overlap, and those of what is never there at once") {
  const Graph g = graph();
  Plan p = plan(g);
  CHECK(fault(g, p) == "");
  // Workspace is gone before c, but v comes before b starts: only x's place is free once b is over.
  p.addresses[1].offset = Bytes(14);
  p.addresses[2].offset = Bytes(19);
  CHECK(fault(g, p).find("the workspace of op \"b\" is put at [19, 24), where \"v\"") != std::string::npos);
}

TEST_CASE("check names both that overlap, the op by which they do, and where they lie") {
  const Graph g = graph();
  Plan p = plan(g);
  p.addresses[1].offset = Bytes(9);
  CHECK(fault(g, p) ==
        "by op \"a\" in program order: \"x\", written by op \"a\", is put at [9, 13), where \"w\", there "
        "from the "
        "start, still lies at [0, 10)");
}

TEST_CASE("check refuses an address that is missing, outside of the arena, or of HBM") {
  const Graph g = graph();
  Plan p = plan(g);
  p.actions[0].offset.reset();
  CHECK(fault(g, p).find("\"v\", prefetched by action 0, has no address") != std::string::npos);
  p = plan(g);
  p.arena = Bytes(24);
  CHECK(fault(g, p).find("lies at [19, 25), outside of the arena's 24 B") != std::string::npos);
  p.arena = Bytes(1000);
  p.actions[0].offset = Bytes(95);
  CHECK(fault(g, p).find("lies at [95, 101), outside of HBM's 100 B") != std::string::npos);
  p.actions[0].offset = Bytes(std::numeric_limits<std::int64_t>::max());  // and its end is 2^63 + 5
  CHECK(fault(g, p).find("lies at [9223372036854775807, 9223372036854775813), outside of HBM's 100 B") != std::string::npos);
  p = plan(g);
  p.addresses[0].offset = Bytes(std::numeric_limits<std::int64_t>::max());
  CHECK(fault(g, p).find("lies at [9223372036854775807, 92233720368547758") != std::string::npos);
}

TEST_CASE("pieces of a tensor that are there at once have one base") {
  const Graph g = tiny_graph({"v weight 6"}, {"a", "b reads=v"});
  Plan p = tiny_plan(g, {"prefetch v range=0:2", "prefetch v range=2:6"}, {"v"});
  p.arena = Bytes(20);
  p.actions[0].offset = Bytes(10);
  p.actions[1].offset = Bytes(12);
  CHECK(fault(g, p) == "");
  p.actions[1].offset = Bytes(13);
  CHECK(fault(g, p).find("lies apart from") != std::string::npos);
}

TEST_CASE("a plan's addresses are written and read back") {
  const Graph g = graph();
  const std::string text = plan_to_json(plan(g), g);
  CHECK(text.find(R"("offset_bytes": 19})") != std::string::npos);
  CHECK(text.find(R"({"tensor": "x", "op": "a", "offset_bytes": 10})") != std::string::npos);
  const Plan again = parse_plan(text, "p.json", g);
  CHECK(plan_to_json(again, g) == text);
  CHECK(again.arena == Bytes(25));
  CHECK(fault(g, again) == "");
  Plan none = plan(g);
  none.arena.reset();
  none.actions[0].offset.reset();
  CHECK(plan_to_json(none, g).find("addresses") == std::string::npos);
}

TEST_CASE("addresses that say nothing, say it twice or belong to no prefetch are errors with a place") {
  const Graph g = graph();
  const auto error = [&](const std::string& rest, const std::string& action = "") {
    try {
      parse_plan(R"({"format": "hyperoffload-plan", "version": 1, "actions": [)" + action + "]" + rest + "}",
                 "p.json", g);
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(error(R"(, "arena_bytes": 9, "addresses": [])") == "");
  CHECK(error(R"(, "addresses": [{"tensor": "w", "offset_bytes": 0}])") ==
        R"(p.json: found "addresses" without "arena_bytes", expected both or neither)");
  CHECK(error(R"(, "arena_bytes": 9, "addresses": [{"offset_bytes": 0}])")
            .find("p.json: addresses[0]: found neither") == 0);
  CHECK(error(R"(, "arena_bytes": 9, "addresses": [{"tensor": "w"}])").find("offset_bytes") !=
        std::string::npos);
  CHECK(
      error(
          R"(, "arena_bytes": 9, "addresses": [{"op": "a", "offset_bytes": 1}, {"op": "a", "offset_bytes": 2}])")
          .find("p.json: addresses[1]: found an address that was given before") == 0);
  CHECK(error("", R"({"kind": "detach", "tensor": "w", "after_op": null, "offset_bytes": 3})")
            .find("found an address for a detach, expected a prefetch") != std::string::npos);
}
