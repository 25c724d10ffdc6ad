// `report`: what `run` or `sweep` wrote -> one HTML page with everything in it. The page's own scripts
// (app/report) draw it from the data that is put in here; no figure is computed on the way.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands.h"
#include "app/csv.h"
#include "app/output.h"
#include "sim/model/error.h"
#include "sim/model/read_file.h"
#include "sim/report/result_fields.h"
#include "sim/report/result_json.h"
#include "sim/report/table.h"

namespace hyperoffload {

extern const char* const kReportPage;  // app/report/embed.cmake; empty when it was built without uPlot

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json parse_json(const std::string& text, const std::string& path) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw InputError(path, fmt::format("no JSON (byte {})", error.byte), "a file that `run` wrote");
  }
}

// A file beside the results, if there is one.
std::optional<Json> read_if_there(const std::string& path, const std::string& format) {
  if (!fs::exists(path)) return std::nullopt;
  Json json = parse_json(read_file(path, format), path);
  if (!json.is_object() || json.value("format", Json()) != format || json.value("version", Json()) != 1)
    throw InputError(path, "another format", fmt::format("\"format\": \"{}\", \"version\": 1", format));
  return json;
}

Json run_data(const fs::path& directory, const std::string& path) {
  const std::string text = read_file(path, "results of `run`");
  const std::vector<Result> results = parse_results(text, path);  // says what is wrong with it
  if (results.empty()) throw InputError(path, "no run", "at least one");
  Json data = {{"kind", "run"}, {"answer", results_answer(results)}};
  Json& runs = data["runs"] = Json::array();
  for (const Result& result : results) runs.push_back(result_fields(result));
  Json& series = data["series"] = Json::object();
  for (const Result& result : results)
    if (auto found = read_if_there((directory / (policy_file_stem(result.policy) + ".series.json")).string(),
                                   "hyperoffload-series"))
      series[result.policy] = std::move(*found);
  if (auto found = read_if_there((directory / "frontier.json").string(), "hyperoffload-frontier"))
    data["frontier"] = std::move(*found);
  return data;
}

Json sweep_data(const std::string& path) {
  const CsvTable table = parse_csv(read_file(path, "results of `sweep`"), path);
  if (table.rows.empty()) throw InputError(path, "no row", "at least one point");
  return {{"kind", "sweep"}, {"columns", table.columns}, {"rows", table.rows}};
}

Json data_of(const std::string& directory) {
  if (!fs::is_directory(directory))
    throw InputError(directory, fs::exists(directory) ? "a file" : "no such folder",
                     "a folder that `run -o` or `sweep -o` wrote");
  const fs::path results = fs::path(directory) / "results.json", sweep = fs::path(directory) / "results.csv";
  Json data;
  if (fs::exists(results))
    data = run_data(directory, results.string());
  else if (fs::exists(sweep))
    data = sweep_data(sweep.string());
  else
    throw InputError(directory, "neither results.json nor results.csv", "a folder that `run -o` or `sweep -o` wrote");
  data["version"] = HYPEROFFLOAD_VERSION;
  return data;
}

// For a <script> element: no "</script>" and no "<!--" can stand in it.
std::string script_text(const Json& data) {
  std::string text;
  for (char c : json_text(data)) c == '<' ? text += "\\u003c" : text += c;
  return text;
}

}  // namespace

int report_command(const ReportOptions& options) {
  std::string page = kReportPage;
  if (page.empty()) {
    std::fputs(
        "hyperoffload: this program was built without uPlot, the chart library of the page: run scripts/setup.sh "
        "(npm ci in app/report) and build again\n",
        stderr);
    return 1;
  }
  const std::string data = script_text(data_of(options.directory));
  const std::string mark = "/*data*/";
  page.replace(page.find(mark), mark.size(), data);
  write_output(options.output.empty() ? (fs::path(options.directory) / "report.html").string() : options.output,
               page);
  return 0;
}

}  // namespace hyperoffload
