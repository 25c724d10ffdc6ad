// `sweep`: axes and ranges, what is run again, interruptions, shares of the points, what has no effect.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "app/progress.h"
#include "app/sweep.h"
#include "app/sweep_axes.h"
#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"
#include "test/support/tiny_files.h"

using namespace hyperoffload;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const char* kExperiment = R"(name: tiny
hardware: tiny.yaml
workload: {trace: two.json}
policies: [on_demand, graph]
)";

struct Files {
  TemporaryFolder folder;
  std::string experiment = folder / "e.yaml", out = folder / "out";
  explicit Files(const std::string& sweep) {
    write_text(folder / "two.json", kTinyTrace);
    write_text(folder / "tiny.yaml", kTinyMachine);
    write_text(experiment, kExperiment + sweep);
  }
  std::string command(const std::string& directory) const { return "sweep " + experiment + " -o " + directory; }
  CommandResult run(const std::string& extra = "") const { return run_hyperoffload(command(out) + " " + extra); }
};

const std::string kBandwidths = "sweep: {hardware.link.read.bandwidth: [500MB/s, 1GB/s, 2GB/s, 4GB/s]}\n";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// By path below the folder: the content of every file.
std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = read_text(entry.path().string());
  return files;
}

std::vector<fs::path> results_below(const std::string& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().filename() == "result.json") found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Column of results.csv by row, without quotes inside.
std::vector<std::string> column(const std::string& csv, const std::string& name) {
  const std::vector<std::string> lines = lines_of(csv);
  const auto fields = [](const std::string& line) {
    std::vector<std::string> all;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');) all.push_back(field);
    return all;
  };
  const std::vector<std::string> header = fields(lines.at(0));
  const auto at = static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  std::vector<std::string> values;
  for (std::size_t i = 1; i < lines.size(); ++i) values.push_back(fields(lines[i]).at(at));
  return values;
}

std::string first_values(const std::string& range) {
  const YamlNode experiment = parse_yaml(kExperiment + ("sweep: {hbm: " + range + "}\n"), "e.yaml");
  std::string text;
  // The machine isn't there: only the axes are read.
  const YamlNode inlined = with_value(with_value(experiment, "hardware", parse_yaml("{name: x}", "h")), "workload",
                                      parse_yaml("{trace: t}", "w"));
  const SweepAxes axes(inlined);
  for (std::size_t i = 0; i < axes.points(); ++i) text += (i ? " " : "") + axes.values(i)[0];
  return text;
}

}  // namespace

TEST_CASE("ranges: linear between their ends, or in equal ratios, with ends as written") {
  CHECK(first_values("40GB/s..200GB/s x 9") ==
        "40GB/s 60GB/s 80GB/s 100GB/s 120GB/s 140GB/s 160GB/s 180GB/s 200GB/s");
  CHECK(first_values("1..64 x 7 log") == "1 2 4 8 16 32 64");
  CHECK(first_values("0.1..0.3 x 3") == "0.1 0.2 0.3");
  CHECK(first_values("4GiB..1GiB x 4") == "4GiB 3GiB 2GiB 1GiB");
  CHECK(first_values("1000B..2000B x 4") == "1000B 1333B 1667B 2000B");  // whole bytes
  CHECK(first_values("[1GiB, 2GiB .. 4GiB x 3, 9GiB]") == "1GiB 2GiB 3GiB 4GiB 9GiB");
}

TEST_CASE("one result a point and policy, the axes' columns first, and time falls with bandwidth") {
  const Files files(kBandwidths);
  const CommandResult run = files.run();
  INFO(run.err);
  REQUIRE(run.status == 0);
  CHECK(results_below(files.out).size() == 4 * 2);
  const std::string csv = read_text(files.out + "/results.csv");
  CHECK(csv.rfind("hardware.link.read.bandwidth,trace,hardware,policy,", 0) == 0);
  CHECK(column(csv, "hardware.link.read.bandwidth") ==
        std::vector<std::string>{"500MB/s", "500MB/s", "1GB/s", "1GB/s", "2GB/s", "2GB/s", "4GB/s", "4GB/s"});
  // graph: max(10, 1 + 18000 / bandwidth) + 10 us.
  const double expected[] = {1 + 36 + 10, 1 + 18 + 10, 1 + 9 + 10, 10 + 10};
  const std::vector<std::string> times = column(csv, "iteration_s"), policies = column(csv, "policy");
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(policies[2 * i + 1] == "graph");
    CHECK(std::stod(times[2 * i + 1]) == Approx(expected[i] * 1e-6).epsilon(1e-9));
  }
  for (std::size_t i = 2; i < times.size(); ++i) CHECK(std::stod(times[i]) <= std::stod(times[i - 2]));
}

TEST_CASE("a DeepSeek-V3 token's missed experts: 36.3 ms at 450 GB/s, 297 ms at 55 GB/s") {
  // 58 layers x 8 experts of 3 x 7168 x 2048 bytes (FP8), 80 % of the 20.43 GB not cached (vLLM issue 13486).
  const double bytes = 0.8 * 58 * 8 * 3 * 7168 * 2048;
  TemporaryFolder folder;
  write_text(folder / "experts.json",
             R"({"format": "hyperoffload-trace", "version": 1, "name": "experts", "tensors": [{"name": "w", "kind": "weight",
 "initial": "pool", "bytes": )" + std::to_string(static_cast<long long>(bytes)) +
                 R"(}], "ops": [{"name": "token", "duration_us": 0, "reads": ["w"]}]})");
  write_text(folder / "e.yaml", R"(name: experts
hardware: {name: gh, npu: {compute: 1PFLOPS, hbm: {capacity: 96GB, bandwidth: 4TB/s}}, pool: {capacity: 480GB},
  link: {read: {bandwidth: 1GB/s}, write: {bandwidth: 1GB/s}}}
workload: {trace: experts.json}
policies: [graph]
sweep: {hardware.link.read.bandwidth: [450GB/s, 55GB/s]}
)");
  const CommandResult run = run_hyperoffload("sweep " + (folder / "e.yaml") + " -o " + (folder / "out"));
  INFO(run.err);
  REQUIRE(run.status == 0);
  const std::vector<std::string> times = column(read_text(folder / "out/results.csv"), "iteration_s");
  CHECK(std::stod(times[0]) == Approx(0.0363).epsilon(0.002));
  CHECK(std::stod(times[1]) == Approx(0.297).epsilon(0.002));
}

TEST_CASE("an axis that changes nothing is named, one that binds is not") {
  const Files files(
      "sweep: {hardware.link.read.bandwidth: [1GB/s, 2GB/s], hardware.link.write.bandwidth: [1GB/s, 1TB/s]}\n");
  const CommandResult run = files.run();
  REQUIRE(run.status == 0);
  CHECK(run.out.find("hardware.link.write.bandwidth: no effect") != std::string::npos);
  CHECK(run.out.find("not on the critical resource") != std::string::npos);
  CHECK(run.out.find("hardware.link.read.bandwidth: changes whether or how fast it runs: graph, on_demand\n") !=
        std::string::npos);
}

TEST_CASE("what never fits has no time that an axis could change") {
  // 19,000 B at once: with 10 and 11 kB nothing fits, and `resident` tells the figures of a device big enough.
  const Files files("sweep: {hbm: [10kB, 11kB], hardware.npu.hbm.bandwidth: [1TB/s, 2TB/s]}\n");
  std::string trace = kTinyTrace;
  trace.replace(trace.find("\"duration_us\": 10, \"reads\": [\"w\""), 17, "\"hbm_bytes\": 18000000");
  write_text(files.folder / "two.json", trace);
  const CommandResult run = files.run("--set 'policies=[resident, graph]'");
  INFO(run.out << run.err);
  REQUIRE(run.status == 0);
  CHECK(run.out.find("hbm: no effect: no time, peak or byte moved changes; nothing fits at any point\n") != std::string::npos);
  // 18 us or 9 us of HBM traffic: the ideal time changes, whether it fits does not.
  CHECK(run.out.find("hardware.npu.hbm.bandwidth: no effect on any time: nothing fits at any point; changes peaks, bytes moved or "
                     "the ideal time alone: resident; no effect on graph\n") != std::string::npos);
}

TEST_CASE("a point that was edited or damaged is run again, whatever it says") {
  const Files files(kBandwidths + "output: {timeline: true}\n");
  REQUIRE(files.run().status == 0);
  const auto before = files_below(files.out);
  const std::vector<fs::path> results = results_below(files.out);
  std::string text = read_text(results[2].string());
  const std::size_t at = text.find("\"iteration_s\": ") + 15;
  text[at + text.substr(at).find_first_of("123456789")] ^= 1;  // another digit
  write_text(results[2].string(), text);
  write_text((results[4].parent_path() / "timeline.trace.json").string(), "{}");
  write_text((results[6].parent_path() / "checksums.xxh128").string(), "");
  CHECK(files.run().err.find("3 run now, 5 were there") != std::string::npos);
  CHECK(files_below(files.out) == before);
}

TEST_CASE("a sweep with --prune takes away points that are none any more, and nothing that somebody else put there") {
  const Files files(kBandwidths);
  REQUIRE(files.run().status == 0);
  const auto folders = [&] {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(files.out + "/points")) names.insert(entry.path().filename().string());
    return names;
  };
  const std::string fewer = "--set 'sweep.hardware.link.read.bandwidth=[1GB/s, 2GB/s]'";
  CHECK(folders().size() == 4);
  CHECK(files.run(fewer).err.find("2 further folders in " + files.out + "/points of other inputs or another build of this program "
                                  "(--prune removes such)\n") != std::string::npos);
  CHECK(folders().size() == 4);
  CHECK(lines_of(read_text(files.out + "/results.csv")).size() == 1 + 2 * 2);  // of the points there are

  const std::string mine = files.out + "/points/mine-0123456789abcdef", notes = files.out + "/points/notes";
  fs::create_directories(mine + "/graph");
  write_text(mine + "/graph/figure.png", "");
  fs::create_directories(notes);
  const CommandResult pruned = files.run(fewer + " --prune");
  CHECK(pruned.err.find("2 further folders in " + files.out + "/points of other inputs or another build of this program: removed\n") !=
        std::string::npos);
  CHECK(pruned.err.find("2 further folders in " + files.out + "/points not of a sweep: left alone\n") != std::string::npos);
  CHECK(folders().size() == 2 + 2);
  CHECK(fs::exists(mine + "/graph/figure.png"));
  CHECK(files.run(fewer).err.find("0 run now, 4 were there") != std::string::npos);
  CHECK(files.run("--prune --list").status == 2);
  CHECK(files.run("--prune --shard 1/2").status == 2);
}

TEST_CASE("run again, a sweep does what is missing or changed and nothing else") {
  const Files files(kBandwidths);
  REQUIRE(files.run().status == 0);
  const auto before = files_below(files.out);
  const auto times = [&] {
    std::map<fs::path, fs::file_time_type> all;
    for (const fs::path& path : results_below(files.out)) all[path] = fs::last_write_time(path);
    return all;
  };
  const auto stamps = times();
  CHECK(files.run().err.find("0 run now, 8 were there") != std::string::npos);
  CHECK(times() == stamps);

  const fs::path gone = results_below(files.out)[3], broken = results_below(files.out)[5];
  fs::remove(gone);
  write_text(broken.string(), "{\"format\": \"hyperoffload-result\", \"ver");  // a machine that lost power
  CHECK(files.run().err.find("2 run now, 6 were there") != std::string::npos);
  CHECK(files_below(files.out) == before);

  write_text(files.experiment, std::string(kExperiment) + "# a remark\n" + kBandwidths);
  CHECK(files.run().err.find("0 run now") != std::string::npos);
  write_text(files.experiment, kExperiment + std::string("sweep: {hardware.link.read.bandwidth: [500MB/s, 3GB/s]}\n"));
  CHECK(files.run().err.find("2 run now, 2 were there") != std::string::npos);
  CHECK(lines_of(read_text(files.out + "/results.csv")).size() == 1 + 4);

  std::string trace = kTinyTrace;
  trace.replace(trace.find("18000"), 5, "17000");
  write_text(files.folder / "two.json", trace);  // a file that the workload names
  CHECK(files.run().err.find("4 run now, 0 were there") != std::string::npos);
  std::string machine = kTinyMachine;
  machine.replace(machine.find("20kB"), 4, "21kB");
  write_text(files.folder / "tiny.yaml", machine);
  CHECK(files.run().err.find("4 run now, 0 were there") != std::string::npos);
  CHECK(files.run("--set 'policies=[graph, on_demand, resident]'").err.find("2 run now, 4 were there") !=
        std::string::npos);
}

TEST_CASE("the same bytes with any number of jobs, in shares, by --list in any order, or point by point") {
  const Files files(
      "sweep: {hbm: [19kB, 20kB], zip: {hardware.link.read.bandwidth: 1GB/s..4GB/s x 3, iterations: [1, 2, 3]}}\n");
  REQUIRE(files.run().status == 0);
  const auto expected = files_below(files.out);
  CHECK(results_below(files.out).size() == 2 * 3 * 2);

  const std::string jobs = files.folder / "jobs", shards = files.folder / "shards", listed = files.folder / "listed";
  REQUIRE(run_hyperoffload(files.command(jobs) + " --jobs 3").status == 0);
  CHECK(files_below(jobs) == expected);

  for (const char* shard : {"3/4", "1/4", "4/4", "2/4"}) {
    CHECK_FALSE(fs::exists(shards + "/results.csv"));
    const CommandResult run = run_hyperoffload(files.command(shards) + " --shard " + shard);
    CHECK(run.status == 0);
    CHECK(run.out.empty());
  }
  CHECK(files_below(shards) == expected);

  const CommandResult list = run_hyperoffload(files.command(listed) + " --list");
  CHECK_FALSE(fs::exists(listed));
  std::vector<std::string> commands = lines_of(list.out);
  REQUIRE(commands.size() == 6);
  std::reverse(commands.begin(), commands.end());
  for (const std::string& command : commands) CHECK(std::system((command + " 2>/dev/null").c_str()) == 0);
  CHECK(files_below(listed) == expected);
}

TEST_CASE("a shell loop with --set gives the sweep's figures") {
  const Files files(kBandwidths);
  REQUIRE(files.run().status == 0);
  const std::vector<std::string> times = column(read_text(files.out + "/results.csv"), "iteration_s");
  write_text(files.experiment, kExperiment);
  std::vector<std::string> looped;
  for (const char* bandwidth : {"500MB/s", "1GB/s", "2GB/s", "4GB/s"}) {
    const std::string out = files.folder / "loop";
    const CommandResult run = run_hyperoffload("run " + files.experiment + " -o " + out +
                                               " --set hardware.link.read.bandwidth=" + bandwidth);
    INFO(run.err);
    REQUIRE(run.status == 0);
    for (const std::string& time : column(read_text(out + "/results.csv"), "iteration_s")) looped.push_back(time);
  }
  CHECK(looped == times);
}

TEST_CASE("kill -9 loses nothing that is finished, and two sweeps at once do no harm") {
  const Files files("sweep: {hardware.link.read.bandwidth: 1GB/s..4GB/s x 12}\n");
  const std::string whole = files.folder / "whole";
  REQUIRE(run_hyperoffload(files.command(whole)).status == 0);
  const std::string sweep = binary_path() + " " + files.command(files.out) + " --jobs 2 >/dev/null 2>&1";
  for (const char* after : {"0.05", "0.1", "0.15", "0.2"}) {
    const int killed = std::system(("timeout -s KILL " + std::string(after) + " " + sweep).c_str());
    (void)killed;  // it may have been quicker
    if (!fs::exists(files.out)) continue;
    for (const fs::path& result : results_below(files.out))
      CHECK(json::parse(read_text(result.string())).at("format") == "hyperoffload-result");
  }
  CHECK(std::system((sweep + " & " + sweep + "; wait").c_str()) == 0);
  auto files_left = files_below(files.out);  // what was being written when it was killed goes after an hour
  std::erase_if(files_left, [](const auto& file) { return file.first.ends_with(".tmp"); });
  CHECK(files_left == files_below(whole));
}

TEST_CASE("a wrong sweep is one sentence with its line, and no file") {
  const struct {
    const char *sweep, *says;
  } cases[] = {
      {"sweep: {hbm: []}", "e.yaml:5: sweep.hbm: found an empty list"},
      {"sweep: {hbm: 20kB}", "e.yaml:5: sweep.hbm: found \"20kB\", expected a list of values, or a range"},
      {"sweep: {}", "e.yaml:5: sweep: found no axis"},
      {"sweep:\n  hbm: [20kB]\n  hbmm: [1]", "e.yaml:7: sweep.hbmm: found the axis \"hbmm\""},
      {"sweep: {hardware.link.reed.bandwidth: [1GB/s]}", "e.yaml:5: hardware.link: found the unknown key \"reed\""},
      {"sweep: {hbm: [20kB, 20kB]}", "found \"20kB\" twice"},
      {"sweep: {hbm: [20kB, 20000B]}", "found \"20kB\" and \"20000B\", which are one value, expected each value once"},
      {"sweep: {iterations: [2, 2.0]}", "which are one value"},
      {"sweep: {hardware.link.read.bandwidth: [1GB/s, 8Gbps]}", "which are one value"},
      {"sweep: {hardware.link.read.latency: [1us, 1000ns]}", "which are one value"},
      {"sweep: {hardware.npu.hbm.capacity: [20kB, 30kB]}\nhbm: 20kB",
       "e.yaml:5: sweep.hardware.npu.hbm.capacity: found the axis \"hardware.npu.hbm.capacity\" beside `hbm`, which replaces it"},
      {"sweep: {hbm: [20kB], hardware.npu.hbm.capacity: [20kB, 30kB]}", "beside `hbm`, which replaces it"},
      {"sweep: {hbm: [20kB, 1GB/s]}", "e.yaml:5: hbm: found \"1GB/s\""},
      {"sweep: {hbm: 20kB..1GiB x 3}", "two units"},
      {"sweep: {hbm: 20kB..30kB x 1}", "1 values"},
      {"sweep: {hbm: 20kB..30kB}", "FROM..TO x N"},
      {"sweep: {hbm: \"20kB..30kB x 3\"}",
       "found \"20kB..30kB x 3\" in quotes, which make it a text, expected a range without them"},
      {"sweep: {hbm: 20kB..30kB x 3 cubic}", "FROM..TO x N"},
      {"sweep: {hbm: 0kB..30kB x 3 log}", "above 0"},
      {"sweep: {hbm: 20kB..30kB x 99999999}", "99999999 values"},
      {"sweep: {hbm: 20GB..30GB x 99999, iterations: 1..99999 x 99999}", "at most 1000000 points"},
      {"sweep: {zip: {hbm: [20kB, 21kB], iterations: [1]}}", "found 1 values, expected 2"},
      {"sweep: {zip: {hbm: [20kB, 21kB]}}", "at least two"},
      {"sweep: {hbm: [20kB], zip: {hbm: [20kB], iterations: [1]}}", "each axis once"},
      {"sweep: {hardware.npu.count: [1], hardware: [tiny.yaml]}", "shorter path first"},
      {"sweep: {hardware: [missing.yaml]}", "missing.yaml: found no such file"},
      {"sweep: {policies: [[graf]]}", "graf"},
      {"sweep:\n  hardware..x: [1]", "e.yaml:6: found the path"},
      {"sweep: {policies.7: [graph]}", "e.yaml:5: found \"7\""},
      {"", "found no `sweep:`"},
  };
  for (const auto& each : cases) {
    const Files files(each.sweep + std::string("\n"));
    const CommandResult run = files.run();
    INFO(each.sweep << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(run.err.find(each.says) != std::string::npos);
    CHECK_FALSE(fs::exists(files.out));
    const CommandResult list = files.run("--list");  // the same checks
    CHECK(list.status == 2);
    CHECK(list.out.empty());
    CHECK(list.err == run.err);
  }
  const Files files(kBandwidths);
  for (const char* extra : {"--shard 0/4", "--shard 5/4", "--shard 1", "--shard 1/4x", "--jobs 0",
                            "--set hardware.link.read.bandwidth=1GB/s", "--set hbm", "-o -"})
    CHECK(files.run(extra).status == 2);
  CHECK_FALSE(fs::exists(files.out));
  const CommandResult run = run_hyperoffload("run " + files.experiment);
  CHECK(run.status == 2);
  CHECK(run.err.find("e.yaml:5: sweep: found a sweep, expected none: `hyperoffload sweep` runs it") != std::string::npos);
}

TEST_CASE("a policy that can't run has its verdict at that point, and the sweep goes on") {
  const Files files("output: {timeline: true}\nsweep: {hbm: [18kB, 19kB]}\n");  // 19,000 B at once
  const CommandResult run = files.run();
  REQUIRE(run.status == 0);
  const std::vector<std::string> fits = column(read_text(files.out + "/results.csv"), "fits");
  CHECK(fits == std::vector<std::string>{"false", "false", "true", "true"});
}

TEST_CASE("progress tells what is done and how long the rest takes at that rate") {
  CHECK(progress_line(0, 4, 0) == "[..............................] 0/4");
  CHECK(progress_line(2, 4, 65) == "[###############...............] 2/4, 1 min 5 s left");
  CHECK(progress_line(1, 3, 3600) == "[##########....................] 1/3, 2 h 0 min left");
  CHECK(progress_line(4, 4, 9) == "[##############################] 4/4");
}

TEST_CASE("words of a listed command survive the shell") {
  CHECK(shell_word("a/b-c.yaml") == "a/b-c.yaml");
  CHECK(shell_word("policies=[a, b]") == "'policies=[a, b]'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("") == "''");
}
