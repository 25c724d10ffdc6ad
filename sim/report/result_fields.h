// A Result as a JSON tree with its keys in order: what result_json and result_csv both write. Only
// .cc files include this one, for the library's sake.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/report/result.h"

namespace hyperoffload {

nlohmann::ordered_json result_fields(const Result& result);

// A value as JSON text: broken UTF-8 repaired, NaN and infinity as null.
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace hyperoffload
