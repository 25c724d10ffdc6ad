// What `report` reads: a folder that one run or sweep wrote, whole. Everything else is wrong input, named.
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/report_data.h"
#include "sim/model/error.h"
#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/tiny_files.h"

using namespace hyperoffload;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const char* kExperiment = R"(name: tiny
hardware:
  name: tiny
  npu: {count: 1, compute: 1TFLOPS, hbm: {capacity: 20kB, bandwidth: 1.6TB/s}}
  link: {read: {bandwidth: 1GB/s, latency: 1us}, write: {bandwidth: 1GB/s, latency: 1us}}
  pool: {capacity: 1GB}
workload: {trace: two.json}
iterations: 3
policies: [on_demand, graph]
)";

struct Folder {
  TemporaryFolder folder;
  std::string out = folder / "out", series = out + "/graph.series.json", frontier = out + "/frontier.json";
  Folder() {
    write_text(folder / "two.json", kTinyTrace);
    write_text(folder / "e.yaml", kExperiment);
  }
  CommandResult run(const std::string& options = "") const {
    return run_hyperoffload("run " + (folder / "e.yaml") + " -o " + out + " " + options);
  }
  // What is wrong with the folder; empty: nothing.
  std::string fault(const std::string& directory = "") const {
    try {
      read_report_data(directory.empty() ? out : directory);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  // The fault after a change to one file, which is put back.
  std::string fault_with(const std::string& file, const std::function<void(json&)>& change) const {
    const std::string text = read_text(file);
    json changed = json::parse(text);
    change(changed);
    write_text(file, changed.dump());
    const std::string found = fault();
    write_text(file, text);
    return found;
  }
};

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("report: levels over time of another run are refused, whatever differs") {
  Folder f;
  REQUIRE(f.run().status == 0);
  REQUIRE(f.fault() == "");
  const std::string kept = f.folder / "kept.json";
  fs::copy_file(f.series, kept);
  // Each run is another one by a single thing.
  for (const char* other :
       {"--set hbm=25kB", "--set iterations=2", "--set hardware.link.read.bandwidth=2GB/s", "--set hardware.name=huge",
        "--set hardware.pool.capacity=2GB"}) {
    REQUIRE(f.run(other).status == 0);
    CHECK(f.fault() == "");
    fs::copy_file(kept, f.series, fs::copy_options::overwrite_existing);
    INFO(other);
    has(f.fault(), "graph.series.json: $.");
  }
  REQUIRE(f.run().status == 0);
  has(f.fault_with(f.series, [](json& s) { s["trace"] = "three"; }), "$.trace: found \"three\", expected \"two\", as in results.json");
  has(f.fault_with(f.series, [](json& s) { s["policy"] = "on_demand"; }), "$.policy: found");
  has(f.fault_with(f.series, [](json& s) { s["hbm_usable_bytes"] = 1; }), "$.hbm_usable_bytes: found 1, expected 20000");
  // More than the run ever took at once: 19,000 B.
  has(f.fault_with(f.series, [](json& s) { s["iterations"][1]["memory"]["hbm_bytes"][0] = 19001; }), "hbm_peak_bytes, 19000");
}

TEST_CASE("report: a run that was stopped leaves no results that its other files don't belong to") {
  Folder f;
  REQUIRE(f.run().status == 0);
  // It ends as soon as it can't write graph's plan; on_demand's levels are new by then.
  fs::remove(f.out + "/graph.plan.json");
  fs::create_directories(f.out + "/graph.plan.json/in_the_way");
  CHECK(f.run("--set hbm=30kB").status == 2);
  has(f.fault(), "found no results.json, expected a run that reached its end: run it again");
  CHECK_FALSE(fs::exists(f.out + "/results.csv"));
  fs::remove_all(f.out + "/graph.plan.json");
  // A policy that can't run leaves no levels of an earlier run, either: w alone takes 18,000 B.
  REQUIRE(f.run().status == 0);
  REQUIRE(fs::exists(f.series));
  REQUIRE(f.run("--set hbm=10kB").status == 0);
  CHECK_FALSE(fs::exists(f.series));
  CHECK(f.fault() == "");
  // Wrong input is found before anything is removed.
  CHECK(f.run("--set policies=[grph]").status == 2);
  CHECK(fs::exists(f.out + "/results.json"));
}

TEST_CASE("report: levels over time with a hole are refused with its place") {
  Folder f;
  REQUIRE(f.run().status == 0);
  const auto window = [](json& s) -> json& { return s["iterations"][1]; };
  const auto expect = [&](const std::string& message, const std::function<void(json&)>& change) {
    has(f.fault_with(f.series, change), message);
  };
  for (const char* key : {"ops", "tensors", "links", "iterations", "npu", "pool_capacity_bytes"})
    expect(std::string("found no \"") + key + "\"", [&](json& s) { s.erase(key); });
  for (const char* key : {"memory", "use", "start_s", "end_s"})
    expect(std::string("$.iterations[1]: found no \"") + key + "\"", [&](json& s) { window(s).erase(key); });
  for (const char* list : {"hbm_bytes", "hbm_low_bytes", "pool_bytes"}) {
    expect(std::string("$.iterations[1].memory.") + list + ": found", [&](json& s) { window(s)["memory"][list].erase(0); });
    expect("found \"x\", expected a number", [&](json& s) { window(s)["memory"][list][0] = "x"; });
  }
  expect("hbm_bytes_by_kind.weight: found", [&](json& s) { window(s)["memory"]["hbm_bytes_by_kind"]["weight"].push_back(1); });
  expect("time_s: found [], expected at least one", [&](json& s) { window(s)["memory"]["time_s"] = json::array(); });
  expect("expected times in order", [&](json& s) { window(s)["memory"]["time_s"][0] = 1e3; });
  expect("use.pool_to_hbm_bytes: found 0 steps", [&](json& s) { window(s)["use"]["pool_to_hbm_bytes"] = json::array(); });
  expect("engine_busy_s.compute: found", [&](json& s) { window(s)["use"]["engine_busy_s"]["compute"].erase(0); });
  expect("step_s: found 0, expected a time above 0", [&](json& s) { window(s)["use"]["step_s"] = 0; });
  expect("$.iterations: found []", [&](json& s) { s["iterations"] = json::array(); });
  write_text(f.series, "[]");
  has(f.fault(), "graph.series.json: found an array");
}

TEST_CASE("report: a frontier of something else, or with a hole, is refused with its place") {
  Folder f;
  REQUIRE(f.run().status == 0);
  const json point = {{"hbm_bytes", 1}, {"hbm_peak_bytes", 1}, {"iteration_s", 2.0}, {"ideal_s", 1.0}, {"stall_s", 1.0},
                      {"pool_to_hbm_bytes", 0}, {"hbm_to_pool_bytes", 0}, {"bound", {{"stall_s", 0}, {"method", "window"}}}};
  const json good = {{"format", "hyperoffload-frontier"}, {"version", 1}, {"trace", "two"}, {"hardware", "tiny"},
                     {"iterations", 1}, {"points", {point, point}}};
  write_text(f.frontier, good.dump());
  CHECK(f.fault() == "");
  for (const auto& [key, value] : point.items())
    has(f.fault_with(f.frontier, [&](json& c) { c["points"][1].erase(key); }), "$.points[1]: found no \"" + key + "\"");
  has(f.fault_with(f.frontier, [](json& c) { c["points"] = 7; }), "frontier.json: $.points: found 7, expected a list");
  has(f.fault_with(f.frontier, [](json& c) { c["points"][0]["iteration_s"] = nullptr; }), "$.points[0].iteration_s: found null");
  has(f.fault_with(f.frontier, [](json& c) { c["trace"] = "three"; }), "$.trace: found \"three\", expected \"two\"");
}

TEST_CASE("report: a number beyond any double in any of its files is wrong input with file and line") {
  Folder f;
  REQUIRE(f.run().status == 0);
  write_text(f.frontier, R"({"format": "hyperoffload-frontier", "version": 1, "points": []})");
  for (const std::string& file : {f.out + "/results.json", f.series, f.frontier}) {
    const std::string text = read_text(file), mark = "\"version\": 1";
    std::string broken = text;
    const std::size_t at = text.find("\"version\"");
    REQUIRE(at != std::string::npos);
    broken.insert(at, "\"more\": 1e400, ");
    write_text(file, broken);
    has(f.fault(), file + ":");
    has(f.fault(), "1e400");
    CHECK(run_hyperoffload("compare " + f.out + " " + f.out).status == (file.ends_with("results.json") ? 2 : 0));
    write_text(file, text);
  }
}

TEST_CASE("report: a sweep's table is refused where a field is no number, with its line") {
  Folder f;
  REQUIRE(f.run().status == 0);
  const std::string sweep = f.folder / "sweep", good = read_text(f.out + "/results.csv");
  fs::create_directory(sweep);
  // The second row's field of a column.
  const auto with = [&](const std::string& column, const std::string& value) {
    const auto field = [](const std::string& line, std::size_t index) {
      std::size_t at = 0;
      for (bool quoted = false; index > 0; ++at) {
        quoted ^= line[at] == '"';
        index -= !quoted && line[at] == ',';
      }
      return at;
    };
    const std::size_t second = good.find('\n', good.find('\n') + 1) + 1;
    std::size_t index = 0;
    for (const char c : good.substr(0, good.find(column))) index += c == ',';
    const std::size_t from = second + field(good.substr(second), index);
    std::string text = good;
    write_text(sweep + "/results.csv", text.replace(from, text.find_first_of(",\n", from) - from, value));
    return f.fault(sweep);
  };
  CHECK(with("iteration_s", "1.5") == "");
  CHECK(with("stall_s", "") == "");
  for (const char* value : {"fast", "1e400", "nan", "1.5s", "0x10", " 1"})
    has(with("iteration_s", value), "results.csv:3: iteration_s: found \"" + std::string(value) + "\", expected a number");
  has(with("hbm_peak_bytes", "many"), "results.csv:3: hbm_peak_bytes");
  has(with("fits", "maybe"), "results.csv:3: fits: found \"maybe\", expected true or false");
  write_text(sweep + "/results.csv", "a,b\n1,2\n");
  has(f.fault(sweep), "results.csv:1: found no column \"trace\"");
}

TEST_CASE("report: a sweep that was stopped is told to be run again") {
  Folder f;
  const std::string sweep = f.folder / "sweep", command = "sweep " + (f.folder / "e.yaml") + " -o " + sweep;
  CHECK(run_hyperoffload(command + " --set sweep.hbm=[20kB]").out.starts_with("1 point, 2 results: "));
  REQUIRE(run_hyperoffload(command + " --set sweep.hbm=[20kB,30kB]").status == 0);
  CHECK(f.fault(sweep) == "");
  // A share of other points: the table of before is not that of these.
  REQUIRE(run_hyperoffload(command + " --set sweep.hbm=[40kB,50kB] --shard 1/2").status == 0);
  has(f.fault(sweep), "points of a sweep without results.csv, expected all of them");
}
