// `compare`: what differs between two results.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/report/compare.h"
#include "test/support/catch.h"
#include "test/support/command.h"

using namespace hyperoffload;
using nlohmann::json;

namespace {

// w (bytes of it, at 1 GB/s and 1 us) arrives while a (10 us) runs; b (10 us) waits for the rest.
struct Runs {
  TemporaryFolder folder;
  std::string result(const std::string& name, int bytes) {
    write_text(folder / "m.yaml", R"(name: tiny
npu: {count: 1, compute: 1TFLOPS, hbm: {capacity: 40kB, bandwidth: 1.6TB/s}}
link: {read: {bandwidth: 1GB/s, latency: 1us}, write: {bandwidth: 1GB/s, latency: 1us}}
pool: {capacity: 1GB}
)");
    write_text(folder / "t.json",
               R"({"format": "hyperoffload-trace", "version": 1, "name": "two",
 "tensors": [{"name": "w", "bytes": )" +
                   std::to_string(bytes) + R"(, "kind": "weight", "initial": "pool"}],
 "ops": [{"name": "a", "duration_us": 10}, {"name": "b", "duration_us": 10, "reads": ["w"]}]})");
    const std::string path = folder / name;
    const CommandResult run = run_hyperoffload("simulate " + (folder / "t.json") + " --hardware " +
                                               (folder / "m.yaml") + " --policy graph -o " + path);
    INFO(run.err);
    REQUIRE(run.status == 0);
    return path;
  }
};

// The table's row of a field, its columns with one blank between.
std::string row(const std::string& table, const std::string& field) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string text;
    for (std::string word; in >> word;) text += (text.empty() ? "" : " ") + word;
    if (text.rfind(field + " ", 0) == 0) return text;
  }
  return "";
}

json difference(const json& pair, const std::string& field) {
  for (const json& d : pair.at("differences"))
    if (d.at("field") == field) return d;
  return nullptr;
}

}  // namespace

TEST_CASE("compare: two results differ by what their formulas say, in figures and percent") {
  Runs runs;
  const std::string a = runs.result("a.json", 15000), b = runs.result("b.json", 18000);
  const CommandResult run = run_hyperoffload("compare " + a + " " + b + " --json");
  INFO(run.err);
  REQUIRE(run.status == 0);
  const json pair = json::parse(run.out).at("pairs").at(0);
  // 1 + 15 + 10 us against 1 + 18 + 10 us: 26 and 29 us, stalls of 6 and 9 us.
  const json time = difference(pair, "iteration_s"), stall = difference(pair, "stall_s");
  CHECK(time.at("difference").get<double>() == Approx(3e-6).epsilon(1e-6));
  CHECK(time.at("percent").get<double>() == Approx(100.0 * 3 / 26).epsilon(1e-6));
  CHECK(stall.at("percent").get<double>() == Approx(50).epsilon(1e-6));
  CHECK(difference(pair, "stalls.late_transfer_s").at("difference").get<double>() ==
        Approx(3e-6).epsilon(1e-6));
  CHECK(difference(pair, "pool_to_hbm_bytes").at("difference") == 3000);
  CHECK(difference(pair, "hbm_peak_bytes").at("percent").get<double>() == Approx(20));
  CHECK(difference(pair, "ideal_s").is_null());  // it is the same
  CHECK(difference(pair, "stalls.no_room_s").is_null());

  const CommandResult table = run_hyperoffload("compare " + a + " " + b);
  CHECK(table.status == 0);
  CHECK(row(table.out, "iteration_s") == "iteration_s 26.00 us 29.00 us +3.000 us +11.5 %");
  CHECK(row(table.out, "pool_to_hbm_bytes") == "pool_to_hbm_bytes 14.65 KiB 17.58 KiB +2.930 KiB +20.0 %");
  CHECK(table.out.find("ideal_s") == std::string::npos);
}

TEST_CASE("compare: the same result is the same in all fields, and standard input is a side") {
  Runs runs;
  const std::string a = runs.result("a.json", 15000);
  const CommandResult run = run_hyperoffload("compare " + a + " - < " + a);
  CHECK(run.status == 0);
  CHECK(run.out.find("graph: the same in all ") != std::string::npos);
  const CommandResult twice = run_hyperoffload("compare - - < " + a);
  CHECK(twice.status == 2);
}

TEST_CASE("compare: folders are compared policy by policy, place by place") {
  Runs runs;
  const std::string experiment = runs.folder / "e.yaml";
  runs.result("a.json", 18000);
  write_text(experiment,
             "name: two\nhardware: m.yaml\nworkload: {trace: t.json}\npolicies: [on_demand, graph]\n");
  const auto run = [&](const std::string& folder, const std::string& more) {
    REQUIRE(run_hyperoffload("run " + experiment + " -o " + (runs.folder / folder) + more).status == 0);
  };
  run("A", "");
  run("A/point", "");
  run("B", " --set hbm=30kB --set 'policies=[graph, resident]'");
  const CommandResult compared =
      run_hyperoffload("compare " + (runs.folder / "A") + " " + (runs.folder / "B") + " --json");
  REQUIRE(compared.status == 0);
  const json set = json::parse(compared.out);
  CHECK(set.at("pairs").size() == 1);
  CHECK(set.at("pairs").at(0).at("name") == "graph");
  CHECK(set.at("only_a") == json({"on_demand", "point: on_demand", "point: graph"}));
  CHECK(set.at("only_b") == json({"resident"}));
  // The smaller HBM is all that changes: 18 kB fit in both.
  const json pair = set.at("pairs").at(0);
  CHECK(difference(pair, "hbm_capacity_bytes").at("difference") == -10000);
  CHECK(difference(pair, "hbm_capacity_bytes").at("percent") == -25);
  CHECK(difference(pair, "iteration_s").is_null());
}

TEST_CASE("compare: points of two sweeps are paired by their axes") {
  Runs runs;
  const std::string a = runs.result("a.json", 15000), b = runs.result("b.json", 18000);
  const auto copy = [&](const std::string& from, const std::string& to) {
    std::filesystem::create_directories(std::filesystem::path(runs.folder / to).parent_path());
    std::filesystem::copy_file(from, runs.folder / to);
  };
  copy(a, "A/points/hbm=40kB-0123456789abcdef/graph/result.json");
  copy(a, "A/points/hbm=50kB-fedcba9876543210/graph/result.json");
  copy(b, "B/points/hbm=40kB-00000000000000ff/graph/result.json");
  const CommandResult run =
      run_hyperoffload("compare " + (runs.folder / "A") + " " + (runs.folder / "B") + " --json");
  INFO(run.err);
  REQUIRE(run.status == 0);
  const json set = json::parse(run.out);
  // Of two points and one: the one that both have.
  REQUIRE(set.at("pairs").size() == 1);
  CHECK(set.at("pairs").at(0).at("name") == "hbm=40kB: graph");
  CHECK(difference(set.at("pairs").at(0), "pool_to_hbm_bytes").at("difference") == 3000);
  CHECK(set.at("only_a") == json({"hbm=50kB: graph"}));
}

TEST_CASE("compare: what is no result is refused in one line") {
  Runs runs;
  const std::string a = runs.result("a.json", 15000), other = runs.folder / "other.json";
  std::filesystem::create_directory(runs.folder / "empty");
  write_text(other, "{\"format\": \"hyperoffload-plan\", \"version\": 1}");
  write_text(runs.folder / "none.json", "{\"runs\": []}");
  for (const std::string& b : {other, runs.folder / "empty", runs.folder / "none.json",
                               runs.folder / "missing", runs.folder / "t.json", std::string("/dev/null")}) {
    const CommandResult run = run_hyperoffload("compare " + a + " " + b);
    INFO(b << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(run.err.find("expected") != std::string::npos);
  }
}

TEST_CASE("compare: one field is no plural") {
  ComparisonSet set{"a", "b", {}, {}, {}};
  set.pairs.push_back({"one", {{"first_detail", "1", "2", 1., 2., {}}}, 5});
  CHECK(comparison_table(set, false).find("one: 1 field differs, 5 the same\n  1 field of detail differs, too (--all)\n") !=
        std::string::npos);
}
