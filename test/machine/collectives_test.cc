// Collectives against the alpha-beta formulas of sim/model/collective.h, each to 1e-9 relative.
// p ranks, n bytes, latency a, bandwidth B.
#include "sim/model/collective.h"
#include "sim/model/error.h"
#include "sim/model/op_cost.h"
#include "test/machine/copies.h"

using namespace hyperoffload;
using namespace hyperoffload::copies;

namespace {

constexpr double kLatency = 2e-6, kRate = 50e9;
constexpr std::int64_t kBytes = 512'000'000;

Hardware fabric(int npus) {
  Hardware h = machine(100_GB);
  h.npu_count = npus;
  h.hbm_bandwidth = BytesPerSecond(1.6e12);
  const LinkDirection link{BytesPerSecond(kRate), Seconds(kLatency)};
  h.peer = Peer{{link, link}, {link, link}};
  return h;
}

GraphMaker& add(GraphMaker& m, const std::string& name, const std::string& kind, std::int64_t bytes,
                const std::string& group = "") {
  m.op(name, 0_us, {}, {}, "comm");
  m.last().duration.reset();
  m.last().collective = Collective{kind, Bytes(bytes), group, {}};
  return m;
}

Trace one(const std::string& kind, std::int64_t bytes = kBytes, const std::string& group = "") {
  GraphMaker m;
  return {add(m, "c", kind, bytes, group).build(), {}};
}

double seconds(const Trace& trace, const Hardware& h, std::size_t npu = 0) {
  return total_seconds(run(trace, h), npu);
}

// Compute for so long, then the collective.
Trace after(double compute, const std::string& kind, std::int64_t bytes = kBytes,
            const std::string& group = "") {
  GraphMaker m;
  m.activation("x", 1).op("before", Seconds(compute), {}, {"x"});
  add(m, "c", kind, bytes, group);
  m.last().reads = {TensorId(0)};
  return {m.build(), {}};
}

}  // namespace

TEST_CASE("ring collectives take what the alpha-beta model says") {
  for (const int p : {2, 3, 8}) {
    INFO(p << " ranks");
    const Hardware h = fabric(p);
    const double n = kBytes;
    CHECK(seconds(one("all-reduce"), h) == exactly(2 * (p - 1) * (kLatency + n / p / kRate)));
    CHECK(seconds(one("all-gather"), h) == exactly((p - 1) * (kLatency + n / p / kRate)));
    CHECK(seconds(one("reduce-scatter"), h) == exactly((p - 1) * (kLatency + n / p / kRate)));
    CHECK(seconds(one("broadcast"), h) == exactly((p - 1) * kLatency + n / kRate));
    CHECK(seconds(one("all_reduce"), h) == seconds(one("all-reduce"), h));
  }
}

TEST_CASE("direct collectives exchange with all others at once, through one port") {
  for (const int p : {2, 3, 8}) {
    INFO(p << " ranks");
    Hardware h = fabric(p);
    h.npu_port =
        BytesPerSecond(kRate);  // the port binds: p - 1 streams of a path's rate each would be too much
    for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast"})
      h.algorithms[kind] = CollectiveAlgorithm::kDirect;
    const double n = kBytes;
    CHECK(seconds(one("all-to-all"), h) == exactly(kLatency + (p - 1) * n / p / kRate));
    CHECK(seconds(one("all-reduce"), h) == exactly(2 * kLatency + 2 * (p - 1) * n / p / kRate));
    CHECK(seconds(one("all-gather"), h) == exactly(kLatency + (p - 1) * n / p / kRate));
    CHECK(seconds(one("reduce-scatter"), h) == exactly(kLatency + (p - 1) * n / p / kRate));
    CHECK(seconds(one("broadcast"), h) == exactly(kLatency + (p - 1) * n / kRate));
    h.algorithms["all-to-all"] = CollectiveAlgorithm::kRing;
    CHECK(seconds(one("all-to-all"), h) == exactly((p - 1) * (kLatency + n / 2 / kRate)));
  }
}

TEST_CASE("the time alone that planner and bounds use is that of an idle machine") {
  for (const int dies : {2, 16, 32})
    for (const char* kind : {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast"}) {
      INFO(kind << " over " << dies << " dies");
      Hardware h = preset("cloudmatrix384");
      h.npu_count = dies;
      const Trace trace = one(kind);
      CHECK(seconds(trace, h) == exactly(op_cost(trace.graph.ops()[0], h).alone.value));
    }
}

TEST_CASE("a collective starts when its last rank arrives, and ends for all at once") {
  const Hardware h = fabric(3);
  const RunRecord record =
      run_ranks({after(10e-6, "all-gather"), after(70e-6, "all-gather"), after(30e-6, "all-gather")}, h);
  for (std::size_t n = 0; n < 3; ++n)
    CHECK(total_seconds(record, n) == exactly(70e-6 + 2 * (kLatency + kBytes / 3.0 / kRate)));
}

TEST_CASE("groups: numbers are blocks, lists are lists, names come from the trace's parallelism") {
  const Hardware h = fabric(8);
  const auto of = [&](int p) { return (p - 1) * (kLatency + kBytes / static_cast<double>(p) / kRate); };
  CHECK(seconds(one("all-gather", kBytes, "4"), h, 5) == exactly(of(4)));
  CHECK(seconds(one("all-gather", kBytes, "world"), h) == exactly(of(8)));
  const Trace listed = one("all-gather", kBytes, "[1, 4, 6]");
  CHECK(seconds(listed, h, 4) == exactly(of(3)));
  CHECK(seconds(listed, h, 0) == 0);  // has nothing to do

  const std::string meta = R"({"parallel": {"tp": 2, "cp": 1, "dp": 2, "pp": 2, "ep": 4, "etp": 1}})";
  const auto members = [&](const char* name, int rank) {
    return members_of(group_named(name, meta, "test"), rank, 8);
  };
  CHECK(members("tp", 5) == std::vector<int>{4, 5});
  CHECK(members("dp", 5) == std::vector<int>{5, 7});
  CHECK(members("pp", 5) == std::vector<int>{1, 5});
  CHECK(members("ep", 5) == std::vector<int>{4, 5, 6, 7});
  CHECK(members("edp", 5) == std::vector<int>{5});
  CHECK(members("embedding", 5) == std::vector<int>{1, 5});
  const auto refused = [](const std::string& group) {
    try {
      group_named(group, "{}", "t.json: ops[0].collective.group");
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refused("[1, 1]") ==
        "t.json: ops[0].collective.group: found [1,1], expected at least one rank, each once");
  CHECK(refused("[]") == "t.json: ops[0].collective.group: found [], expected at least one rank, each once");
  CHECK(refused("0") == "t.json: ops[0].collective.group: found 0, expected a number of ranks, 1 or more");
}

TEST_CASE("a collective and pool traffic share a port max-min fairly") {
  // Port P = 60 into the NPU: an all-gather's ring stream and a copy, 50 each at most: 30 each.
  Hardware h = fabric(2);
  h.npu_port = BytesPerSecond(60e9);
  h.link_read.bandwidth = BytesPerSecond(50e9);
  GraphMaker m;
  m.weight("w", 300'000'000);
  add(m, "c", "all-gather", 600'000'000);
  m.op("use", 1_us, {"w"}, {});
  Trace trace{m.build(), {}};
  trace.plan = PlanMaker(trace.graph).initial_pool({"w"}).prefetch("w", "").build();
  for (bool shortcuts : {true, false}) {
    const RunRecord record = run(trace, h, shortcuts);
    // From 2 us on both flow; by then the copy has 2 us x 50 GB/s = 100 kB.
    const double end = kLatency + 299.9e6 / 30e9;
    CHECK(transfer_end(record) == exactly(end));
    const double carried = (end - kLatency) * 30e9;
    CHECK(record.npus[0].ops[0].end.value == exactly(end + (300e6 - carried) / 50e9));
  }
}

TEST_CASE("a collective's streams read and write HBM, unless the op says what it asks of it") {
  // H = 100: two ranks, each sends and receives 50 at once: nothing is left for a kernel, all get a third.
  Hardware h = fabric(2);
  h.hbm_bandwidth = BytesPerSecond(100e9);
  const auto collective_seconds = [&](std::optional<Bytes> own) {
    GraphMaker m;
    add(m, "c", "all-gather", 1'000'000'000);
    m.last().hbm_bytes = own;
    m.op("k", 0_us, {}, {});
    m.last().duration.reset();
    m.last().hbm_bytes = Bytes(10'000'000'000);
    return run({m.build(), {}}, h).npus[0].ops[0].end.value;
  };
  CHECK(collective_seconds(std::nullopt) == exactly(kLatency + 0.5e9 / (100e9 / 3)));
  CHECK(collective_seconds(Bytes(0)) == exactly(kLatency + 0.5e9 / kRate));
}

TEST_CASE("between nodes a ring runs at its slowest hop's rate and latency") {
  Hardware h = preset("cloudmatrix384");
  h.npu_count = 32;
  const double steps = 2 * 31, n = kBytes;
  CHECK(seconds(one("all-reduce"), h) == exactly(steps * (2.1e-6 + n / 32 / 135e9)));
  h.npu_count = 2;  // the dies of one package
  CHECK(seconds(one("all-reduce"), h) == exactly(2 * (1.2e-6 + n / 2 / 270e9)));
  h.npu_count = 4;
  CHECK(seconds(one("all-reduce"), h) == exactly(6 * (1.3e-6 + n / 4 / 137e9)));
}

TEST_CASE("a rank whose group is larger than the machine stands for it") {
  Hardware h = fabric(1);
  CHECK(seconds(one("all-reduce", kBytes, "8"), h) == exactly(14 * (kLatency + kBytes / 8.0 / kRate)));
  CHECK(seconds(one("send", kBytes, "8"), h) == exactly(kLatency + kBytes / kRate));
  h.npu_port = BytesPerSecond(kRate);
  CHECK(seconds(one("all-to-all", kBytes, "8"), h) == exactly(kLatency + 7 * (kBytes / 8.0) / kRate));
  h.npu_port.reset();
  h.hbm_bandwidth = BytesPerSecond(60e9);  // what it sends and what it receives: 30 each
  CHECK(seconds(one("all-gather", kBytes, "8"), h) == exactly(7 * kLatency + 7 * (kBytes / 8.0) / 30e9));
}

TEST_CASE("send and recv meet where ranks have traces of their own") {
  const Hardware h = fabric(2);
  const RunRecord record = run_ranks({after(10e-6, "send"), after(40e-6, "recv")}, h);
  CHECK(total_seconds(record, 0) == exactly(40e-6 + kLatency + kBytes / kRate));
  CHECK(total_seconds(record, 1) == total_seconds(record, 0));
  // One trace for all: each loads its own side and waits for nobody.
  CHECK(seconds(after(10e-6, "recv"), h) == exactly(10e-6 + kLatency + kBytes / kRate));
}

TEST_CASE("a rank that never comes is named, and so is one that comes to another collective (case 64)") {
  const Hardware h = fabric(3);
  GraphMaker idle;
  idle.op("only", 1_us, {}, {});
  const auto message = [&](const Trace& a, const Trace& b) {
    try {
      run_ranks({a, b, a}, h);
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  const std::string stuck = message(after(10e-6, "all-gather"), {idle.build(), {}});
  INFO(stuck);
  CHECK(stuck.find("the run gets stuck at 1e-05 s on NPU 0: collective \"c\" waits for rank 1") == 0);
  const std::string other = message(after(10e-6, "all-gather"), after(10e-6, "all-reduce"));
  INFO(other);
  CHECK(other.find(
            "op \"c\" of rank 1: found all-reduce of 512000000 B where others of its group come to \"c\", "
            "all-gather of 512000000 B") == 0);
}

TEST_CASE("a collective with a duration keeps it, and without a fabric it is an op like any other") {
  Hardware h = fabric(2);
  GraphMaker m;
  m.op("c", 30_us, {}, {}, "comm");
  m.last().collective = Collective{"all-reduce", Bytes(kBytes), "", {}};
  CHECK(seconds({m.build(), {}}, h) == exactly(30e-6));
  h.peer.reset();
  GraphMaker by_hbm;
  add(by_hbm, "c", "all-reduce", kBytes);
  by_hbm.last().hbm_bytes = Bytes(1'600'000);
  CHECK(seconds({by_hbm.build(), {}}, h) == exactly(1.6e6 / 1.6e12));
  try {
    op_cost(one("all-reduce").graph.ops()[0], h);
    CHECK(false);
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).find("found only a collective on machine \"tiny\" without `peer`") !=
          std::string::npos);
  }
}

TEST_CASE("iterations keep meeting in order") {
  const Hardware h = fabric(4);
  const Trace trace = after(10e-6, "all-gather");
  ReplayOptions options;
  options.iterations = 5;
  const RunRecord record = replay(
      trace.graph, h, [] { return std::make_unique<Policy>(); }, options);
  const double each = 10e-6 + 3 * (kLatency + kBytes / 4.0 / kRate);
  CHECK(total_seconds(record, 3) == exactly(5 * each));
}
