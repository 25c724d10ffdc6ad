// `report`: what `run` or `sweep` wrote -> one HTML page with everything in it. The page's own scripts
// (app/report) draw it from the data that is put in here (report_data.h).
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/report_data.h"
#include "sim/report/result_fields.h"

namespace hyperoffload {

extern const char* const kReportPage;  // app/report/embed.cmake; empty when it was built without uPlot

namespace {

namespace fs = std::filesystem;

// For a <script> element: no "</script>" and no "<!--" can stand in it.
std::string script_text(const nlohmann::ordered_json& data) {
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
  nlohmann::ordered_json json = read_report_data(options.directory);
  json["version"] = HYPEROFFLOAD_VERSION;
  const std::string data = script_text(json);
  const std::string mark = "/*data*/";
  page.replace(page.find(mark), mark.size(), data);
  write_output(options.output.empty() ? (fs::path(options.directory) / "report.html").string() : options.output,
               page);
  return 0;
}

}  // namespace hyperoffload
