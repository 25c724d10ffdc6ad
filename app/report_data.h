// What the page of `report` is drawn from: the files that `run` or `sweep` left in a folder, read and checked,
// as one JSON object. No figure is computed on the way.
//
// A folder that isn't whole is refused, not drawn: `run` and `sweep` remove the results first and write them
// last, so results beside levels over time (*.series.json) or a frontier of another run are a mixture of two.
// InputError with the place. O(bytes of the files).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hyperoffload {

nlohmann::ordered_json read_report_data(const std::string& directory);

}  // namespace hyperoffload
