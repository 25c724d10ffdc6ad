#include "sim/report/result_csv.h"

#include <algorithm>

#include "test/report/sample_results.h"
#include "test/support/catch.h"

namespace hyperoffload {
namespace {

using namespace test;

// RFC 4180, for the test only.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
      rows.back().back() += text[i++];
    else if (c == '"')
      inside = !inside;
    else if (!inside && c == ',')
      rows.back().push_back("");
    else if (!inside && c == '\n')
      rows.push_back({""});
    else
      rows.back().back() += c;
  }
  rows.pop_back();
  return rows;
}

std::string cell(const std::vector<std::vector<std::string>>& rows, std::size_t row,
                 const std::string& column) {
  const auto it = std::find(rows[0].begin(), rows[0].end(), column);
  return it == rows[0].end() ? "no column " + column
                             : rows[row][static_cast<std::size_t>(it - rows[0].begin())];
}

}  // namespace

TEST_CASE("CSV has one row a run, with the names of the result JSON joined by dots") {
  const auto rows = read_csv(results_to_csv({sample_result(), sample_failure()}));
  REQUIRE(rows.size() == 3);
  CHECK(rows[1].size() == rows[0].size());
  CHECK(rows[2].size() == rows[0].size());
  CHECK(cell(rows, 1, "trace") == "llama \"8B\", prefill");
  CHECK(cell(rows, 1, "policy") == "on_demand:evict=oldest,x=1");
  CHECK(cell(rows, 1, "fits") == "true");
  CHECK(cell(rows, 1, "reason") == "");
  CHECK(std::stod(cell(rows, 1, "iteration_s")) == sample_result().figures().iteration.value);
  CHECK(cell(rows, 1, "pool_peak_bytes") == std::to_string(sample_result().pool_peak.value));
  CHECK(cell(rows, 1, "bound.hbm_peak_bytes") == "4096");
  CHECK(cell(rows, 1, "stalls.late_transfer.link_busy_s") == "0.03");
  CHECK(cell(rows, 1, "throughput.samples_per_s") == "");
  CHECK(cell(rows, 2, "fits") == "false");
  CHECK(cell(rows, 2, "iteration_s") == "");
  CHECK(cell(rows, 2, "bound.method") == "");
  CHECK(cell(rows, 2, "reason") == sample_failure().reason);
}

TEST_CASE("A sweep's axes stand in front of the columns") {
  const auto rows = read_csv(csv_header({"link.read"}) + csv_row(sample_failure(), {"40GB/s, both"}));
  CHECK(rows[0][0] == "link.read");
  CHECK(rows[1][0] == "40GB/s, both");
  CHECK(rows[0][1] == "trace");
  CHECK(rows[0].size() == rows[1].size());
}

TEST_CASE("What kind a column is of is what its fields hold") {
  const auto rows = read_csv(results_to_csv({sample_result()}));
  for (std::size_t c = 0; c < rows[0].size(); ++c) {
    INFO(rows[0][c] << " " << rows[1][c]);
    const bool number = !rows[1][c].empty() && rows[1][c].find_first_not_of("0123456789.e+-") == std::string::npos;
    if (!rows[1][c].empty()) CHECK((csv_kind(rows[0][c]) == CsvKind::kNumber) == number);
  }
  CHECK(csv_kind("fits") == CsvKind::kBoolean);
  CHECK(csv_kind("throughput.samples_per_s") == CsvKind::kNumber);
  CHECK(csv_kind("reason") == CsvKind::kText);
  CHECK(csv_kind("of_another_version") == CsvKind::kText);
}

TEST_CASE("The columns are the same whatever the runs hold") {
  const std::string header = csv_header();
  CHECK(results_to_csv({}) == header);
  CHECK(results_to_csv({sample_failure()}).rfind(header, 0) == 0);
}

}  // namespace hyperoffload
