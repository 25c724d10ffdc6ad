// G10's own workloads on its machine: what can be said exactly. Figures: G10's kernel times and its published
// results (docs/g10.md). Skipped where the shared data is absent.
#include <fstream>
#include <sstream>

#include "app/evaluate.h"
#include "test/support/paths.h"
#include "test/import/data.h"

using namespace hyperoffload;

namespace {

struct Workload {
  Graph graph;
  long double milliseconds = 0;  // of its kernels
};

std::optional<Workload> workload(const std::string& net, int batch) {
  const auto folder = real_file("g10");
  if (!folder) return std::nullopt;
  const std::string times = *folder + "/results/" + net + "/cudnn" + std::to_string(batch);
  Workload made{
      import_trace("g10", {*folder + "/Nets/" + net + ".txt", times + ".txt", times + "Workspace.txt"}, {})
          .graph};
  std::ifstream rows(times + ".txt");
  long double time = 0;
  for (std::string kernel, unit; rows >> kernel >> time >> unit;) made.milliseconds += time;
  return made;
}

Evaluation run(const Workload& w, const std::string& policy, Bytes pool = Bytes(128'000'000'000)) {
  Hardware g10 = load_hardware(source_dir() + "/configs/hardware/g10.yaml");
  g10.pool_capacity = pool;
  return evaluate(Job{w.graph, g10, 2}, parse_policy(policy, "--policy"));
}

Bytes moved(const Result& r) { return r.figures().pool_to_hbm.bytes + r.figures().hbm_to_pool.bytes; }

}  // namespace

TEST_CASE("the ideal time of G10's nets is the sum of their kernels' times") {
  for (const auto& [net, batch] : {std::pair("BERT_Base", 128), std::pair("ResNet152", 256)}) {
    const auto w = workload(net, batch);
    if (!w) return;
    CHECK(run(*w, "resident").result.figures().ideal.value ==
          Approx(static_cast<double>(w->milliseconds / 1000)).epsilon(1e-9));
    if (batch == 128) CHECK(static_cast<double>(w->milliseconds) == Approx(5906.0).epsilon(1e-5));
  }
}

TEST_CASE("BERT-128 fits G10's machine: every static policy takes the ideal time and moves nothing") {
  const auto w = workload("BERT_Base", 128);
  if (!w) return;
  for (const char* policy : {"graph", "g10", "flash_neuron", "capuchin", "on_demand", "page_fault"}) {
    INFO(policy);
    const Result r = run(*w, policy).result;
    REQUIRE(r.fits);
    CHECK(r.figures().slowdown == Approx(1).epsilon(1e-9));
    CHECK(moved(r) == Bytes(0));
    CHECK(r.figures().hbm_peak.value == Approx(25.86e9).epsilon(1e-3));
  }
}

TEST_CASE("BERT-768 all but fills HBM and host: capuchin keeps what the host has no room for, and goes on") {
  const auto w = workload("BERT_Base", 768);
  if (!w) return;
  const Result capuchin = run(*w, "capuchin").result;
  REQUIRE(capuchin.fits);
  CHECK(capuchin.pool_peak <= Bytes(128'000'000'000));
  CHECK(capuchin.pool_peak >= Bytes(152'970'000'000 - 40'000'000'000));  // what is live at once and not in HBM
  CHECK(capuchin.figures().iteration < run(*w, "on_demand").result.figures().iteration);
}

TEST_CASE("ResNet152-256 exceeds the HBM by 19 GB, and the planner hides it all") {
  const auto w = workload("ResNet152", 256);
  if (!w) return;
  CHECK(run(*w, "resident").result.figures().hbm_peak.value == Approx(58.92e9).epsilon(1e-4));
  const Result graph = run(*w, "graph").result;
  REQUIRE(graph.fits);
  CHECK(graph.figures().slowdown <= 1.0001);
  CHECK(graph.hbm_peak <= Bytes(40'000'000'000));
  // G10 1.00007 and FlashNeuron 1.000 by their own figures.
  for (const char* policy : {"g10", "flash_neuron"}) {
    const Result r = run(*w, policy).result;
    REQUIRE(r.fits);
    CHECK(r.figures().slowdown <= 1.0001);
  }
}

TEST_CASE("unified memory that never frees moves every tensor of BERT-128 once each way, as G10's LRU does") {
  const auto w = workload("BERT_Base", 128);
  if (!w) return;
  // 79.9 GB of tensors, 40 GB of HBM, in a circle: all must come back. Without faults' handling and with the
  // links beside each other that is 79.9 GB / 15.754 GB/s = 5.07 s over 5.906 s of kernels: 1.859, G10's
  // figure to 3 digits.
  std::int64_t all = 0;
  for (const Tensor& t : w->graph.tensors()) all += t.bytes.value;
  const double whole =
      1 + static_cast<double>(all) / 15.754e9 / (static_cast<double>(w->milliseconds) / 1000);
  CHECK(whole == Approx(1.859).epsilon(1e-3));
  const Result r = run(*w, "page_fault:fault_latency=0us,frees=no,overlap=yes").result;
  REQUIRE(r.fits);
  CHECK(r.figures().slowdown >= whole);
  CHECK(r.figures().slowdown <= whole * 1.02);
}
