// A schema of docs/schemas beside the reader of the same files. Validation is validate_json.py's.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hyperoffload {

// One verdict a file: "ok", or what is wrong. `schema` is a name such as "trace".
std::vector<std::string> validate(const std::string& schema, const std::vector<std::string>& files);
void check_valid(const std::string& schema, const std::vector<std::string>& files);

// Damages each place of `good` in turn; `parse` and the schema must agree on every one, but for what only the
// reader can know.
void compare_damage(const std::string& schema, const nlohmann::json& good,
                    const std::function<void(const std::string&)>& parse);

}  // namespace hyperoffload
