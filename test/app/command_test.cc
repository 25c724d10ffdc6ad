// The command as a user types it: exit statuses, what is written, and the shipped experiments' figures.
#include "test/support/command.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "test/support/catch.h"
#include "test/support/paths.h"

using namespace hyperoffload;
using nlohmann::json;

namespace {

const std::string kConfigs = source_dir() + "/configs/";

// One weight in the pool, read by the second of two ops: 10 us each, 19 us of transfer (1 us latency).
const char* kTrace = R"({"format": "hyperoffload-trace", "version": 1, "name": "two",
 "tensors": [{"name": "w", "bytes": 18000, "kind": "weight", "initial": "pool"}, {"name": "x", "bytes": 1000, "kind": "activation"}],
 "ops": [{"name": "a", "duration_us": 10, "reads": [], "writes": ["x"]},
         {"name": "b", "duration_us": 10, "reads": ["w", "x"], "writes": []}]})";
const char* kMachine = R"(name: tiny
npu: {count: 1, compute: 1TFLOPS, hbm: {capacity: 20kB, bandwidth: 1.6TB/s}}
link: {read: {bandwidth: 1GB/s, latency: 1us}, write: {bandwidth: 1GB/s, latency: 1us}}
pool: {capacity: 1GB}
)";

struct Files {
  TemporaryFolder folder;
  std::string trace = folder / "two.json", machine = folder / "tiny.yaml";
  Files() {
    write_text(trace, kTrace);
    write_text(machine, kMachine);
  }
  std::string both() const { return trace + " --hardware " + machine; }
};

json policy_of(const json& results, const std::string& name) {
  for (const json& run : results.at("runs"))
    if (run.at("policy") == name) return run;
  throw std::out_of_range(name);
}

}  // namespace

TEST_CASE("plan, check and simulate agree, and the plan's prediction is what the simulator measures") {
  Files files;
  const std::string plan = files.folder / "plan.json", result = files.folder / "result.json";
  CHECK(run_hyperoffload("plan " + files.both() + " -o " + plan).status == 0);
  const CommandResult check =
      run_hyperoffload("check " + files.trace + " " + plan + " --hardware " + files.machine);
  CHECK(check.status == 0);
  CHECK(check.out == "the plan keeps every rule\n");
  CHECK(run_hyperoffload("simulate " + files.both() + " --plan " + plan + " -o " + result).status == 0);
  const json measured = json::parse(read_text(result)), planned = json::parse(read_text(plan));
  // The prefetch starts with the iteration: b starts after 1 + 18 us, 9 us later than it could.
  CHECK(measured.at("iteration_s").get<double>() == Approx(19e-6 + 10e-6).epsilon(1e-9));
  CHECK(measured.at("ideal_s").get<double>() == Approx(20e-6).epsilon(1e-9));
  CHECK(measured.at("stall_s").get<double>() == Approx(9e-6).epsilon(1e-9));
  CHECK(measured.at("hbm_peak_bytes") == 19000);
  CHECK(measured.at("pool_peak_bytes") == 18000);
  CHECK(measured.at("pool_to_hbm_bytes") == 18000);
  CHECK(planned.at("prediction").at("iteration_s").get<double>() ==
        Approx(measured.at("iteration_s").get<double>()).epsilon(1e-9));
}

TEST_CASE("plan --max-slowdown finds the least HBM that keeps it, or says that none does") {
  // b takes 9 us longer than ideal whatever HBM there is (1.45x), and needs w and x: 19 kB.
  Files files;
  const std::string plan = files.folder / "plan.json", machine = " --hardware " + files.machine;
  const CommandResult kept = run_hyperoffload("plan " + files.both() + " --max-slowdown 50% -o " + plan);
  CHECK(kept.status == 0);
  CHECK(kept.err.find("19000 B of HBM") != std::string::npos);
  CHECK(run_hyperoffload("check " + files.trace + " " + plan + machine + " --hbm 19kB").status == 0);
  const CommandResult not_kept = run_hyperoffload("plan " + files.both() + " --max-slowdown 1% -o " + plan + "2");
  CHECK(not_kept.status == 3);
  CHECK(not_kept.err.find("1.45x") != std::string::npos);
  CHECK_FALSE(std::ifstream(plan + "2").good());
  CHECK(run_hyperoffload("plan " + files.both() + " --max-slowdown 1").status == 2);
}

TEST_CASE("plan --frontier writes the curve as JSON or CSV") {
  Files files;
  const std::string csv = files.folder / "curve.csv";
  const CommandResult curve = run_hyperoffload("plan " + files.both() + " --frontier --points 3");
  CHECK(curve.status == 0);
  const json points = json::parse(curve.out).at("points");
  REQUIRE(points.size() == 1);  // more HBM than both tensors take wins nothing
  CHECK(points[0].at("hbm_bytes") == 19000);
  CHECK(points[0].at("stall_s").get<double>() == Approx(9e-6).epsilon(1e-9));
  CHECK(run_hyperoffload("plan " + files.both() + " --frontier -o " + csv).status == 0);
  CHECK(read_text(csv).find("hbm_bytes,hbm_peak_bytes,iteration_s") == 0);
  CHECK(run_hyperoffload("plan " + files.both() + " --frontier --map").status == 2);
}

TEST_CASE("a plan's own order of ops is what is checked and replayed") {
  // On one engine: a (1 us), then b (10 us) waits for w, 20 us of transfer. b's engine does c (5 us) first or
  // last.
  TemporaryFolder folder;
  const std::string trace = folder / "t.json", plan = folder / "p.json", machine = folder / "m.yaml";
  write_text(machine, kMachine);
  write_text(trace, R"({"format": "hyperoffload-trace", "version": 1, "name": "t",
 "tensors": [{"name": "w", "bytes": 19000, "kind": "weight", "initial": "pool"}],
 "ops": [{"name": "b", "duration_us": 10, "reads": ["w"]}, {"name": "c", "duration_us": 5}]})");
  const std::string actions = R"("actions": [{"kind": "prefetch", "tensor": "w", "after_op": null}])";
  const auto total = [&](const std::string& extra) {
    write_text(plan, R"({"format": "hyperoffload-plan", "version": 1, )" + actions + extra + "}");
    const CommandResult run =
        run_hyperoffload("simulate " + trace + " --hardware " + machine + " --plan " + plan + " -o -");
    INFO(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out).at("total_s").get<double>();
  };
  CHECK(total("") == Approx(20e-6 + 10e-6 + 5e-6).epsilon(1e-9));
  CHECK(total(R"(, "order": ["c", "b"])") == Approx(20e-6 + 10e-6).epsilon(1e-9));  // c hides 5 us
}

TEST_CASE("inputs that wait for room are told as that") {
  // k (14 kB) is stored while the next iteration's 8 kB of inputs wait for room in 20 kB: 1 + 14 us.
  TemporaryFolder folder;
  const std::string trace = folder / "t.json", plan = folder / "p.json", machine = folder / "m.yaml";
  write_text(machine, kMachine);
  write_text(trace, R"({"format": "hyperoffload-trace", "version": 1, "name": "t",
 "tensors": [{"name": "k", "bytes": 14000, "kind": "kv", "initial": "hbm"}, {"name": "in", "bytes": 8000, "kind": "input"}],
 "ops": [{"name": "a", "duration_us": 10, "reads": ["in"]}, {"name": "b", "duration_us": 10, "writes": ["k"]}]})");
  write_text(plan, R"({"format": "hyperoffload-plan", "version": 1, "initial_pool": ["k"], "actions": [
 {"kind": "store", "tensor": "k", "after_op": "b"}, {"kind": "detach", "tensor": "k", "after_op": "b"}]})");
  const CommandResult run = run_hyperoffload("simulate " + trace + " --hardware " + machine +
                                             " --iterations 2 --plan " + plan + " -o -");
  INFO(run.err);
  REQUIRE(run.status == 0);
  const json result = json::parse(run.out);
  CHECK(result.at("stall_s").get<double>() == Approx(1e-6 + 14e-6).epsilon(1e-9));
  CHECK(result.at("stalls").at("input_room_s").get<double>() == Approx(1e-6 + 14e-6).epsilon(1e-9));
}

TEST_CASE("a broken plan is refused with every broken rule and exit 3") {
  Files files;
  const std::string plan = files.folder / "plan.json";
  write_text(
      plan,
      R"({"format": "hyperoffload-plan", "version": 1, "actions": [{"kind": "detach", "tensor": "x", "after_op": "a"}]})");
  const CommandResult check =
      run_hyperoffload("check " + files.trace + " " + plan + " --hardware " + files.machine);
  CHECK(check.status == 3);
  CHECK(check.out.find("\"x\"") != std::string::npos);
  CHECK(check.out.find("no valid pool copy") != std::string::npos);
  CHECK(run_hyperoffload("simulate " + files.both() + " --plan " + plan).status == 3);
}

TEST_CASE("what can't fit is exit 3 and says what is short, resident still tells its figures") {
  Files files;
  const std::string small = files.both() + " --hbm 18kB";
  for (const char* policy : {"graph", "on_demand"}) {
    const CommandResult run = run_hyperoffload("simulate " + small + " --policy " + policy);
    INFO(run.err);
    CHECK(run.status == 3);
    CHECK(run.out.empty());
    CHECK(run.err.find("1000 B") != std::string::npos);  // 19 kB at once, 18 kB are there
    CHECK(run.err.find("\"b\"") != std::string::npos);
  }
  const CommandResult resident = run_hyperoffload("simulate " + small + " --policy resident -o -");
  CHECK(resident.status == 0);
  const json result = json::parse(resident.out);
  CHECK(result.at("fits") == false);
  CHECK(result.at("hbm_peak_bytes") == 19000);
  CHECK(result.at("iteration_s").get<double>() == Approx(20e-6).epsilon(1e-9));
}

TEST_CASE("wrong input is exit 2, one line, and no file") {
  Files files;
  const std::string out = files.folder / "never.json";
  const std::string bad_machine = files.folder / "bad.yaml";
  write_text(bad_machine,
             "name: tiny\nnpu: {count: 1, compute: 1TFLOPS, hbm: {capacity: 20, bandwidth: 1TB/s}}\n");
  for (const std::string& arguments :
       {"simulate " + files.both() + " --policy graf -o " + out, "simulate " + files.both() + " -o " + out,
        "plan " + files.trace + " --hardware " + bad_machine + " -o " + out,
        "plan missing.json --hardware " + files.machine + " -o " + out,
        "simulate " + files.both() + " --policy on_demand:evict=newest -o " + out,
        "plan " + files.both() + " --hbm 48 -o " + out,
        "plan " + files.both() + " --iterations 0 -o " + out}) {
    const CommandResult run = run_hyperoffload(arguments);
    INFO(arguments << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(run.err.find("expected") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(out));
  }
}

TEST_CASE("every sub-command's help has an example") {
  for (const char* command : {"run", "trace generate", "trace info", "plan", "check", "simulate"}) {
    const CommandResult help = run_hyperoffload(std::string(command) + " --help");
    CHECK(help.status == 0);
    CHECK(help.out.find("Example: hyperoffload ") != std::string::npos);
  }
}

TEST_CASE("quickstart: at 73 % of the resident peak the plan stays within 0.1 % of the ideal time") {
  TemporaryFolder folder;
  const CommandResult run =
      run_hyperoffload("run " + kConfigs + "experiments/quickstart.yaml -o " + folder.path());
  INFO(run.err);
  REQUIRE(run.status == 0);
  const json results = json::parse(read_text(folder / "results.json"));
  const json resident = policy_of(results, "resident"), graph = policy_of(results, "graph");
  CHECK(resident.at("fits") == false);
  CHECK(graph.at("fits") == true);
  const double share =
      graph.at("hbm_capacity_bytes").get<double>() / resident.at("hbm_peak_bytes").get<double>();
  CHECK(share == Approx(0.73).margin(5e-4));
  CHECK(graph.at("iteration_s").get<double>() <= 1.001 * graph.at("ideal_s").get<double>());
  CHECK(graph.at("hbm_peak_bytes").get<double>() <= graph.at("hbm_capacity_bytes").get<double>());
  CHECK(policy_of(results, "on_demand").at("slowdown").get<double>() > 1.02);
  for (const char* name : {"results.csv", "graph.plan.json", "graph.trace.json", "on_demand.trace.json"})
    CHECK(std::filesystem::exists(folder / name));
}

TEST_CASE("the same experiment gives the same bytes, one policy at a time or all at once") {
  TemporaryFolder one, two;
  const std::string experiment = "run " + kConfigs + "experiments/quickstart.yaml -o ";
  const CommandResult first = run_hyperoffload(experiment + one.path());
  const CommandResult second = run_hyperoffload(experiment + two.path() + " --jobs 4");
  CHECK(first.out == second.out);
  for (const auto& entry : std::filesystem::directory_iterator(one.path())) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    CHECK(read_text(one / name) == read_text(two / name));
  }
}

TEST_CASE("decode: the tool says which resource binds") {
  TemporaryFolder folder;
  const CommandResult run =
      run_hyperoffload("run " + kConfigs + "experiments/llama-3.1-8b-decode.yaml -o " + folder.path());
  REQUIRE(run.status == 0);
  const json graph = policy_of(json::parse(read_text(folder / "results.json")), "graph");
  CHECK(graph.at("binding").at("resource") == "pool_to_hbm_bandwidth");
  CHECK(run.out.find("pool -> HBM bandwidth binds") != std::string::npos);
  // Least time: what can't stay must cross the link.
  const double stall = graph.at("stall_s").get<double>();
  CHECK(graph.at("bound").at("stall_s").get<double>() <= stall);
}

TEST_CASE("values are laid over an experiment with --set") {
  const CommandResult run = run_hyperoffload(
      "run " + kConfigs + "experiments/quickstart.yaml --set hbm=40GB --set 'policies=[graph]'");
  REQUIRE(run.status == 0);
  CHECK(run.out.find("on_demand") == std::string::npos);
  CHECK(run.out.find(" 0 B        0 B") != std::string::npos);  // all fits: nothing moves
}
