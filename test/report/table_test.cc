#include "sim/report/table.h"

#include <algorithm>
#include <sstream>

#include "sim/report/human.h"
#include "test/report/sample_results.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t code_points(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// A run of `policy` that takes `time` where 1 s is ideal.
Result run(const std::string& policy, double time, Bytes peak = Bytes(std::int64_t{47} << 30)) {
  Result r;
  r.trace = "toy";
  r.hardware = "die";
  r.policy = policy;
  r.fits = true;
  r.hbm_capacity = Bytes(std::int64_t{48} << 30);
  NpuFigures f;
  f.iteration = Seconds(time);
  f.ideal = Seconds(1);
  f.stall = f.iteration - f.ideal;
  f.slowdown = time;
  f.pool_to_hbm.bytes = Bytes(std::int64_t{100} << 30);
  r.npus = {f};
  r.hbm_peak = peak;
  return r;
}

}  // namespace

TEST_CASE("A row has the policy, whether it fits, times, peak and bytes moved, under aligned headings") {
  const auto lines = lines_of(results_table({run("graph", 1.25), run("on_demand", 3)}));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "toy on die, " + human_bytes(Bytes(std::int64_t{48} << 30)) +
                        " of HBM, one cold iteration, ideal " + human_time(Seconds(1)));
  CHECK(lines[1].size() == lines[2].size());
  CHECK(lines[2].size() == lines[3].size());
  std::istringstream row(lines[2]);
  std::vector<std::string> words;
  for (std::string word; row >> word;) words.push_back(word);
  CHECK(words == std::vector<std::string>{"graph", "yes", "1.250", "s", "1.250x", "250.0", "ms", "47.00",
                                          "GiB", "100.0", "GiB", "0", "B"});
}

TEST_CASE("A rate that the trace's phase is measured in has its column") {
  Result decode = run("graph", 1.25);
  decode.throughput.tokens_per_s = 1234.5;
  const auto lines = lines_of(results_table({decode, run("on_demand", 3)}));
  CHECK(has(lines[1], "tokens/s"));
  CHECK(has(lines[2], human_number(1234.5)));
  CHECK(lines[3].back() == '-');
  CHECK_FALSE(has(results_table({run("graph", 1)}), "tokens/s"));
}

TEST_CASE("Of several bounds of one machine the table shows the tighter one") {
  Result cheap = run("resident", 1), tight = run("graph", 1.1);
  cheap.bound = Bound{Bytes(1024), Seconds(0), "window", "program"};
  tight.bound = Bound{Bytes(2048), Seconds(0), "lp", "program"};
  const std::string text = results_table({cheap, tight});
  CHECK(has(text, "bound (lp"));
  CHECK_FALSE(has(text, "bound (window"));
}

TEST_CASE("What doesn't fit shows dashes and its reason below") {
  const auto lines = lines_of(results_table({run("on_demand", 3), sample_failure()}));
  const auto row =
      std::find_if(lines.begin(), lines.end(), [](const std::string& l) { return l.rfind("graph", 0) == 0; });
  REQUIRE(row != lines.end());
  CHECK(has(*row, "no"));
  CHECK(has(*row, "-"));
  CHECK(has(*(row + 1), sample_failure().reason));
}

TEST_CASE("Names from files can neither break a row nor its alignment") {
  const auto lines = lines_of(results_table({run("na\u00efve", 1), run("bad\n\033[31mname", 1)}));
  REQUIRE(lines.size() == 4);
  CHECK(code_points(lines[2]) == lines[1].size());
  CHECK(has(lines[3], "bad??[31mname"));
}

TEST_CASE("The bound line says what it is proven for and how tight it is") {
  Result r = run("graph", 1.003);
  r.bound = Bound{Bytes(std::int64_t{46} << 30), Seconds(0.002), "window", "program"};
  const std::string cheap = results_table({r, r});
  CHECK(has(cheap,
            "bound (window, program order): zero stall takes at least 46.00 GiB of HBM; at this capacity the "
            "stall is at "
            "least 2.000 ms (a cheap bound"));
  CHECK(std::count(cheap.begin(), cheap.end(), '\n') == 5);  // once for both
  r.bound->method = "lp";
  CHECK_FALSE(has(results_table({r}), "cheap"));
  CHECK_FALSE(has(results_table({r}), "end as they began"));
  r.bound->steady_stall = Seconds(0.0025);
  CHECK(has(results_table({r}), "the stall is at least 2.000 ms, of iterations that end as they began at least 2.500 ms\n"));
}

TEST_CASE("Results of different machines each say theirs") {
  Result other = run("graph", 1);
  other.hardware = "rack";
  const std::string text = results_table({run("graph", 1), other});
  CHECK(has(text, "toy on die"));
  CHECK(has(text, "toy on rack"));
}

TEST_CASE("The answer is about graph, with its slowdown, the bound and the others") {
  Result graph = run("graph", 1.003);
  graph.bound = Bound{Bytes(std::int64_t{46} << 30), Seconds(0.002), "window", "program"};
  graph.binding.sentence = "the link binds";
  const std::string text = results_answer({run("resident", 1), graph, run("on_demand", 1.003 * 3)});
  CHECK(has(text, "graph fits in 47.00 GiB at +0.30 % of the ideal time"));
  CHECK(has(text, "zero stall takes at least 46.00 GiB"));
  CHECK(has(text, "at least 2.000 ms of its 3.000 ms stall can't be avoided"));
  CHECK(has(text, "(cheap bound)"));
  CHECK(has(text, "on_demand takes 3.000x its time and no less HBM (dominated)"));
  CHECK_FALSE(has(text, "resident"));  // faster: nothing to boast of
  Result lean = run("on_demand", 3, Bytes(std::int64_t{46} << 30));
  CHECK(has(results_answer({graph, lean}), "its time.\n"));  // slower with less: a choice, not dominated
  CHECK(has(text, "\nthe link binds.\n"));
  graph.bound->steady_stall = Seconds(0.0025);
  CHECK(has(results_answer({graph}), "2.000 ms of its 3.000 ms stall can't be avoided (2.500 ms once iterations end as they began)"));
  graph.bound->stall = Seconds(0);
  CHECK(has(results_answer({graph}), "at this capacity iterations that end as they began stall at least 2.500 ms"));
}

TEST_CASE("The answer is honest about a run without stall and one that can't be") {
  CHECK(has(results_answer({run("graph", 1)}), "graph fits in 47.00 GiB at the ideal time"));
  CHECK(has(results_answer({run("graph", 2.5)}), "at 2.500x the ideal time"));
  CHECK(has(results_answer({sample_failure()}), "graph can't run: step 12"));
  Result big = run("resident", 1, Bytes(std::int64_t{64} << 30));
  big.fits = false;
  CHECK(has(results_answer({big}), "resident does not fit: it takes 64.00 GiB, 48.00 GiB are there"));
  CHECK(
      has(results_answer({big, run("on_demand", 2)}), "on_demand fits"));  // no graph: the fastest that fits
  CHECK(results_answer({}).empty());
}

}  // namespace hyperoffload
