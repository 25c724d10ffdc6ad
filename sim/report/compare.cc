#include "sim/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "sim/model/count_of.h"
#include "sim/model/utf8.h"
#include "sim/report/human.h"
#include "sim/report/result_fields.h"

namespace hyperoffload {
namespace {

using Json = nlohmann::ordered_json;
using Fields = std::vector<std::pair<std::string, Json>>;

void flatten(const Json& tree, const std::string& prefix, Fields& fields) {
  for (const auto& [key, value] : tree.items()) {
    if (value.is_object())
      flatten(value, prefix + key + ".", fields);
    else if (!value.is_array())
      fields.emplace_back(prefix + key, value);
  }
}

const Json* find(const Fields& fields, const std::string& name) {
  const auto it = std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.first == name; });
  return it == fields.end() ? nullptr : &it->second;
}

std::optional<double> number(const Json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

FieldDifference difference(const std::string& field, const Json& a, const Json& b) {
  FieldDifference d{field, json_text(a), json_text(b), number(a), number(b), {}};
  if (d.a_value && d.b_value && *d.a_value != 0)
    d.percent = 100 * (*d.b_value - *d.a_value) / std::abs(*d.a_value);
  return d;
}

// What a person looks at first; a name that ends in '.' stands for all below it.
constexpr std::array kMain = {"trace",
                              "hardware",
                              "policy",
                              "iterations",
                              "fits",
                              "reason",
                              "hbm_capacity_bytes",
                              "pool_capacity_bytes",
                              "iteration_s",
                              "first_iteration_s",
                              "total_s",
                              "ideal_s",
                              "stall_s",
                              "stalls.late_transfer_s",
                              "stalls.no_room_s",
                              "stalls.hbm_contention_s",
                              "stalls.fabric_contention_s",
                              "stalls.input_room_s",
                              "stalls.host_s",
                              "stalls.other_s",
                              "hbm_peak_bytes",
                              "pool_peak_bytes",
                              "pool_to_hbm_bytes",
                              "hbm_to_pool_bytes",
                              "bound.",
                              "throughput.",
                              "binding.resource"};

bool is_main(const std::string& field) {
  return std::any_of(kMain.begin(), kMain.end(), [&](const std::string& name) {
    return name.back() == '.' ? field.rfind(name, 0) == 0 : field == name;
  });
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// By the unit that the field's name ends in.
std::string shown(const std::string& field, double value, bool sign) {
  const std::string plus = sign && value > 0 ? "+" : "";
  if (ends_with(field, "_per_s")) {
    if (ends_with(field, "bytes_per_s")) return plus + human_rate(BytesPerSecond(value));
    return plus + human_number(value);
  }
  if (ends_with(field, "_s")) return plus + human_time(Seconds(value));
  if (ends_with(field, "_bytes") && std::abs(value) < 0x1p63)
    return plus + human_bytes(Bytes(static_cast<std::int64_t>(value)));
  return plus + fmt::format("{:.4g}", value);
}

std::string shown(const std::string& field, const std::string& json, const std::optional<double>& value) {
  if (value) return shown(field, *value, false);
  if (json == "null") return "-";
  std::string text = json.front() == '"' ? json.substr(1, json.size() - 2) : json;
  return text.size() > 40 ? text.substr(0, 37) + "..." : printable(text);
}

std::string percent_text(double percent) {
  if (std::abs(percent) >= 1e4) return fmt::format("{:+.3g} %", percent);
  return (percent > 0 ? "+" : "") + human_percent(percent / 100);
}

using Row = std::array<std::string, 5>;

Row row_of(const FieldDifference& d) {
  Row row = {d.field, shown(d.field, d.a, d.a_value), shown(d.field, d.b, d.b_value), "", ""};
  if (d.a_value && d.b_value) row[3] = shown(d.field, *d.b_value - *d.a_value, true);
  if (d.percent) row[4] = percent_text(*d.percent);
  return row;
}

std::string rows_text(const std::vector<Row>& rows) {
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line = fmt::format("  {:<{}}", row[0], widths[0]);
    for (std::size_t c = 1; c < row.size(); ++c) line += fmt::format("  {:>{}}", row[c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string differ(std::size_t count, const std::string& which) {
  return count_of(count, "field" + which + " differs", "fields" + which + " differ");
}

std::string pair_text(const Comparison& pair, bool all) {
  std::vector<Row> rows = {{"", "A", "B", "B - A", ""}};
  std::size_t hidden = 0;
  for (const FieldDifference& d : pair.differences) {
    if (all || is_main(d.field))
      rows.push_back(row_of(d));
    else
      ++hidden;
  }
  if (pair.differences.empty())
    return fmt::format("{}: the same in all {} fields\n", printable(pair.name), pair.equal);
  std::string text = fmt::format("{}: {}, {} the same\n", printable(pair.name), differ(pair.differences.size(), ""), pair.equal);
  if (rows.size() > 1) text += rows_text(rows);
  if (hidden) text += fmt::format("  {}, too (--all)\n", differ(hidden, " of detail"));
  return text;
}

}  // namespace

Comparison compare_results(const std::string& name, const Result& a, const Result& b) {
  Fields left, right;
  flatten(result_fields(a), "", left);
  flatten(result_fields(b), "", right);
  Comparison comparison{name, {}, 0};
  const Json null;
  for (const auto& [field, value] : left) {
    const Json* other = find(right, field);
    if (other && *other == value)
      ++comparison.equal;
    else if (const FieldDifference d = difference(field, value, other ? *other : null); d.a != d.b)
      comparison.differences.push_back(d);
  }
  for (const auto& [field, value] : right)
    if (!find(left, field) && !value.is_null())
      comparison.differences.push_back(difference(field, null, value));
  return comparison;
}

std::string comparison_table(const ComparisonSet& set, bool all) {
  std::string text = fmt::format("A: {}\nB: {}\n", printable(set.a), printable(set.b));
  for (const Comparison& pair : set.pairs) text += pair_text(pair, all);
  for (const auto& [side, names] : {std::pair{"A", &set.only_a}, {"B", &set.only_b}})
    for (const std::string& name : *names) text += fmt::format("{}: only in {}\n", printable(name), side);
  return text;
}

std::string comparison_json(const ComparisonSet& set) {
  Json pairs = Json::array();
  for (const Comparison& pair : set.pairs) {
    Json differences = Json::array();
    for (const FieldDifference& d : pair.differences) {
      Json entry = {{"field", d.field}, {"a", Json::parse(d.a)}, {"b", Json::parse(d.b)}};
      entry["difference"] = d.a_value && d.b_value ? Json(*d.b_value - *d.a_value) : Json(nullptr);
      entry["percent"] = d.percent ? Json(*d.percent) : Json(nullptr);
      differences.push_back(std::move(entry));
    }
    pairs.push_back(
        {{"name", pair.name}, {"equal_fields", pair.equal}, {"differences", std::move(differences)}});
  }
  const Json out = {
      {"format", "hyperoffload-comparison"}, {"version", 1},         {"a", set.a},          {"b", set.b},
      {"pairs", std::move(pairs)},           {"only_a", set.only_a}, {"only_b", set.only_b}};
  return json_text(out, 1) + "\n";
}

}  // namespace hyperoffload
