#include "sim/model/yaml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/model/check.h"
#include "sim/model/decimal.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/parse_units.h"
#include "sim/model/read_file.h"
#include "sim/model/yaml_data.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kMaxFlowText = 1 << 20;

std::string describe(const YamlData& data) {
  switch (data.kind) {
    case YamlKind::kNull:
      return "nothing";
    case YamlKind::kScalar:
      return in_quotes(data.text);
    case YamlKind::kList:
      return "a list";
    case YamlKind::kMap:
      return "a map";
  }
  return "";
}

std::string join_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::optional<Decimal> whole_decimal(const std::string& text) {
  std::string_view rest = text;
  const std::optional<Decimal> value = take_decimal(rest);
  return rest.empty() ? value : std::nullopt;
}

// In quotes where it was, or where a flow list or map would take it apart.
std::string flow_scalar(const std::string& scalar, bool quote) {
  if (!quote && scalar.find_first_of(",[]{}:#\"'\n\\") == std::string::npos) return scalar;
  std::string text = "\"";
  for (char c : scalar) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text + "\"";
}

void append_flow(const YamlData& data, const YamlNode& top, std::string& text) {
  if (text.size() > kMaxFlowText) top.fail("a value longer than 1 MiB", "a shorter one");
  const char* separator = "";
  switch (data.kind) {
    case YamlKind::kNull:
      text += "null";
      return;
    case YamlKind::kScalar:
      text += flow_scalar(data.text, data.quoted);
      return;
    case YamlKind::kList:
      text += "[";
      for (const YamlSlot& item : data.items) {
        text += std::exchange(separator, ", ");
        append_flow(*item.data, top, text);
      }
      text += "]";
      return;
    case YamlKind::kMap:
      text += "{";
      for (const YamlEntry& entry : data.entries) {
        text += std::exchange(separator, ", ") + flow_scalar(entry.key, false) + ": ";
        append_flow(*entry.value.data, top, text);
      }
      text += "}";
      return;
  }
}

}  // namespace

bool YamlNode::is_null() const { return data_->kind == YamlKind::kNull; }
bool YamlNode::is_scalar() const { return data_->kind == YamlKind::kScalar; }
bool YamlNode::is_list() const { return data_->kind == YamlKind::kList; }
bool YamlNode::is_map() const { return data_->kind == YamlKind::kMap; }

std::string YamlNode::where() const {
  const std::string place = data_->origin->place(line_);
  return path_.empty() ? place : place + ": " + path_;
}

void YamlNode::fail(const std::string& found, const std::string& expected) const {
  throw InputError(where(), found, expected);
}
void YamlNode::fail(const std::string& expected) const { fail(describe(*data_), expected); }

std::string YamlNode::string() const {
  if (!is_scalar()) fail("text");
  if (data_->text.empty()) fail("empty text", "text");
  return data_->text;
}

bool YamlNode::boolean() const {
  if (is_scalar() && !data_->quoted && data_->text == "true") return true;
  if (is_scalar() && !data_->quoted && data_->text == "false") return false;
  fail(data_->quoted ? "the text " + describe(*data_) : describe(*data_), "true or false, without quotes");
}

std::int64_t YamlNode::integer(std::int64_t min, std::int64_t max) const {
  const std::string expected = fmt::format("a whole number, {} to {}", min, max);
  if (!is_scalar()) fail(expected);
  std::optional<Decimal> value = whole_decimal(data_->text);
  if (!value) fail(expected);
  const bool negative = value->negative;
  value->negative = false;
  Bytes magnitude;
  if (to_bytes(*value, 0, 0, magnitude) != ByteCheck::kOk) fail(expected);
  const std::int64_t result = negative ? -magnitude.value : magnitude.value;
  if (result < min || result > max) fail(expected);
  return result;
}

double YamlNode::number(double min, double max) const {
  const std::string expected =
      fmt::format("a number, {} to {}", shortest_decimal(min), shortest_decimal(max));
  if (!is_scalar()) fail(expected);
  const std::optional<Decimal> decimal = whole_decimal(data_->text);
  const std::optional<double> value = decimal ? to_double(*decimal) : std::nullopt;
  if (!value || *value < min || *value > max) fail(expected);
  return *value;
}

Bytes YamlNode::bytes() const {
  if (!is_scalar()) fail("bytes with a unit, like 64GiB");
  return parse_bytes(data_->text, where());
}

BytesPerSecond YamlNode::rate() const {
  if (!is_scalar()) fail("bytes per second with a unit, like 1.6TB/s");
  return parse_rate(data_->text, where());
}

FlopsPerSecond YamlNode::flops_per_second() const {
  if (!is_scalar()) fail("operations per second with a unit, like 376TFLOPS");
  return parse_flops_per_second(data_->text, where());
}

Seconds YamlNode::seconds() const {
  if (!is_scalar()) fail("a time with a unit, like 1.7us");
  return parse_seconds(data_->text, where());
}

std::vector<YamlNode> YamlNode::list() const {
  if (!is_list()) fail("a list");
  std::vector<YamlNode> nodes;
  for (std::size_t i = 0; i < data_->items.size(); ++i)
    nodes.push_back(YamlAccess::node(data_->items[i], fmt::format("{}[{}]", path_, i)));
  return nodes;
}

std::vector<std::pair<std::string, YamlNode>> YamlNode::map() const {
  if (!is_map()) fail("a map");
  std::vector<std::pair<std::string, YamlNode>> nodes;
  for (const YamlEntry& entry : data_->entries)
    nodes.emplace_back(entry.key, YamlAccess::node(entry.value, join_path(path_, entry.key)));
  return nodes;
}

std::string YamlNode::file_name() const {
  const std::string name = string();
  const std::string& directory = data_->origin->directory;
  return name == "-" || name.front() == '/' || directory.empty() ? name : directory + "/" + name;
}

std::string YamlNode::flow_text() const {
  std::string text;
  append_flow(*data_, *this, text);
  return text;
}

YamlMap::YamlMap(const YamlNode& node, std::vector<std::string> valid_keys)
    : node_(node), valid_(std::move(valid_keys)) {
  std::string keys;
  for (const std::string& key : valid_) keys += (keys.empty() ? "" : ", ") + key;
  if (!node.is_map()) node.fail("a map with the keys " + keys);
  entries_ = node.map();
  const std::vector<YamlEntry>& entries = YamlAccess::slot(node).data->entries;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::string& key = entries_[i].first;
    if (std::find(valid_.begin(), valid_.end(), key) != valid_.end()) continue;
    const YamlSlot slot{YamlAccess::slot(entries_[i].second).data, entries[i].key_line};
    YamlAccess::node(slot, node.path()).fail("the unknown key " + in_quotes(key), one_of(key, valid_));
  }
}

std::optional<YamlNode> YamlMap::find(const std::string& key) const {
  HYPER_CHECK(std::find(valid_.begin(), valid_.end(), key) != valid_.end(),
              "key " + key + " is asked for but not declared");
  for (const auto& [name, node] : entries_)
    if (name == key) return node;
  return std::nullopt;
}

YamlNode YamlMap::get(const std::string& key) const {
  if (auto node = find(key)) return *node;
  std::string keys;
  for (const std::string& name : valid_) keys += (keys.empty() ? "" : ", ") + name;
  node_.fail("no key " + in_quotes(key), "that key (this map takes " + keys + ")");
}

YamlNode parse_yaml(const std::string& text, const std::string& source) {
  const std::size_t slash = source.rfind('/');
  const YamlOrigin origin{
      source, slash == std::string::npos ? "" : source.substr(0, std::max<std::size_t>(slash, 1))};
  const YamlSlot root = parse_yaml_slot(text, std::make_shared<YamlOrigin>(origin));
  if (!root.data) throw InputError(source + ":1", "an empty file", "a YAML map");
  const YamlNode node = YamlAccess::node(root, "");
  if (!node.is_map()) node.fail("a YAML map at the top level");
  return node;
}

YamlNode load_yaml(const std::string& path) {
  return parse_yaml(read_file(path, "a YAML file"), source_name(path));
}

}  // namespace hyperoffload
