// The JSON Schemas of docs/schemas beside the readers: what is shipped and what commands write keeps to
// them, and both refuse the same damage.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "sim/model/error.h"
#include "sim/model/graph.h"
#include "sim/model/plan.h"
#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"

using namespace hyperoffload;
using nlohmann::json;

namespace {

const std::string kSource = source_dir();

// One verdict a file: "ok", or what is wrong.
std::vector<std::string> validate(const std::string& schema, const std::vector<std::string>& files) {
  std::string command = "python3 " + kSource + "/test/support/validate_json.py " + kSource +
                        "/docs/schemas/" + schema + ".schema.json";
  for (const std::string& file : files) command += " '" + file + "'";
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  REQUIRE(pclose(pipe) == 0);
  std::vector<std::string> verdicts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) verdicts.push_back(line);
  REQUIRE(verdicts.size() == files.size());
  return verdicts;
}

void check_valid(const std::string& schema, const std::vector<std::string>& files) {
  for (const std::string& verdict : validate(schema, files)) CHECK(verdict == "ok");
}

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
 "actions": [{"kind": "prefetch", "tensor": "w", "after_op": null, "before_op": "c", "range_bytes": [0, 500], "iteration": "first"},
             {"kind": "store", "tensor": "x", "after_op": "a"}],
 "initial_pool": ["w"], "order": ["a", "b", "c"],
 "prediction": {"iteration_s": 1, "first_iteration_s": 1, "total_s": 1, "ideal_s": 1, "hbm_peak_bytes": 1, "pool_peak_bytes": 0},
 "bound": {"hbm_peak_bytes": 1, "stall_s": 0.5, "method": "window", "order": "program"}})";

struct Damage {
  std::string what;
  json document;
};

// An unknown key in every object; every value as something of another type; every key once left out.
std::vector<Damage> damages(const json& good) {
  std::vector<Damage> all;
  const json flat = good.flatten();
  for (const auto& [path, leaf] : flat.items()) {
    if (path.rfind("/meta/", 0) == 0) continue;  // free
    for (json::json_pointer at(path); !at.empty(); at = at.parent_pointer()) {
      const std::string place = at.to_string();
      for (const json& other : {json(true), json("?"), json(-1), json(0.5), json::array(), json::object()}) {
        if (other.type() == good[at].type()) continue;
        all.push_back({place + " := " + other.dump(), good});
        all.back().document[at] = other;
      }
      const json& above = good[at.parent_pointer()];
      if (!above.is_object()) continue;
      all.push_back({place + " left out", good});
      all.back().document[at.parent_pointer()].erase(at.back());
      all.push_back({at.parent_pointer().to_string() + " with an unknown key", good});
      all.back().document[at.parent_pointer()]["unknown"] = 1;
    }
  }
  return all;
}

// Parses each document; both sides must agree, but for what only the reader can know.
template <class Parse>
void compare_damage(const std::string& schema, const json& good, Parse parse) {
  TemporaryFolder folder;
  const std::vector<Damage> all = damages(good);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < all.size(); ++i) {
    files.push_back(folder / std::to_string(i));
    write_text(files.back(), all[i].document.dump());
  }
  const std::vector<std::string> verdicts = validate(schema, files);
  int refused = 0, unknown_keys = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string error;
    try {
      parse(all[i].document.dump());
    } catch (const InputError& e) {
      error = e.what();
    }
    INFO(all[i].what << "\nschema: " << verdicts[i] << "\nreader: " << error);
    // A name that nothing has any more, or an op without its tensor, is beyond a schema.
    const bool names = error.find("which is no ") != std::string::npos ||
                       error.find("before anything wrote it") != std::string::npos ||
                       error.find("which is not persistent") != std::string::npos ||
                       error.find("each op once") != std::string::npos;
    CHECK((verdicts[i] == "ok") == (error.empty() || names));
    refused += verdicts[i] != "ok";
    if (all[i].what.find("unknown key") != std::string::npos) {
      ++unknown_keys;
      CHECK(verdicts[i] != "ok");
      CHECK(error.find("unknown") != std::string::npos);
    }
  }
  CHECK(refused > 100);
  CHECK(unknown_keys > 10);
}

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
