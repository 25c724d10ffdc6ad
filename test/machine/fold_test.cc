// A representative of many NPUs against all of them.
#include "sim/replay/fold.h"

#include "sim/model/error.h"
#include "test/machine/copies.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

// Ops bound by HBM, weights streamed in, an activation out and in, a collective: all at once.
Trace busy(bool collective, const std::string& group = "") {
  GraphMaker m;
  constexpr int kOps = 8;
  Names weights;
  for (int i = 0; i < kOps; ++i) {
    weights.push_back("w" + std::to_string(i));
    m.weight(weights.back(), 3'000'000 + 700'000 * i);
  }
  m.activation("x", 5'000'000);
  for (int i = 0; i < kOps; ++i) {
    const std::string name = "op" + std::to_string(i);
    Names writes;
    if (i == 0) writes = {"x"};
    Names reads = {weights[static_cast<std::size_t>(i)]};
    if (i == kOps - 1) reads.push_back("x");
    m.op(name, 0_us, reads, writes);
    m.last().duration.reset();
    m.last().hbm_bytes = Bytes(50'000'000 + 9'000'000 * i);
    if (!collective || i % 3 != 1) continue;
    m.op("all" + std::to_string(i), 0_us, {}, {}, "comm");
    m.last().duration.reset();
    m.last().collective = Collective{i == 1 ? "all-reduce" : "all-to-all", Bytes(20'000'000), group, {}};
  }
  Trace t{m.build(), {}};
  PlanMaker plan(t.graph);
  plan.initial_pool(weights).store("x", "op0").detach("x", "op3");
  for (int i = 0; i < kOps; ++i)
    plan.prefetch(weights[static_cast<std::size_t>(i)], i < 2 ? "" : "op" + std::to_string(i - 2));
  plan.prefetch("x", "op5");
  t.plan = plan.build();
  return t;
}

RunRecord folded(const Trace& trace, const Hardware& h) {
  ReplayOptions options;
  options.full_record = true;
  return replay_folded(
      trace.graph, h, [&] { return std::make_unique<PlannedPolicy>(trace.graph, trace.plan); }, options);
}

void check_fold(const Trace& trace, const Hardware& h) {
  REQUIRE(why_not_fold(trace.graph, h) == "");
  const RunRecord one = folded(trace, h), all = run(trace, h);
  CHECK(one.stands_for == h.npu_count);
  CHECK(one.pool_peak == all.pool_peak);
  for (std::size_t n : {std::size_t{0}, all.npus.size() / 2, all.npus.size() - 1}) {
    REQUIRE(one.npus[0].ops.size() == all.npus[n].ops.size());
    for (std::size_t i = 0; i < one.npus[0].ops.size(); ++i)
      CHECK(one.npus[0].ops[i].end.value == exactly(all.npus[n].ops[i].end.value));
    for (std::size_t i = 0; i < one.npus[0].transfers.size(); ++i)
      CHECK(one.npus[0].transfers[i].end.value == exactly(all.npus[n].transfers[i].end.value));
    CHECK(one.npus[0].hbm_peak == all.npus[n].hbm_peak);
  }
}

Hardware cloudmatrix(int dies) {
  Hardware h = preset("cloudmatrix384");
  h.npu_count = dies;
  h.pool_capacity = Bytes(sockets_in_reach(h) * h.socket_capacity->value);
  return h;
}

std::string refusal(const Trace& trace, const Hardware& h) {
  try {
    folded(trace, h);
  } catch (const InfeasibleError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a folded die equals each of the dies it stands for") {
  for (const int dies : {1, 5, 16, 48}) {
    INFO(dies << " dies");
    check_fold(busy(false), cloudmatrix(dies));
  }
  Hardware local = cloudmatrix(16);
  local.placement.spread = Spread::kLocal;
  check_fold(busy(false), local);
  Hardware supernode = cloudmatrix(32);
  supernode.placement.supernode = true;
  supernode.pool_capacity = Bytes(sockets_in_reach(supernode) * supernode.socket_capacity->value);
  check_fold(busy(false), supernode);
  Hardware port = machine(100_GB, 1_us);
  port.npu_count = 6;
  port.hbm_bandwidth = BytesPerSecond(1e12);
  port.link_read.bandwidth = port.link_write.bandwidth = BytesPerSecond(100e9);
  port.pool_read_port = BytesPerSecond(150e9);
  check_fold(busy(false), port);
}

TEST_CASE("collectives fold where all their hops are alike") {
  Hardware h = cloudmatrix(8);
  h.nodes->package_link.reset();
  check_fold(busy(true), h);
  check_fold(busy(true, "4"), h);
  Hardware pairs = cloudmatrix(16);
  check_fold(busy(true, "2"), pairs);  // the two dies of a package
  // Dies 0, 16 and 32 of three nodes: all hops between nodes.
  GraphSpec spec;
  spec.meta_json = R"({"parallel": {"tp": 16, "dp": 3}})";
  Trace apart = busy(true, "dp");
  spec.tensors = apart.graph.tensors();
  spec.ops = apart.graph.ops();
  spec.engines = apart.graph.engines();
  apart.graph = build_graph(spec);
  check_fold(apart, cloudmatrix(48));
}

TEST_CASE("a fold that would not be exact is refused, with the reason") {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(refusal(busy(false), cloudmatrix(20)), "20 NPUs fill nodes of 16 unevenly"));
  CHECK(has(refusal(busy(true), cloudmatrix(8)),
            "op \"all1\": its ranks reach each other over different kinds of links"));
  CHECK(has(refusal(busy(true, "[0, 1]"), cloudmatrix(8)), "a list of ranks leaves others out"));
  Hardware alike = cloudmatrix(8);
  alike.nodes->package_link.reset();
  CHECK(has(refusal(busy(true, "3"), alike), "its group reaches beyond the 8 NPUs"));
  Hardware hashed = cloudmatrix(16);
  hashed.placement.spread = Spread::kHash;
  CHECK(has(refusal(busy(false), hashed), "placement by hash treats NPUs differently"));
  Hardware uplinks = cloudmatrix(32);
  uplinks.placement.supernode = true;
  uplinks.nodes->second_level = BytesPerSecond(1e12);
  CHECK(has(refusal(busy(false), uplinks), "copies from other nodes meet on declared switches"));
  // Room in the pool for one die less the last byte.
  Hardware tight = machine(100_GB);
  tight.npu_count = 2;
  const Trace trace = busy(false);
  tight.pool_capacity = Bytes(run(trace, tight).pool_peak.value - 2);
  CHECK(refusal(trace, tight) != "");
}

TEST_CASE("a die alone stands for itself, however its bytes are placed") {
  for (const Spread spread : {Spread::kLocal, Spread::kStripe, Spread::kHash, Spread::kLoad})
    for (const bool supernode : {false, true}) {
      INFO(to_string(spread) << (supernode ? " over the supernode" : ""));
      Hardware h = cloudmatrix(1);
      h.nodes->count = 2;
      h.placement = {spread, supernode, Bytes(1'000'000)};
      h.socket_capacity = Bytes(16'000'000);  // some sockets fill
      h.nodes->second_level = BytesPerSecond(20e9);
      h.pool_capacity = sockets_hold(h, sockets_in_reach(h));
      if (spread == Spread::kLocal) h.socket_capacity = h.pool_capacity = 1_GB;
      check_fold(busy(false), h);
    }
}

TEST_CASE("768 dies fold into one") {
  const Trace trace = busy(false);
  const Hardware h = cloudmatrix(768);
  const RunRecord one = folded(trace, h);
  CHECK(one.npus[0].ops.back().end.value == exactly(run(trace, h).npus[700].ops.back().end.value));
}
