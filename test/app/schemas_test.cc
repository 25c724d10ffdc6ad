// The JSON Schemas of the JSON files beside the readers: what is shipped and what commands write keeps to
// them, and both refuse the same damage.
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/model/error.h"
#include "sim/model/graph.h"
#include "sim/model/plan.h"
#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"
#include "test/support/schemas.h"

using namespace hyperoffload;
using nlohmann::json;

namespace {

const std::string kSource = source_dir();

void run(const std::string& arguments) {
  const CommandResult result = run_hyperoffload(arguments);
  INFO(arguments << "\n" << result.err);
  REQUIRE(result.status == 0);
}

// Every key that a trace may have.
const char* kTrace =
    R"({"format": "hyperoffload-trace", "version": 1, "name": "all", "meta": {"free": [1, {"x": null}]},
 "tensors": [{"name": "w", "bytes": 1000, "kind": "weight", "persistent": true, "initial": "pool"},
             {"name": "x", "bytes": 2e3, "kind": "activation"}],
 "ops": [{"name": "a", "duration_us": 10, "flops": 1e6, "hbm_bytes": 100, "writes": ["x"], "workspace_bytes": 8,
          "memory": "hbm", "layer": 0, "phase": "forward", "kernel": "matmul"},
         {"name": "b", "engine": "comm", "reads": ["x"], "after": ["a"], "known_after": "a",
          "collective": {"kind": "all_reduce", "bytes": 2000, "group": "tp"}},
         {"name": "c", "hbm_bytes": 1, "reads": ["w"]}]})";
const char* kPlan = R"({"format": "hyperoffload-plan", "version": 1,
 "actions": [{"kind": "prefetch", "tensor": "w", "after_op": null, "before_op": "c", "range_bytes": [0, 500], "iteration": "first",
              "offset_bytes": 0},
             {"kind": "store", "tensor": "x", "after_op": "a"}],
 "initial_pool": ["w"], "order": ["a", "b", "c"],
 "prediction": {"iteration_s": 1, "first_iteration_s": 1, "total_s": 1, "ideal_s": 1, "hbm_peak_bytes": 1, "pool_peak_bytes": 0},
 "bound": {"hbm_peak_bytes": 1, "stall_s": 0.5, "method": "window", "order": "program"},
 "addresses": [{"tensor": "w", "offset_bytes": 0}, {"tensor": "x", "op": "a", "offset_bytes": 1000}, {"op": "c", "offset_bytes": 3000}],
 "arena_bytes": 3008, "room_bytes": 4000})";

}  // namespace

TEST_CASE("schemas: the trace's reader and its schema refuse the same damage") {
  const json good = json::parse(kTrace);
  REQUIRE(parse_graph(kTrace, "all").ops().size() == 3);
  compare_damage("trace", good, [](const std::string& text) { parse_graph(text, "damaged"); });
}

TEST_CASE("schemas: the plan's reader and its schema refuse the same damage") {
  const Graph graph = parse_graph(kTrace, "all");
  REQUIRE(parse_plan(kPlan, "all", graph).actions.size() == 2);
  compare_damage("plan", json::parse(kPlan),
                 [&](const std::string& text) { parse_plan(text, "damaged", graph); });
}

TEST_CASE("schemas: shipped and written traces, plans and results keep to them") {
  TemporaryFolder folder;
  const std::string chain = kSource + "/traces/chain-100.json", all = folder / "all.json",
                    decode = folder / "decode.json.gz", ranks = folder / "ranks.json",
                    plan = folder / "plan.json", result = folder / "result.json";
  const std::string machine = " --hardware " + kSource + "/configs/hardware/cloudmatrix384-die.yaml";
  write_text(all, kTrace);
  const json two = json::parse(read_text(chain));
  write_text(ranks, json{{"format", "hyperoffload-trace"},
                         {"version", 1},
                         {"ranks", {{{"tensors", two["tensors"]}, {"ops", two["ops"]}}}}}
                        .dump());
  run("trace generate " + kSource + "/configs/workloads/llama-3.1-8b-decode.yaml -o " + decode);
  check_valid("trace", {chain, all, decode, ranks});

  run("plan " + chain + machine + " --hbm 5MB --iterations 2 -o " + plan);
  write_text(folder / "all.plan.json", kPlan);
  CHECK_FALSE(json::parse(read_text(plan)).at("actions").empty());
  check_valid("plan", {plan, folder / "all.plan.json"});

  run("simulate " + chain + machine + " --hbm 5MB --iterations 2 --plan " + plan + " -o " + result);
  check_valid("result", {result});

  // on_demand stalls, so it has waits; the machine with too little for any policy has no figures.
  write_text(folder / "experiment.yaml", "name: chain\nhardware: " + kSource +
                                             "/configs/hardware/cloudmatrix384-die.yaml\nworkload: {trace: " +
                                             chain + "}\nhbm: 5MB\npolicies: [resident, on_demand, graph]\n");
  run("run " + (folder / "experiment.yaml") + " -o " + (folder / "fits"));
  run("run " + (folder / "experiment.yaml") + " --set hbm=1MB -o " + (folder / "short"));
  const json fits = json::parse(read_text(folder / "fits/results.json")),
             small = json::parse(read_text(folder / "short/results.json"));
  CHECK_FALSE(fits["runs"][1]["stalls"]["worst"].empty());
  CHECK(small["runs"][2]["iteration_s"].is_null());
  check_valid("results", {folder / "fits/results.json", folder / "short/results.json"});
  check_valid("series", {folder / "fits/graph.series.json", folder / "fits/on_demand.series.json"});
}

TEST_CASE("schemas: a result with an unknown key, a missing figure or half of its figures is refused") {
  TemporaryFolder folder;
  const std::string good = folder / "good.json";
  run("simulate " + kSource + "/traces/chain-100.json --hardware " + kSource +
      "/configs/hardware/toy.yaml --policy resident -o " + good);
  const json result = json::parse(read_text(good));
  std::vector<std::string> files = {good};
  const auto damaged = [&](const json& document) {
    files.push_back(folder / std::to_string(files.size()));
    write_text(files.back(), document.dump());
  };
  for (const char* place :
       {"", "/stalls", "/stalls/per_op", "/npus/0", "/links/pool_to_hbm", "/throughput"}) {
    json document = result;
    document[json::json_pointer(place)]["unknown"] = 1;
    damaged(document);
  }
  json document = result;
  document.erase("stall_s");
  damaged(document);
  document = result;
  document["stalls"] = nullptr;  // null figures come together
  damaged(document);
  document = result;
  document["hbm_peak_bytes"] = -1;
  damaged(document);
  const std::vector<std::string> verdicts = validate("result", files);
  CHECK(verdicts[0] == "ok");
  for (std::size_t i = 1; i < files.size(); ++i) {
    INFO(files[i]);
    CHECK(verdicts[i] != "ok");
  }
}
