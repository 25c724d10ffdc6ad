#include "sim/report/result_csv.h"

#include <algorithm>
#include <utility>

#include "sim/report/result_fields.h"

namespace hyperoffload {
namespace {

using Json = nlohmann::ordered_json;

// Every field filled in, so that the columns don't depend on what one run happens to have: null are only numbers
// that may be missing.
Result full_result() {
  Result r;
  r.reason = "none";
  r.npus.emplace_back();
  r.bound.emplace();
  r.planner.emplace();
  return r;
}

void flatten(const Json& tree, const std::string& prefix, std::vector<std::string>& columns) {
  for (const auto& [key, value] : tree.items()) {
    if (value.is_object())
      flatten(value, prefix + key + ".", columns);
    else if (!value.is_array() && prefix + key != "format" && prefix + key != "version")
      columns.push_back(prefix + key);
  }
}

std::vector<std::string> columns() {
  std::vector<std::string> names;
  flatten(result_fields(full_result()), "", names);
  return names;
}

const Json* find(const Json& tree, const std::string& path) {
  const Json* at = &tree;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t dot = std::min(path.find('.', from), path.size());
    const auto it = at->is_object() ? at->find(path.substr(from, dot - from)) : at->end();
    if (it == at->end()) return nullptr;
    at = &*it;
    from = dot + 1;
  }
  return at;
}

std::string quoted(const std::string& text) {
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string field(const Json* value) {
  if (!value || value->is_null()) return "";
  return value->is_string() ? quoted(value->get<std::string>()) : json_text(*value);
}

std::string joined(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i ? "," : "") + fields[i];
  return line + "\n";
}

}  // namespace

CsvKind csv_kind(const std::string& column) {
  const Json tree = result_fields(full_result());
  const Json* value = find(tree, column);
  if (!value || value->is_string() || value->is_structured()) return CsvKind::kText;
  return value->is_boolean() ? CsvKind::kBoolean : CsvKind::kNumber;
}

std::string csv_header(const std::vector<std::string>& extra) {
  std::vector<std::string> fields;
  for (const std::string& name : extra) fields.push_back(quoted(name));
  for (const std::string& name : columns()) fields.push_back(name);
  return joined(fields);
}

std::string csv_row(const Result& result, const std::vector<std::string>& extra) {
  std::vector<std::string> fields;
  for (const std::string& value : extra) fields.push_back(quoted(value));
  const Json tree = result_fields(result);
  for (const std::string& name : columns()) fields.push_back(field(find(tree, name)));
  return joined(fields);
}

std::string results_to_csv(const std::vector<Result>& results) {
  std::string out = csv_header();
  for (const Result& result : results) out += csv_row(result);
  return out;
}

}  // namespace hyperoffload
