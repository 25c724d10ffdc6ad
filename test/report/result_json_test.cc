#include "sim/report/result_json.h"

#include <cmath>
#include <limits>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/model/error.h"
#include "test/report/sample_results.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;
using nlohmann::json;

std::string message_of(const std::string& text) {
  try {
    parse_results(text, "r.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("Every field of the result format is written with its value") {
  const Result r = sample_result();
  const NpuFigures& f = r.figures();
  const json j = json::parse(result_to_json(r));
  CHECK(j["format"] == "hyperoffload-result");
  CHECK(j["version"] == 1);
  CHECK(j["trace"] == r.trace);
  CHECK(j["hardware"] == "die");
  CHECK(j["policy"] == r.policy);
  CHECK(j["fits"] == true);
  CHECK(j["reason"].is_null());
  CHECK(j["iteration_s"] == f.iteration.value);  // shortest text, same double
  CHECK(j["total_s"] == f.total.value);
  CHECK(j["first_iteration_s"] == f.first_iteration.value);
  CHECK(j["ideal_s"] == 1.0);
  CHECK(j["stall_s"].get<double>() == j["iteration_s"].get<double>() - j["ideal_s"].get<double>());
  CHECK(j["hbm_peak_bytes"] == 4001);
  CHECK(j["hbm_capacity_bytes"] == 5000);
  CHECK(j["pool_peak_bytes"] == r.pool_peak.value);
  CHECK(j["npus_represented"] == 16);
  CHECK(j["pool_requested_peak_bytes"] == r.pool_requested_peak.value);
  CHECK(j["pool_to_hbm_bytes"] == 1111);
  CHECK(j["hbm_to_pool_bytes"] == 2222);
  CHECK(j["bound"] ==
        json({{"hbm_peak_bytes", 4096}, {"stall_s", 1e-6}, {"method", "lp"}, {"order", "program"}, {"steady_stall_s", 1.25e-6}}));
  CHECK(j["throughput"]["tokens_per_s"] == 1.0 / 3);
  CHECK(j["throughput"]["samples_per_s"].is_null());
  CHECK(j["binding"]["needed_bytes_per_s"] == 153.2e9);
  CHECK(j["npu"] == 1);
  REQUIRE(j["npus"].size() == 2);
  CHECK(j["npus"][0]["iteration_s"] == r.npus[0].iteration.value);
  CHECK(j["stalls"]["worst"][0]["op"] == "op\n7");
  CHECK(j["stalls"]["worst"][0]["held_by"] == "transfer");
  CHECK(j["stalls"]["worst"][0]["held_by_name"] == "w2");
  CHECK(j["stalls"]["worst"][0]["short_bytes"].is_null());
  CHECK(j["stalls"]["worst"][1]["short_bytes"] == 123);
  CHECK(j["stalls"]["worst"][1]["tensor"].is_null());
}

TEST_CASE("The numbers directly inside stalls add up to stall_s as a reader of the file adds them") {
  const auto text = result_to_json(sample_result());
  const auto j = nlohmann::ordered_json::parse(text);
  double sum = 0;
  for (const auto& [key, value] : j["stalls"].items())
    if (value.is_number()) sum += value.get<double>();
  CHECK(sum == j["stall_s"].get<double>());
}

TEST_CASE("A run that could not happen keeps every key, null, in the same places") {
  const auto good = nlohmann::ordered_json::parse(result_to_json(sample_result()));
  const auto bad = nlohmann::ordered_json::parse(result_to_json(sample_failure()));
  std::vector<std::string> good_keys, bad_keys;
  for (const auto& [key, value] : good.items()) good_keys.push_back(key);
  for (const auto& [key, value] : bad.items()) bad_keys.push_back(key);
  CHECK(good_keys == bad_keys);
  CHECK(bad["fits"] == false);
  for (const char* key : {"iteration_s", "total_s", "first_iteration_s", "ideal_s", "stall_s", "slowdown",
                          "stalls", "hbm_peak_bytes", "pool_to_hbm_bytes", "throughput", "bound"})
    CHECK(bad[key].is_null());
  CHECK(bad["reason"] == sample_failure().reason);
  CHECK(bad["npus"].empty());
}

TEST_CASE("JSON stays strict: what is not finite is null, broken UTF-8 is repaired, zero has no sign") {
  Result r = sample_result();
  r.npus[1].slowdown = std::numeric_limits<double>::infinity();
  r.throughput.tokens_per_s = std::nan("");
  r.npus[1].stalls.other = Seconds(-0.0);
  r.trace = "broken \xff name";
  const std::string text = result_to_json(r);
  const json j = json::parse(text);
  CHECK(j["slowdown"].is_null());
  CHECK(j["throughput"]["tokens_per_s"].is_null());
  CHECK(j["trace"] == "broken \xEF\xBF\xBD name");
  CHECK_FALSE(has(text, "-0.0"));
}

TEST_CASE("The same result gives the same bytes, read back too") {
  const std::vector<Result> results = {sample_result(), sample_failure()};
  const std::string text = results_to_json(results);
  CHECK(json::parse(text)["runs"].size() == 2);
  const std::vector<Result> again = parse_results(text, "r.json");
  REQUIRE(again.size() == 2);
  CHECK(results_to_json(again) == text);
  CHECK(again[0].figures().worst.size() == 2);
  CHECK(again[0].pool_capacity == results[0].pool_capacity);
  CHECK(parse_results(result_to_json(sample_failure()), "r.json").size() == 1);
}

TEST_CASE("A reader passes over keys it doesn't know") {
  json j = json::parse(result_to_json(sample_result()));
  j["from_the_future"] = {1, 2};
  CHECK(parse_results(j.dump(), "r.json")[0].policy == sample_result().policy);
}

TEST_CASE("A wrong result file is refused with the place that is wrong") {
  json j = json::parse(results_to_json({sample_result()}));
  json& run = j["runs"][0];
  CHECK(has(message_of("{"), "r.json:1:2: found a JSON syntax error"));
  CHECK(has(message_of("[]"), "r.json: found an array"));

  const json good = run;
  run["iteration_s"] = "long";
  CHECK(has(message_of(j.dump()), "$.runs[0].iteration_s: found \"long\", expected a number"));
  run = good;
  run["npus"][1].erase("hbm_peak_bytes");
  CHECK(has(message_of(j.dump()), "$.runs[0].npus[1]: found no \"hbm_peak_bytes\""));
  run = good;
  run["format"] = "hyperoffload-plan";
  CHECK(has(message_of(j.dump()), "expected \"hyperoffload-result\""));
  run = good;
  run["stalls"]["worst"][0]["cause"] = "bad luck";
  CHECK(has(message_of(j.dump()), "worst[0].cause: found \"bad luck\""));
  run = good;
  run["hbm_capacity_bytes"] = -1;
  CHECK(has(message_of(j.dump()), "$.runs[0].hbm_capacity_bytes: found -1, expected bytes, 0 or more"));
  run["hbm_capacity_bytes"] = std::uint64_t{1} << 63;
  CHECK(has(message_of(j.dump()), "hbm_capacity_bytes: found 9223372036854775808, expected a whole number"));
  run = good;
  run["iterations"] = std::int64_t{1} << 32;  // 0 in 32 bits
  CHECK(has(message_of(j.dump()), "iterations: found 4294967296"));
  run = good;
  run["npu"] = 5;
  CHECK(has(message_of(j.dump()), "$.runs[0].npus: found"));
}

TEST_CASE("A result with a number beyond any double, a key twice or endless nesting is wrong input with its place") {
  const std::string good = result_to_json(sample_result());
  const auto with_stall = [&](const std::string& value) {
    std::string text = good;
    const std::size_t at = text.find("\"stall_s\": ") + 11;
    return text.replace(at, text.find(',', at) - at, value);
  };
  const std::string head = good.substr(0, good.find("\"stall_s\""));
  const auto line = std::to_string(1 + std::count(head.begin(), head.end(), '\n'));
  CHECK(has(message_of(with_stall("1e400")), "r.json:" + line + ":"));
  CHECK(has(message_of(with_stall("1, \"stall_s\": 2")), "stall_s"));
  CHECK(has(message_of(with_stall(std::string(100000, '['))), "nesting deeper than 64"));
}

}  // namespace hyperoffload
