#include "app/sweep_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "app/experiment.h"
#include "sim/model/decimal.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/parse_units.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kMaxPoints = 1'000'000;  // each is a folder
constexpr const char* kRangeForm = "FROM..TO x N, like 40GB/s..200GB/s x 9, or with log behind it";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

struct RangeEnd {
  double number = 0;
  std::string_view text, unit;
};

RangeEnd range_end(const YamlNode& place, std::string_view text) {
  RangeEnd end{0, trimmed(text), {}};
  std::string_view rest = end.text;
  const std::optional<Decimal> decimal = take_decimal(rest);
  const std::optional<double> number = decimal ? to_double(*decimal) : std::nullopt;
  if (!number) place.fail(fmt::format("{} as an end of a range", in_quotes(end.text)), kRangeForm);
  end.number = *number;
  end.unit = trimmed(rest);
  return end;
}

struct Range {
  RangeEnd from, to;
  int count = 0;
  bool log = false;
};

Range read_range(const YamlNode& place, std::string_view text) {
  Range range;
  const std::size_t dots = text.find(".."), times = text.find('x', dots);
  if (times == std::string_view::npos) place.fail(in_quotes(text), kRangeForm);
  range.from = range_end(place, text.substr(0, dots));
  range.to = range_end(place, text.substr(dots + 2, times - dots - 2));
  std::string_view rest = trimmed(text.substr(times + 1));
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  const std::string_view count = rest.substr(0, digits), behind = trimmed(rest.substr(digits));
  range.log = behind == "log";
  if (count.empty() || (!behind.empty() && !range.log)) place.fail(in_quotes(text), kRangeForm);
  range.count = count.size() > 7 ? 0 : std::stoi(std::string(count));
  if (range.count < 2 || static_cast<std::size_t>(range.count) > kMaxPoints)
    place.fail(fmt::format("{} values in {}", count, in_quotes(text)), fmt::format("2 to {}", kMaxPoints));
  if (range.from.unit != range.to.unit)
    place.fail(fmt::format("{} with two units, {} and {}", in_quotes(text), in_quotes(range.from.unit),
                           in_quotes(range.to.unit)),
               "one unit");
  if (range.from.number == range.to.number) place.fail(fmt::format("{} with one value", in_quotes(text)), "two");
  if (range.log && !(range.from.number > 0 && range.to.number > 0))
    place.fail(in_quotes(text), "ends above 0 for log");
  return range;
}

std::string between(const Range& range, int i) {
  const double share = static_cast<double>(i) / (range.count - 1);
  const double a = range.from.number, b = range.to.number;
  const double value = range.log ? a * std::pow(b / a, share) : a + (b - a) * share;
  const std::string_view unit = range.from.unit;
  const bool whole = unit == "B" && std::fabs(value) < 1e15;
  return (whole ? fmt::format("{:.0f}", value) : fmt::format("{:.15g}", value)) + std::string(unit);
}

bool looks_like_range(const std::string& text) {
  return (std::isdigit(static_cast<unsigned char>(text[0])) || text[0] == '-') &&
         text.find("..") != std::string::npos && text.find("/../") == std::string::npos;
}

// Without quotes: in quotes it is text.
bool is_range(const YamlNode& item) { return item.is_scalar() && looks_like_range(item.flow_text()); }
bool is_quoted_range(const YamlNode& item) {
  const std::string text = item.is_scalar() ? item.flow_text() : "";
  return text.starts_with('"') && looks_like_range(text.substr(1));
}

// One item of a list, or the scalar in its place: itself, or the values of a range.
void append_values(const YamlNode& item, std::vector<YamlNode>& values) {
  if (!is_range(item)) {
    values.push_back(item);
    return;
  }
  const std::string text = item.string();
  const Range range = read_range(item, text);
  for (int i = 0; i < range.count; ++i) {
    const std::string value = i == 0                 ? std::string(range.from.text)
                              : i == range.count - 1 ? std::string(range.to.text)
                                                     : between(range, i);
    values.push_back(with_text(item, value));
  }
}

std::vector<YamlNode> read_values(const YamlNode& node) {
  std::vector<YamlNode> values;
  if (node.is_list()) {
    for (const YamlNode& item : node.list()) append_values(item, values);
    if (values.empty()) node.fail("an empty list", "at least one value");
  } else if (is_range(node)) {
    append_values(node, values);
  } else if (is_quoted_range(node)) {
    node.fail(in_quotes(node.string()) + " in quotes, which make it a text", "a range without them");
  } else {
    node.fail(fmt::format("a list of values, or a range {}", kRangeForm));
  }
  if (values.size() > kMaxPoints)
    node.fail(fmt::format("{} values", values.size()), fmt::format("at most {}", kMaxPoints));
  return values;
}

void check_key(const std::string& key, const YamlNode& node) {
  const std::vector<std::string> known = {"hardware", "workload", "hbm", "iterations", "policies"};
  const std::string first = key.substr(0, key.find('.'));
  if (std::find(known.begin(), known.end(), first) == known.end())
    node.fail(fmt::format("the axis {}", in_quotes(key)), "a path that begins with " + one_of(first, known));
}

SweepAxis read_axis(const std::string& key, const YamlNode& node) {
  check_key(key, node);
  SweepAxis axis{{key}, {}};
  for (const YamlNode& value : read_values(node)) axis.steps.push_back({value});
  return axis;
}

SweepAxis read_zip(const YamlNode& node) {
  SweepAxis axis;
  if (!node.is_map()) node.fail("a map {key: values, key: values}, whose values step together");
  for (const auto& [key, child] : node.map()) {
    check_key(key, child);
    const std::vector<YamlNode> values = read_values(child);
    if (axis.keys.empty()) axis.steps.resize(values.size());
    if (values.size() != axis.steps.size())
      child.fail(fmt::format("{} values", values.size()),
                 fmt::format("{}, as many as {} has", axis.steps.size(), in_quotes(axis.keys[0])));
    for (std::size_t i = 0; i < values.size(); ++i) axis.steps[i].push_back(values[i]);
    axis.keys.push_back(key);
  }
  if (axis.keys.size() < 2) node.fail(fmt::format("{} keys", axis.keys.size()), "at least two that step together");
  return axis;
}

std::string text_of(const YamlNode& value) { return value.is_scalar() ? value.string() : value.flow_text(); }

// What a value says, however it is spelled: "40GB" and "40000MB" are one.
std::string meaning(const YamlNode& value) {
  if (!value.is_scalar()) return value.flow_text();
  const std::string text = value.string();
  std::string_view rest = text;
  const std::optional<Decimal> decimal = take_decimal(rest);
  if (!decimal) return text;
  if (rest.empty())
    if (const std::optional<double> number = to_double(*decimal)) return fmt::format("{}", *number);
  try {
    if (rest.ends_with("/s") || rest.ends_with("bps")) return fmt::format("{} B/s", parse_rate(text, "").value);
    if (rest.ends_with("s")) return fmt::format("{} s", parse_seconds(text, "").value);
    if (rest.ends_with("B")) return fmt::format("{} B", parse_bytes(text, "").value);
    if (rest.ends_with("S")) return fmt::format("{} FLOPS", parse_flops_per_second(text, "").value);
  } catch (const InputError&) {  // whoever reads it says so
  }
  return text;
}

bool leads_into(const std::string& outer, const std::string& inner) {
  return inner == outer || inner.starts_with(outer + ".");
}

}  // namespace

std::string SweepAxis::name() const {
  std::string name;
  for (const std::string& key : keys) name += (name.empty() ? "" : " + ") + key;
  return name;
}

SweepAxes::SweepAxes(const YamlNode& experiment) : base_(with_files_in_place(experiment)) {
  std::optional<YamlNode> sweep;
  for (const auto& [key, value] : experiment.map())
    if (key == "sweep") sweep = value;
  if (!sweep) experiment.fail("no `sweep:`", "axes under it, like `sweep: {hbm: [24GiB, 32GiB]}`");
  if (!sweep->is_map()) sweep->fail("a map of axes, like {hbm: [24GiB, 32GiB]}");
  for (const auto& [key, node] : sweep->map()) {
    if (key != "zip")
      add(read_axis(key, node), node);
    else if (node.is_list())
      for (const YamlNode& zip : node.list()) add(read_zip(zip), zip);
    else
      add(read_zip(node), node);
  }
  if (axes_.empty()) sweep->fail("no axis", "at least one, like {hbm: [24GiB, 32GiB]}");
}

void SweepAxes::add(SweepAxis axis, const YamlNode& place) {
  std::vector<std::string> seen = columns();
  for (const std::string& key : axis.keys) {
    for (const std::string& earlier : seen)
      if (leads_into(earlier, key) ? earlier == key : leads_into(key, earlier))
        place.fail(fmt::format("the axis {} behind {}", in_quotes(key), in_quotes(earlier)),
                   earlier == key ? "each axis once" : "the shorter path first: it replaces all below it");
    seen.push_back(key);
  }
  check_capacity_counts(seen, place);
  std::map<std::string, std::string> texts;  // by meaning
  for (const std::vector<YamlNode>& step : axis.steps) {
    std::string said, text;
    for (const YamlNode& value : step) {
      said += meaning(value) + "\n";
      text += (text.empty() ? "" : ", ") + value.flow_text();
    }
    const auto [earlier, is_new] = texts.emplace(said, text);
    if (is_new) continue;
    place.fail(earlier->second == text ? fmt::format("{} twice", in_quotes(text))
                                       : fmt::format("{} and {}, which are one value", in_quotes(earlier->second), in_quotes(text)),
               "each value once");
  }
  if (axis.steps.size() > kMaxPoints / points_)
    place.fail(fmt::format("{} x {} points", points_, axis.steps.size()),
               fmt::format("at most {} points", kMaxPoints));
  points_ *= axis.steps.size();
  axes_.push_back(std::move(axis));
}

// `hbm:` replaces the machine's capacity: an axis over that would do nothing.
void SweepAxes::check_capacity_counts(const std::vector<std::string>& keys, const YamlNode& place) const {
  const std::string capacity = "hardware.npu.hbm.capacity";
  if (std::find(keys.begin(), keys.end(), capacity) == keys.end()) return;
  bool replaced = std::find(keys.begin(), keys.end(), "hbm") != keys.end();
  for (const auto& [key, value] : base_.map()) replaced |= key == "hbm";
  if (replaced) place.fail(fmt::format("the axis {} beside `hbm`, which replaces it", in_quotes(capacity)), "one of the two");
}

std::vector<std::string> SweepAxes::columns() const {
  std::vector<std::string> columns;
  for (const SweepAxis& axis : axes_) columns.insert(columns.end(), axis.keys.begin(), axis.keys.end());
  return columns;
}

std::vector<std::size_t> SweepAxes::steps(std::size_t point) const {
  std::vector<std::size_t> steps(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    steps[i] = point % axes_[i].steps.size();
    point /= axes_[i].steps.size();
  }
  return steps;
}

std::vector<std::string> SweepAxes::values(std::size_t point) const {
  const std::vector<std::size_t> at = steps(point);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    for (const YamlNode& value : axes_[i].steps[at[i]]) values.push_back(text_of(value));
  return values;
}

YamlNode SweepAxes::experiment(std::size_t point) const {
  const std::vector<std::size_t> at = steps(point);
  YamlNode experiment = base_;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    for (std::size_t k = 0; k < axes_[i].keys.size(); ++k)
      experiment = with_experiment_value(experiment, axes_[i].keys[k], axes_[i].steps[at[i]][k]);
  return experiment;
}

std::string SweepAxes::label(std::size_t point) const {
  const std::vector<std::string> keys = columns(), texts = values(point);
  std::string label;
  for (std::size_t i = 0; i < keys.size(); ++i)
    label += (label.empty() ? "" : ", ") + keys[i] + "=" + shortened(texts[i]);
  return label;
}

}  // namespace hyperoffload
