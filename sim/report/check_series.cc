#include "sim/report/check_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/report/result_fields.h"

namespace hyperoffload {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSameRun = "as in results.json: both of one run";

void expect_same(const JsonNode& found, const Json& expected) {
  if (found.value != expected) found.fail(json_text(expected) + ", " + kSameRun);
}

// The window's length. Shortest texts read back exactly; differences of instants are rounded once.
double expect_length(const JsonNode& window, Seconds expected) {
  const double end = window.at("end_s").finite(), length = end - window.at("start_s").finite();
  window.at("end_s").expect(length >= 0, "an end behind start_s");
  if (std::abs(length - expected.value) > 1e-9 * std::max(end, expected.value))
    throw InputError(window.where, fmt::format("an iteration of {} s", length),
                     fmt::format("{} s, {}", expected.value, kSameRun));
  return length;
}

// A list of `size` numbers; the highest of them.
double check_numbers(const JsonNode& list, std::size_t size) {
  list.expect(list.value.is_array(), "a list");
  if (list.size() != size) throw InputError(list.where, fmt::format("{} numbers", list.size()), fmt::format("{}", size));
  double highest = 0;
  for (std::size_t i = 0; i < size; ++i) highest = std::max(highest, list.at(i).finite());
  return highest;
}

void check_memory(const JsonNode& memory, double length, Bytes peak) {
  memory.at("changes").integer();
  memory.at("step_s").finite();
  const JsonNode times = memory.at("time_s");
  const std::size_t points = times.size();
  times.expect(points > 0, "at least one time");
  double last = 0;
  for (std::size_t i = 0; i < points; ++i) {
    const double time = times.at(i).finite();
    times.at(i).expect(time >= last && time <= length * (1 + 1e-9), "times in order, within the iteration");
    last = time;
  }
  const double highest = check_numbers(memory.at("hbm_bytes"), points);
  if (highest > static_cast<double>(peak.value))
    throw InputError(memory.at("hbm_bytes").where, fmt::format("{} B", highest),
                     fmt::format("at most hbm_peak_bytes, {}, {}", peak.value, kSameRun));
  check_numbers(memory.at("hbm_low_bytes"), points);
  check_numbers(memory.at("pool_bytes"), points);
  const JsonNode kinds = memory.at("hbm_bytes_by_kind");
  for (const std::string& kind : kinds.keys()) check_numbers(kinds.at(kind), points);
}

void check_use(const JsonNode& use, double length) {
  const JsonNode step = use.at("step_s"), in = use.at("pool_to_hbm_bytes"), engines = use.at("engine_busy_s");
  step.expect(step.finite() > 0, "a time above 0");
  const std::size_t steps = in.size();
  if (std::abs(static_cast<double>(steps) * step.finite() - length) > step.finite() * (1 + 1e-6))
    throw InputError(in.where, fmt::format("{} steps", steps),
                     fmt::format("steps of {} s for {} s", step.finite(), length));
  check_numbers(in, steps);
  check_numbers(use.at("hbm_to_pool_bytes"), steps);
  for (const std::string& engine : engines.keys()) check_numbers(engines.at(engine), steps);
}

void check_window(const JsonNode& window, Seconds expected, Bytes peak) {
  const double length = expect_length(window, expected);
  check_memory(window.at("memory"), length, peak);
  check_use(window.at("use"), length);
}

}  // namespace

void check_series(const JsonNode& series, const Result& result) {
  expect_same(series.at("trace"), result.trace);
  expect_same(series.at("hardware"), result.hardware);
  expect_same(series.at("policy"), result.policy);
  expect_same(series.at("npu"), result.figures().npu);
  series.at("ops").integer();
  series.at("tensors").integer();
  expect_same(series.at("hbm_usable_bytes"), (result.hbm_capacity - result.hbm_reserved).value);
  expect_same(series.at("pool_capacity_bytes"), result.pool_capacity.value);
  for (const char* direction : {"pool_to_hbm", "hbm_to_pool"}) {
    const JsonNode link = series.at("links").at(direction);
    link.at("bandwidth_bytes_per_s").number();
    link.at("latency_s").number();
  }
  const JsonNode list = series.at("iterations");
  const std::size_t expected = result.iterations > 1 ? 2 : 1;
  list.expect(list.size() == expected, fmt::format("{} of the run's {}", expected == 2 ? "the first and the last" : "the only one",
                                                   result.iterations));
  expect_same(list.at(0).at("iteration"), 0);
  expect_same(list.at(expected - 1).at("iteration"), result.iterations - 1);
  check_window(list.at(0), result.figures().first_iteration, result.figures().hbm_peak);
  check_window(list.at(expected - 1), result.figures().iteration, result.figures().hbm_peak);
}

}  // namespace hyperoffload
