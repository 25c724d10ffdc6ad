// `ask`: each question's answer against a formula.
#include <cmath>

#include <nlohmann/json.hpp>

#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"

using namespace hyperoffload;
using nlohmann::json;

namespace {

const std::string kConfigs = source_dir() + "/configs/";

std::string tensor(const std::string& name, double bytes, const std::string& extra) {
  return "{\"name\": \"" + name + "\", \"kind\": \"weight\", \"bytes\": " + std::to_string(std::llround(bytes)) + extra + "}";
}

// Layers one after another, each an op that reads its weight; `op` is the rest of an op's fields.
std::string layered_trace(int layers, double bytes, const std::string& op) {
  std::string tensors, ops;
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i), comma = i ? ",\n " : "";
    tensors += comma + tensor("w" + n, bytes, "");
    ops += comma + "{\"name\": \"layer" + n + "\", \"layer\": " + n + ", \"reads\": [\"w" + n + "\"], " + op + "}";
  }
  return R"({"format": "hyperoffload-trace", "version": 1, "name": "layers", "meta": {"phase": "decode", "batch": 1},
 "tensors": [)" + tensors + "],\n \"ops\": [" + ops + "]}";
}

struct Question {
  TemporaryFolder folder;
  std::string experiment = folder / "e.yaml";

  Question(const std::string& trace, const std::string& machine, const std::string& rest = "iterations: 4\n") {
    write_text(folder / "t.json", trace);
    write_text(experiment, "name: e\nhardware: " + machine + "\nworkload: {trace: t.json}\npolicies: [graph]\n" + rest);
  }
  CommandResult ask(const std::string& question, const std::string& options) const {
    return run_hyperoffload("ask " + question + " " + experiment + " " + options);
  }
  json answer(const std::string& question, const std::string& options) const {
    const CommandResult run = ask(question, options + " --json");
    INFO(run.err);
    REQUIRE(run.status == 0);
    return json::parse(run.out);
  }
};

std::string machine(const std::string& hbm, const std::string& hbm_rate, const std::string& link) {
  return "{name: m, npu: {compute: 1TFLOPS, hbm: {capacity: " + hbm + ", bandwidth: " + hbm_rate +
         "}}, link: {read: " + link + ", write: " + link + "}, pool: {capacity: 1TB}}";
}

}  // namespace

TEST_CASE("least HBM: a stream of layers that the link just keeps up with takes two of them") {
  // 10 us an op; 1 us + 9,000 B at 1 GB/s: while one layer computes the next comes, whole by its end.
  const Question q(layered_trace(6, 9000, "\"duration_us\": 10"),
                   machine("1MB", "1.6TB/s", "{bandwidth: 1GB/s, latency: 1us}"));
  const json exact = q.answer("hbm", "--tolerance 0");
  CHECK(exact.at("hbm_bytes") == 2 * 9000);
  CHECK(exact.at("resident_bytes") == 6 * 9000);
  CHECK(exact.at("bound_hbm_bytes") <= 2 * 9000);
  CHECK_FALSE(exact.at("binds").get<std::string>().empty());
  const double rough = q.answer("hbm", "--tolerance 10%").at("hbm_bytes");
  CHECK(rough >= 2 * 9000);
  CHECK(rough <= 1.1 * 2 * 9000 + 1);
  CHECK(q.answer("hbm", "--policy resident --tolerance 0").at("hbm_bytes") == 6 * 9000);
}

TEST_CASE("least HBM with several engines: room for what may run early, which is more than is ever there at once") {
  // Ops of 20 and 1 us in turns on two engines, each with a weight and an activation of its own that only the next pair
  // reads: a plan makes room for the short ones to run ahead. What all bytes take is always enough.
  std::string tensors, ops;
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i), comma = i ? ",\n " : "";
    tensors += comma + tensor("w" + n, 1e6, "") + ",\n {\"name\": \"a" + n + "\", \"kind\": \"activation\", \"bytes\": 100000}";
    ops += comma + "{\"name\": \"o" + n + "\", \"reads\": [\"w" + n + "\"], \"writes\": [\"a" + n + "\"], " +
           (i % 2 ? "\"duration_us\": 1, \"engine\": \"comm\"}" : "\"duration_us\": 20}");
  }
  const Question q(R"({"format": "hyperoffload-trace", "version": 1, "name": "two", "tensors": [)" + tensors + "],\n \"ops\": [" + ops + "]}",
                   machine("64GB", "1.6TB/s", "{bandwidth: 100GB/s, latency: 1us}"), "iterations: 3\n");
  const double bytes = q.answer("hbm", "").at("hbm_bytes");
  CHECK(bytes <= 8 * 1.1e6);
  CHECK(bytes >= 1.1e6);
}

TEST_CASE("between keeping all and streaming all lie points that trade HBM for time") {
  // 12 layers of 9,000 B and 10 us; at 0.5 GB/s 500 B come in a us: what doesn't in (1 + s) x 120 us must stay.
  const Question q(layered_trace(12, 9000, "\"duration_us\": 10"), machine("1MB", "1.6TB/s", "{bandwidth: 500MB/s}"));
  double before = 12 * 9000;
  for (const double slowdown : {0.0, 0.2, 0.5}) {
    const json answer = q.answer("hbm", "--max-slowdown " + std::to_string(slowdown));
    const double bytes = answer.at("hbm_bytes"), least = 12 * 9000 - 500 * 120 * (1 + slowdown);
    CHECK(bytes >= least);
    // Whole layers: as many as the link brings stream through two buffers, the others stay.
    const double streamed = std::floor(120 * (1 + slowdown) / 18 + 1e-9);
    CHECK(bytes <= (12 - streamed + 2) * 9000 * 1.001);
    CHECK(bytes < before);
    before = bytes;
  }
}

TEST_CASE("least HBM for a rate: a 141 GB model at 8.9 tokens/s over 450 GB/s") {
  // vLLM pull request 6317: what doesn't stay must cross the link in every token's time . Here: 20 layers.
  const double bytes = 141.1e9 / 20;
  const Question q(layered_trace(20, bytes, "\"hbm_bytes\": " + std::to_string(std::llround(bytes))),
                   machine("96GB", "4TB/s", "{bandwidth: 450GB/s}"), "iterations: 3\n");
  const json fast = q.answer("hbm", "--min-tokens 8.9 --tolerance 1%");
  const json slow = q.answer("hbm", "--min-tokens 4.6 --tolerance 1%");
  const auto least = [](double tokens) { return 141.1e9 - 450e9 / tokens; };
  CHECK(fast.at("hbm_bytes").get<double>() >= least(8.9));
  CHECK(fast.at("hbm_bytes").get<double>() <= least(8.9) + 2 * bytes);
  CHECK(slow.at("hbm_bytes").get<double>() >= least(4.6));
  CHECK(slow.at("hbm_bytes").get<double>() <= least(4.6) + 2 * bytes);
  CHECK(fast.at("binds").get<std::string>().find("pool -> HBM bandwidth binds") != std::string::npos);
}

TEST_CASE("least bandwidth: what is in the pool must come while the op before computes") {
  const std::string trace = R"({"format": "hyperoffload-trace", "version": 1, "name": "two",
 "tensors": [{"name": "w", "bytes": 18000, "kind": "weight", "initial": "pool"}],
 "ops": [{"name": "a", "duration_us": 10}, {"name": "b", "duration_us": 10, "reads": ["w"]}]})";
  for (const char* declared : {"{bandwidth: 100MB/s, latency: 1us}", "{bandwidth: 90GB/s, latency: 1us}"}) {
    const Question q(trace, machine("20kB", "1.6TB/s", declared), "");
    // 18,000 B in 10 - 1 us; with 50 % more time, 20 us for both.
    CHECK(q.answer("bandwidth", "--tolerance 0").at("read_bytes_per_s").get<double>() == Approx(18000 / 9e-6).epsilon(1e-6));
    CHECK(q.answer("bandwidth", "--max-slowdown 50%").at("read_bytes_per_s").get<double>() ==
          Approx(18000 / 19e-6).epsilon(1.1e-3));
  }
  // A latency longer than the op before: no bandwidth helps.
  const Question late(trace, machine("20kB", "1.6TB/s", "{bandwidth: 1GB/s, latency: 11us}"), "");
  const CommandResult none = late.ask("bandwidth", "");
  CHECK(none.status == 3);
  CHECK(none.out.empty());
  CHECK(none.err.find("no answer") != std::string::npos);
  CHECK(none.err.find("latency") != std::string::npos);
}

TEST_CASE("70B in FP4 on a 2080 Ti: at most 4 of 80 layers may be offloaded for 5 tokens/s, 64 give 0.389") {
  // PocketLLM issue 156: 10.53 GiB/s, 0.4233 GiB a layer. 10.53 / 5 = 2.106 GiB a token, 4.97 layers.
  const double layer = 0.4233 * std::pow(2, 30);
  const Question q(layered_trace(80, layer, "\"hbm_bytes\": " + std::to_string(std::llround(layer))),
                   kConfigs + "hardware/rtx2080ti-pcie3.yaml");
  const json answer = q.answer("layers", "--min-tokens 5 --set hbm=40GiB");
  CHECK(answer.at("layers") == 4);
  CHECK(answer.at("of_layers") == 80);
  CHECK(answer.at("binds").get<std::string>().find("pool -> HBM bandwidth binds") != std::string::npos);
  // 64 transfers of 10 us latency each beside 64 x 0.4233 GiB.
  const json sixty_four = q.answer("layers", "--layers 64");
  CHECK(sixty_four.at("tokens_per_s").get<double>() == Approx(1 / (64 * 0.4233 / 10.53 + 64 * 10e-6)).epsilon(1e-6));
  CHECK(sixty_four.at("tokens_per_s").get<double>() == Approx(0.389).margin(0.0005));
  // 16 resident layers and two buffers, and what the machine file reserves.
  CHECK(sixty_four.at("hbm_bytes").get<double>() == Approx(18 * layer + 1e9).epsilon(1e-6));

  const CommandResult small = q.ask("layers", "--min-tokens 5");  // 11 GB
  CHECK(small.status == 3);
  CHECK(small.err.find("at most 4 of 80 layers") != std::string::npos);
  // n layers in the pool: 80 - n + 2 in HBM of 11 - 1 GB.
  const int fewest = 80 + 2 - static_cast<int>(std::floor(10e9 / layer));
  CHECK(small.err.find("at least " + std::to_string(fewest) + " of 80 layers must be in the pool") != std::string::npos);
}

TEST_CASE("so many layers in the pool: whether that fits and meets the target is said plainly") {
  // 6 layers of 9,000 B: n in the pool leave 6 - n and two buffers in HBM, of one layer one.
  const Question q(layered_trace(6, 9000, "\"duration_us\": 10"), machine("40kB", "1.6TB/s", "{bandwidth: 1GB/s}"));
  for (const auto& [layers, takes] : {std::pair(2, 6 * 9000), std::pair(4, 4 * 9000)}) {
    const std::string option = "--layers " + std::to_string(layers);
    const bool fits = takes <= 40000;
    const CommandResult run = q.ask("layers", option);
    INFO(run.out << run.err);
    REQUIRE(run.status == 0);
    CHECK((run.out.find("it fits: it takes") != std::string::npos) == fits);
    CHECK((run.out.find("it does not fit, ") != std::string::npos) == !fits);
    CHECK(run.out.find("target") == std::string::npos);
    const json answer = q.answer("layers", option + " --max-time 60us");
    CHECK(answer.at("hbm_bytes") == takes);
    CHECK(answer.at("tried").at(0).at("fits") == fits);
    CHECK(answer.at("tried").at(0).at("met") == fits);
  }
  // Six ops of 10 us: 60 us, not 59.
  CHECK(q.ask("layers", "--layers 4 --max-time 60us").out.find("the target (at most 60.00 us an iteration) is met") != std::string::npos);
  CHECK(q.ask("layers", "--layers 4 --max-time 59us").out.find("the target (at most 59.00 us an iteration) is missed") != std::string::npos);
}

TEST_CASE("a question says that it passes over a sweep, and keeps to a bound that was asked for") {
  const std::string trace = layered_trace(4, 9000, "\"duration_us\": 10"), toy = machine("1MB", "1.6TB/s", "{bandwidth: 1GB/s}");
  const Question plain(trace, toy), swept(trace, toy, "sweep: {hbm: [20kB, 30kB]}\nbound: lp\n");
  CHECK(plain.ask("hbm", "").err.empty());
  const CommandResult run = swept.ask("hbm", "");
  CHECK(run.status == 0);
  CHECK(run.err.find("e.yaml:5: sweep: passed over") != std::string::npos);
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.out.find("(lp bound)") != std::string::npos);
  CHECK(swept.ask("hbm", "--max-time 1e99s").out.find("for at most 1.000e+99 s an iteration") != std::string::npos);
}

TEST_CASE("every number of streamed layers keeps the plan's rules, and none to all take the time of the link") {
  // 5 layers, 10 us each, 8 us of transfer: even all of them hide; at 40 us they take the link's time.
  for (const double transfer : {8.0, 40.0}) {
    const Question q(layered_trace(5, transfer * 1000, "\"duration_us\": 10"), machine("1MB", "1.6TB/s", "{bandwidth: 1GB/s}"));
    for (int n = 0; n <= 5; ++n) {
      const json answer = q.answer("layers", "--layers " + std::to_string(n));
      // One layer alone has one buffer: it comes between its uses.
      const double link = n == 1 ? transfer + 10 : n * transfer;
      CHECK(1e6 / answer.at("tokens_per_s").get<double>() == Approx(std::max(50.0, link)).epsilon(1e-6));
    }
  }
}

TEST_CASE("longest sequence: 3.58 GiB of cache hold 26,068 tokens of 147,456 B") {
  // vLLM issue 23087: 36 layers of 8 key/value heads of 128, bf16: 147,456 B a token; its estimate is 26,032.
  TemporaryFolder folder;
  write_text(folder / "config.json", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
 "intermediate_size": 512, "num_hidden_layers": 36, "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 128,
 "vocab_size": 1000, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": false,
 "rope_theta": 10000.0, "attention_bias": false, "mlp_bias": false})");
  write_text(folder / "e.yaml", "name: e\nhardware: " + machine("64GB", "4TB/s", "{bandwidth: 1GB/s}") + R"(
workload: {model: config.json, phase: decode, batch: 1, sequence: 1, dtype: bf16}
policies: [resident]
)");
  const std::string experiment = folder / "e.yaml";
  REQUIRE(run_hyperoffload("run " + experiment + " -o " + (folder / "out")).status == 0);
  const json at_one = json::parse(read_text(folder / "out/results.json")).at("runs").at(0);
  // The cache holds the sequence and the new token; all else is the same at any length.
  const std::int64_t token = 147456, else_taken = at_one.at("hbm_peak_bytes").get<std::int64_t>() - 2 * token;
  const auto cache = static_cast<std::int64_t>(3.58 * std::pow(2, 30));
  const std::int64_t expected = cache / token - 1;
  CHECK(cache / token == 26068);
  const std::string set = " --policy resident --tolerance 0 --set hbm=" + std::to_string(else_taken + cache) + "B";
  const CommandResult run = run_hyperoffload("ask sequence " + experiment + " --json" + set);
  INFO(run.err);
  REQUIRE(run.status == 0);
  const json answer = json::parse(run.out);
  CHECK(answer.at("sequence") == expected);
  CHECK(answer.at("binds").get<std::string>().find("HBM is short of") != std::string::npos);
  // With room for more than the model takes, the model's own limit binds.
  const CommandResult limit = run_hyperoffload("ask sequence " + experiment + " --json --policy resident --tolerance 0");
  CHECK(json::parse(limit.out).at("sequence") == 40960 - 1);
  CHECK(json::parse(limit.out).at("binds").get<std::string>().find("max_position_embeddings") != std::string::npos);
  // n samples of 26,068 tokens take n caches; 10 more with room for eleven and a half.
  const std::string many = " --policy resident --set workload.sequence=26067 --set hbm=";
  const CommandResult batch = run_hyperoffload("ask batch " + experiment + " --json --tolerance 0" + many + "44GB");
  REQUIRE(batch.status == 0);
  const std::int64_t largest = json::parse(batch.out).at("batch");
  CHECK(largest == 11);  // 11 x 26,068 x 147,456 B = 42.28 GB, 12 are 46.13
  const CommandResult none = run_hyperoffload("ask batch " + experiment + many + "3GB");
  CHECK(none.status == 3);
  CHECK(none.err.find("not even 1 samples") != std::string::npos);
}

TEST_CASE("the cheapest machine is the cheapest of those that meet the target, with the pool's price") {
  const Question q(layered_trace(4, 9000, "\"duration_us\": 10"), machine("1MB", "1.6TB/s", "{bandwidth: 1GB/s}"));
  const auto offer = [](const std::string& name, const std::string& hbm, const std::string& prices) {
    return "  - {hardware: {name: " + name + ", npu: {compute: 1TFLOPS, hbm: {capacity: " + hbm +
           ", bandwidth: 1TB/s}}, link: {read: {bandwidth: 1GB/s}, write: {bandwidth: 1GB/s}}, pool: {capacity: 1TB}}, " +
           prices + "}\n";
  };
  const std::string prices = q.folder / "p.yaml";
  // 36,000 B in all, 9 us each to bring: 18,000 B stream without stall, with 12,000 nothing fits in time.
  write_text(prices, "currency: EUR\nmachines:\n" + offer("tiny", "12kB", "npu_hour: 1") + offer("small", "27kB", "npu_hour: 2") +
                         offer("big", "40kB", "npu_hour: 3"));
  const CommandResult run = q.ask("machine", "--prices " + prices);
  INFO(run.out << run.err);
  REQUIRE(run.status == 0);
  CHECK(run.out.find("small is the cheapest that meets the target (no stall), at 2.00 EUR an hour") == 0);
  CHECK(run.out.find("tiny: 1.00 EUR an hour") != std::string::npos);
  // A pool at 1e6 EUR a gigabyte and hour: 9,000 to 36,000 B of it cost 9 EUR or more.
  write_text(prices, "currency: EUR\nmachines:\n" + offer("small", "27kB", "npu_hour: 2, pool_gb_hour: 1e6") +
                         offer("big", "40kB", "npu_hour: 3, pool_gb_hour: 1e6"));
  CHECK(q.ask("machine", "--prices " + prices).out.find("big is the cheapest") == 0);
  write_text(prices, "currency: EUR\nmachines:\n" + offer("tiny", "12kB", "npu_hour: 1"));
  const CommandResult none = q.ask("machine", "--prices " + prices);
  CHECK(none.status == 3);
  CHECK(none.out.empty());
  CHECK(none.err.find("no machine of the list meets the target (no stall)") != std::string::npos);
}

TEST_CASE("a wrong question is one sentence") {
  const Question q(layered_trace(4, 9000, "\"duration_us\": 10"), machine("1MB", "1.6TB/s", "{bandwidth: 1GB/s}"));
  write_text(q.folder / "bad.yaml", "currency: EUR\nmachines:\n  - {hardware: t.json, npu_hour: -1}\n");
  const std::pair<const char*, std::string> cases[] = {
      {"hbm", "--max-slowdown fast"},    {"hbm", "--max-time 5"},           {"hbm", "--min-tokens 0"},
      {"hbm", "--min-tokens nan"},       {"hbm", "--min-tokens 1e400"},
      {"hbm", "--policy graf"},          {"hbm", "--tolerance 90%"},        {"sequence", ""},
      {"batch", "--step 0"},             {"layers", "--layers 5"},          {"layers", "--layers -1"},
      {"machine", ""},                   {"machine", "--prices none.yaml"}, {"machine", "--prices " + (q.folder / "bad.yaml")},
      {"bandwith", ""},
  };
  for (const auto& [question, options] : cases) {
    const CommandResult run = q.ask(question, options);
    INFO(question << " " << options << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  }
}
