// Results as CSV (RFC 4180, LF line ends): a header, then one row a result, its columns the names of
// the result JSON, nested ones joined by dots (`stalls.late_transfer_s`, `bound.hbm_peak_bytes`);
// lists (`npus`, `stalls.worst`) and the format's own name are left out. The columns are the same for
// every result. null is an empty field, an empty text is `""`, numbers are written as in the JSON.
//
// A sweep puts its axes in front: `extra` columns, one value a row.
#pragma once

#include <string>
#include <vector>

#include "sim/report/result.h"

namespace hyperoffload {

enum class CsvKind { kText, kNumber, kBoolean };  // a number's field may be empty
CsvKind csv_kind(const std::string& column);       // text, too, where it is none of ours

std::string csv_header(const std::vector<std::string>& extra = {});
std::string csv_row(const Result& result, const std::vector<std::string>& extra = {});
std::string results_to_csv(const std::vector<Result>& results);

}  // namespace hyperoffload
