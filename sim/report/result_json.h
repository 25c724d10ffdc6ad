// The result format as JSON text, and back.
//
// Strict JSON: UTF-8 (broken names are repaired with U+FFFD), no NaN or infinity (null). Keys stand
// in a fixed order, doubles as the shortest text that reads back the same: the same Result gives the
// same bytes. Where a run could not happen, every figure of it is null and `npus` is empty.
//
// Beside the plain figures: `reason` (null where it fits), `iterations`, `slowdown`,
// `hbm_reserved_bytes`, `pool_capacity_bytes`, `links` (use of each direction), `binding`, and inside
// `stalls` besides the five causes: `late_transfer` (why bytes were late), `per_op`, `worst`.
// All numbers directly inside `stalls` are causes. An entry of `npus` has `npu` and that NPU's times,
// stalls (without `worst`), peak, bytes moved and links; the top level's `npu` is the slowest.
#pragma once

#include <string>
#include <vector>

#include "sim/report/result.h"

namespace hyperoffload {

std::string result_to_json(const Result& result);                 // ends with a newline
std::string results_to_json(const std::vector<Result>& results);  // {"runs": [...]}

// Reads one result or {"runs": [...]}. Unknown keys are passed over: files of later versions stay
// readable. InputError names the path of what is missing or of a wrong type.
std::vector<Result> parse_results(const std::string& text, const std::string& source);

}  // namespace hyperoffload
