// The command as a user types it: exit statuses, what is written, and the shipped experiments' figures.
#include "test/support/command.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "test/support/catch.h"
#include "test/support/paths.h"
#include "test/support/tiny_files.h"

using namespace hyperoffload;
using nlohmann::json;

namespace {

const std::string kConfigs = source_dir() + "/configs/";

struct Files {
  TemporaryFolder folder;
  std::string trace = folder / "two.json", machine = folder / "tiny.yaml";
  Files() {
    write_text(trace, kTinyTrace);
    write_text(machine, kTinyMachine);
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

TEST_CASE("plan --addresses gives addresses that check and simulate verify, and refuse once two overlap") {
  Files files;
  const std::string plan = files.folder / "plan.json", bare = files.folder / "bare.json";
  const CommandResult made = run_hyperoffload("plan " + files.both() + " --addresses -o " + plan);
  REQUIRE(made.status == 0);
  CHECK(made.err.find("addresses: ") == 0);
  CHECK(run_hyperoffload("plan " + files.both() + " -o " + bare).status == 0);
  json addressed = json::parse(read_text(plan));
  const json without = json::parse(read_text(bare));
  CHECK_FALSE(without.contains("addresses"));
  CHECK(addressed.at("prediction") == without.at("prediction"));
  CHECK(addressed.at("arena_bytes") >= without.at("prediction").at("hbm_peak_bytes"));
  const std::string check = "check " + files.trace + " " + plan + " --hardware " + files.machine;
  const std::string simulate = "simulate " + files.both() + " --plan " + plan;
  CHECK(run_hyperoffload(check).status == 0);
  CHECK(run_hyperoffload(simulate).status == 0);

  REQUIRE(addressed.at("addresses").size() + addressed.at("actions").size() >= 2);
  for (json& address : addressed.at("addresses")) address.at("offset_bytes") = 0;
  for (json& action : addressed.at("actions"))
    if (action.contains("offset_bytes")) action.at("offset_bytes") = 0;
  write_text(plan, addressed.dump());
  const CommandResult refused = run_hyperoffload(check);
  CHECK(refused.status == 3);
  CHECK(refused.out.find("is put at [0, ") != std::string::npos);
  CHECK(run_hyperoffload(simulate).status == 3);
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
  write_text(machine, kTinyMachine);
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
  write_text(machine, kTinyMachine);
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

TEST_CASE("where NPUs share a pool, a plan is checked with its NPU's share of it") {
  // w takes 18000 B of the pool, 30 kB for two NPUs: 15000 B each.
  TemporaryFolder folder;
  const std::string trace = folder / "t.json", machine = folder / "m.yaml", plan = folder / "p.json";
  write_text(trace, kTinyTrace);
  write_text(plan, R"({"format": "hyperoffload-plan", "version": 1, "actions": [{"kind": "prefetch", "tensor": "w"}]})");
  const auto check = [&](const char* npus, const char* pool) {
    std::string text = kTinyMachine;
    text.replace(text.find("count: 1"), 8, std::string("count: ") + npus);
    text.replace(text.find("capacity: 1GB"), 13, std::string("capacity: ") + pool);
    write_text(machine, text);
    return run_hyperoffload("check " + trace + " " + plan + " --hardware " + machine);
  };
  CHECK(check("1", "30kB").status == 0);
  CHECK(check("2", "36kB").status == 0);
  const CommandResult refused = check("2", "30kB");
  CHECK(refused.status == 3);
  INFO(refused.out);
  CHECK(refused.out.find("what starts in the pool takes 18000 B, 3000 B more than its 15000 B") == 0);
  CHECK(run_hyperoffload("simulate " + trace + " --hardware " + machine + " --plan " + plan).status == 3);
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

TEST_CASE("an option of plan that does nothing without another is refused") {
  const std::string plan = "plan " + source_dir() + "/traces/chain-100.json --hardware " + kConfigs + "hardware/toy.yaml ";
  const CommandResult width = run_hyperoffload(plan + "--width 90"), points = run_hyperoffload(plan + "--points 3");
  CHECK(width.status == 2);
  CHECK(width.err.find("plan: --width requires --map") != std::string::npos);
  CHECK(points.status == 2);
  CHECK(points.err.find("plan: --points requires --frontier") != std::string::npos);
  CHECK(run_hyperoffload(plan + "--map --width 90").status == 0);
  CHECK(run_hyperoffload(plan + "--frontier --points 3").status == 0);
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

TEST_CASE("bound: lp proves at least what window does, by plan, simulate and run alike") {
  TemporaryFolder folder;
  const auto graph_bound = [&](const std::string& settings) {
    const CommandResult run = run_hyperoffload("run " + kConfigs + "experiments/llama-3.1-8b-decode.yaml -o " +
                                               folder.path() + " --set 'policies=[graph]'" + settings);
    REQUIRE(run.status == 0);
    return policy_of(json::parse(read_text(folder / "results.json")), "graph");
  };
  const json cheap = graph_bound(""), tight = graph_bound(" --set bound=lp");
  CHECK(cheap.at("bound").at("method") == "window");
  CHECK(tight.at("bound").at("method") == "lp");
  for (const char* key : {"stall_s", "hbm_peak_bytes"})
    CHECK(tight.at("bound").at(key).get<double>() >= cheap.at("bound").at(key).get<double>());
  CHECK(tight.at("bound").at("stall_s").get<double>() <= tight.at("stall_s").get<double>() * (1 + 1e-9));
  CHECK(json::parse(read_text(folder / "graph.plan.json")).at("bound") == tight.at("bound"));
  const CommandResult wrong = run_hyperoffload("run " + kConfigs + "experiments/llama-3.1-8b-decode.yaml --set bound=tight");
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("window or lp") != std::string::npos);
}

TEST_CASE("values are laid over an experiment with --set") {
  const CommandResult run = run_hyperoffload(
      "run " + kConfigs + "experiments/quickstart.yaml --set hbm=40GB --set 'policies=[graph]'");
  REQUIRE(run.status == 0);
  CHECK(run.out.find("on_demand") == std::string::npos);
  CHECK(run.out.find(" 0 B        0 B") != std::string::npos);  // all fits: nothing moves
}

namespace {

// NPU 0 waits for w from the pool, then both meet; NPU 1 only computes: its own trace, its own engines.
const char* kRanks = R"({"format": "hyperoffload-trace", "version": 1, "name": "pair", "ranks": [
 {"tensors": [{"name": "w", "bytes": 18000, "kind": "weight", "initial": "pool"}],
  "ops": [{"name": "a", "duration_us": 10}, {"name": "b", "duration_us": 10, "reads": ["w"]},
          {"name": "meet", "collective": {"kind": "all-gather", "bytes": 2000}, "after": ["b"], "engine": "comm"}]},
 {"tensors": [{"name": "v", "bytes": 5000, "kind": "activation"}],
  "ops": [{"name": "long", "duration_us": 12, "writes": ["v"]},
          {"name": "meet", "collective": {"kind": "all-gather", "bytes": 2000}, "after": ["long"], "engine": "comm"}]}]})";
const char* kPair = R"(name: pair
npu: {count: 2, compute: 1TFLOPS, hbm: {capacity: 20kB, bandwidth: 1.6TB/s}}
link: {read: {bandwidth: 1GB/s, latency: 1us}, write: {bandwidth: 1GB/s, latency: 1us}}
peer: {near: {read: {bandwidth: 1GB/s, latency: 1us}, write: {bandwidth: 1GB/s, latency: 1us}}}
pool: {capacity: 1GB}
)";

}  // namespace

TEST_CASE("ranks with traces of their own get a bound, and a timeline with a process each") {
  TemporaryFolder folder;
  const std::string trace = folder / "ranks.json", machine = folder / "pair.yaml", timeline = folder / "t.json";
  write_text(trace, kRanks);
  write_text(machine, kPair);
  const CommandResult run = run_hyperoffload("simulate " + trace + " --hardware " + machine +
                                             " --policy graph -o - --timeline " + timeline);
  INFO(run.err);
  REQUIRE(run.status == 0);
  const json result = json::parse(run.out);
  // w is there after 19 us, b ends at 29; the gather of 1000 B each takes 1 + 1 us more. Ideal: 20 + 2.
  CHECK(result.at("iteration_s").get<double>() == Approx(31e-6).epsilon(1e-9));
  CHECK(result.at("ideal_s").get<double>() == Approx(22e-6).epsilon(1e-9));
  REQUIRE(result.at("npus").size() == 2);
  // Both ranks take 31 us; NPU 0 is the first of them. Its w can't come in the 10 us before b: 19 - 10.
  CHECK(result.at("npu") == 0);
  CHECK(result.at("bound").at("method") == "window");
  CHECK(result.at("bound").at("stall_s").get<double>() <= 9e-6 + 1e-12);

  const json events = json::parse(read_text(timeline)).at("traceEvents");
  std::map<int, std::string> processes;
  std::map<int, std::set<std::string>> ops;
  for (const json& e : events) {
    if (e.at("ph") == "M" && e.at("name") == "process_name") processes[e.at("pid")] = e.at("args").at("name");
    if (e.at("ph") == "X" && e.value("cat", "") == "op") ops[e.at("pid")].insert(e.at("name"));
  }
  REQUIRE(processes.size() == 2);
  CHECK(processes.begin()->second == "NPU 0");
  CHECK(std::next(processes.begin())->second == "NPU 1");
  CHECK(ops[processes.begin()->first] == std::set<std::string>{"a", "b", "meet"});
  CHECK(ops[std::next(processes.begin())->first] == std::set<std::string>{"long", "meet"});
  const CommandResult plan = run_hyperoffload("simulate " + trace + " --hardware " + machine + " --plan x.json");
  CHECK(plan.status == 2);
}

TEST_CASE("ranks have the bound that was asked for, and one that waits for others needs less HBM") {
  TemporaryFolder folder;
  const std::string trace = folder / "ranks.json", machine = folder / "pair.yaml";
  write_text(machine, kPair);
  const auto result = [&](const std::string& text, const std::string& bound) {
    write_text(trace, text);
    const CommandResult run = run_hyperoffload("simulate " + trace + " --hardware " + machine + " --policy graph -o - --bound " + bound);
    INFO(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out);
  };
  const json window = result(kRanks, "window"), tight = result(kRanks, "lp");
  CHECK(tight.at("bound").at("method") == "lp");
  CHECK(tight.at("bound").at("stall_s") >= window.at("bound").at("stall_s"));
  CHECK(tight.at("bound").at("stall_s").get<double>() <= 9e-6 + 1e-12);  // as above: 19 - 10 us
  // NPU 1 reads 18,000 B twice, other bytes each time, in 20 kB: store (19 us) and load (19 us) in the 100 us that NPU
  // 0 takes before they meet. On its own it would need 36,000 B not to stall.
  const char* waits = R"({"format": "hyperoffload-trace", "version": 1, "name": "waits", "ranks": [
 {"ops": [{"name": "long", "duration_us": 100},
          {"name": "meet", "collective": {"kind": "all-gather", "bytes": 2000}, "after": ["long"], "engine": "comm"}]},
 {"tensors": [{"name": "w0", "bytes": 18000, "kind": "weight"}, {"name": "w1", "bytes": 18000, "kind": "weight"}],
  "ops": [{"name": "r0", "duration_us": 10, "reads": ["w0"]}, {"name": "r1", "duration_us": 10, "reads": ["w1"]},
          {"name": "meet", "collective": {"kind": "all-gather", "bytes": 2000}, "after": ["r1"], "engine": "comm"}]}]})";
  for (const char* bound : {"window", "lp"}) {
    const json run = result(waits, bound);
    CHECK(run.at("stall_s") == 0);
    CHECK(run.at("hbm_peak_bytes") <= 20000);
    CHECK(run.at("bound").at("hbm_peak_bytes") <= run.at("hbm_peak_bytes"));
    CHECK(run.at("bound").at("hbm_peak_bytes") >= 18000);
  }
}

TEST_CASE("an experiment whose trace has ranks runs every policy on them") {
  TemporaryFolder folder;
  const std::string out = folder / "out", experiment = folder / "e.yaml";
  write_text(folder / "ranks.json", kRanks);
  write_text(folder / "pair.yaml", kPair);
  const std::string text =
      "name: pair\nhardware: pair.yaml\nworkload: {trace: ranks.json}\npolicies: [resident, on_demand, graph]\n"
      "output: {timeline: true}\n";
  write_text(experiment, text);
  const CommandResult run = run_hyperoffload("run " + experiment + " -o " + out + " --jobs 2");
  INFO(run.err);
  REQUIRE(run.status == 0);
  const json results = json::parse(read_text(out + "/results.json"));
  for (const char* policy : {"resident", "on_demand", "graph"}) {
    INFO(policy);
    const json result = policy_of(results, policy);
    CHECK(result.at("fits") == true);
    CHECK(result.at("npus").size() == 2);
    CHECK_FALSE(result.at("bound").is_null());
    CHECK(result.at("bound").at("stall_s").get<double>() <= result.at("stall_s").get<double>() + 1e-15);
    CHECK(std::filesystem::exists(out + "/" + policy + ".trace.json"));
    CHECK(std::filesystem::exists(out + "/" + policy + ".series.json"));
  }
  for (const char* rank : {"0", "1"}) CHECK(std::filesystem::exists(out + "/graph.plan." + rank + ".json"));
  write_text(folder / "pair.yaml", std::string(kPair).replace(std::string(kPair).find("count: 2"), 8, "count: 3"));
  const CommandResult wrong = run_hyperoffload("run " + experiment);
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("workload: ranks: found 2 traces, expected one for each of the machine's 3 NPUs") !=
        std::string::npos);
}

TEST_CASE("run writes several files, so not to standard output") {
  const CommandResult run = run_hyperoffload("run " + kConfigs + "experiments/quickstart.yaml -o -");
  CHECK(run.status == 2);
  CHECK(run.out.empty());
  CHECK(run.err.find("-o: found -, expected a folder: several files are written") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists("-"));
}
