#include "app/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "app/csv.h"
#include "app/output.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"
#include "sim/report/check_series.h"
#include "sim/report/json_node.h"
#include "sim/report/result_csv.h"
#include "sim/report/result_fields.h"
#include "sim/report/result_json.h"
#include "sim/report/table.h"

namespace hyperoffload {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A file beside the results, if there is one.
std::optional<Json> read_if_there(const std::string& path, const std::string& format) {
  if (!fs::exists(path)) return std::nullopt;
  Json json = parse_json(read_file(path, format), path, format + " (JSON)");
  if (json.value("format", Json()) != format || json.value("version", Json()) != 1)
    throw InputError(path, "another format", fmt::format("\"format\": \"{}\", \"version\": 1", format));
  return json;
}

void check_frontier(const JsonNode& frontier, const Result& result) {
  const auto expect = [&](const char* key, const std::string& expected) {
    const JsonNode found = frontier.at(key);
    found.expect(found.text() == expected, in_quotes(expected) + ", as in results.json");
  };
  expect("trace", result.trace);
  expect("hardware", result.hardware);
  const JsonNode points = frontier.at("points");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const JsonNode point = points.at(i);
    for (const char* key : {"hbm_bytes", "hbm_peak_bytes", "pool_to_hbm_bytes", "hbm_to_pool_bytes"})
      point.at(key).bytes();
    for (const char* key : {"iteration_s", "ideal_s", "stall_s"}) point.at(key).finite();
    point.at("bound").at("stall_s").finite();
  }
}

Json run_data(const fs::path& directory, const std::string& path) {
  const std::vector<Result> results = parse_results(read_file(path, "results of `run`"), path);
  if (results.empty()) throw InputError(path, "no run", "at least one");
  Json data = {{"kind", "run"}, {"answer", results_answer(results)}};
  Json& runs = data["runs"] = Json::array();
  for (const Result& result : results) runs.push_back(result_fields(result));
  Json& all = data["series"] = Json::object();
  for (const Result& result : results) {
    if (!result.has_figures()) continue;
    const std::string file = (directory / (policy_file_stem(result.policy) + ".series.json")).string();
    std::optional<Json> series = read_if_there(file, "hyperoffload-series");
    if (!series) continue;
    check_series({*series, file + ": $"}, result);
    all[result.policy] = std::move(*series);
  }
  const std::string file = (directory / "frontier.json").string();
  if (std::optional<Json> frontier = read_if_there(file, "hyperoffload-frontier")) {
    check_frontier({*frontier, file + ": $"}, results[0]);
    data["frontier"] = std::move(*frontier);
  }
  return data;
}

bool fits_kind(const std::string& field, CsvKind kind) {
  if (kind == CsvKind::kText) return true;
  if (kind == CsvKind::kBoolean) return field == "true" || field == "false";
  double value = 0;
  const char* end = field.data() + field.size();
  const auto [rest, error] = std::from_chars(field.data(), end, value);
  return field.empty() || (error == std::errc() && rest == end && std::isfinite(value));
}

Json sweep_data(const std::string& path) {
  const CsvTable table = parse_csv(read_file(path, "results of `sweep`"), path);
  if (table.rows.empty()) throw InputError(path, "no row", "at least one point");
  const auto first = std::find(table.columns.begin(), table.columns.end(), "trace");
  for (const char* name : {"trace", "hardware", "policy", "fits", "iteration_s", "slowdown", "ideal_s"})
    if (std::find(first, table.columns.end(), name) == table.columns.end())
      throw InputError(path + ":1", fmt::format("no column \"{}\"", name), "the columns that `sweep` writes");
  for (std::size_t c = static_cast<std::size_t>(first - table.columns.begin()); c < table.columns.size(); ++c) {
    const CsvKind kind = csv_kind(table.columns[c]);
    for (std::size_t r = 0; r < table.rows.size(); ++r)
      if (!fits_kind(table.rows[r][c], kind))
        throw InputError(fmt::format("{}:{}: {}", path, table.lines[r], shortened(table.columns[c])),
                         in_quotes(table.rows[r][c]), kind == CsvKind::kNumber ? "a number, or nothing" : "true or false");
  }
  return {{"kind", "sweep"}, {"columns", table.columns}, {"rows", table.rows}};
}

}  // namespace

Json read_report_data(const std::string& directory) {
  const std::string expected = "a folder that `run -o` or `sweep -o` wrote";
  if (!fs::is_directory(directory))
    throw InputError(directory.empty() ? "\"\"" : directory, fs::exists(directory) ? "a file" : "no such folder", expected);
  const fs::path results = fs::path(directory) / "results.json", sweep = fs::path(directory) / "results.csv";
  if (fs::exists(results)) return run_data(directory, results.string());
  if (fs::exists(sweep)) return sweep_data(sweep.string());
  if (fs::is_directory(fs::path(directory) / "points"))
    throw InputError(directory, "points of a sweep without results.csv",
                     "all of them: the sweep did not reach its end; run again, it does what is missing");
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().ends_with(".series.json"))
      throw InputError(directory, "no results.json", "a run that reached its end: run it again");
  throw InputError(directory, "neither results.json nor results.csv", expected);
}

}  // namespace hyperoffload
