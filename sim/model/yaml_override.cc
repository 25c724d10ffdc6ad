// Values put into a loaded YAML document: `--set a.b.c=value`, a sweep's axes, a file in the place of its
// name. Nodes may be shared by aliases, so the path down to the value is copied, nothing else.
#include <fmt/format.h>

#include <charconv>
#include <functional>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/yaml_data.h"

namespace hyperoffload {
namespace {

struct Replacement {
  const std::string& path;  // as given, for messages
  YamlSlot value;
};

YamlSlot replaced(const YamlSlot& slot, std::string_view rest, const Replacement& replacement);

[[noreturn]] void fail(const Replacement& replacement, const std::string& found,
                       const std::string& expected) {
  throw InputError(replacement.value.data->origin->place(replacement.value.line), found, expected);
}

YamlSlot replaced_in_list(const YamlSlot& slot, std::string_view rest, const Replacement& replacement) {
  const std::string_view step = rest.substr(0, rest.find('.'));
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  const std::size_t count = slot.data->items.size();
  if (error != std::errc() || end != step.data() + step.size() || index >= count)
    fail(replacement,
         fmt::format("{} in {}, at a list of {}", in_quotes(step), in_quotes(replacement.path), count),
         count == 0 ? "a path that ends at the list" : fmt::format("an index from 0 to {}", count - 1));
  auto copy = std::make_shared<YamlData>(*slot.data);
  const std::string_view below = step.size() == rest.size() ? "" : rest.substr(step.size() + 1);
  copy->items[index] = replaced(copy->items[index], below, replacement);
  return {copy, slot.line};
}

YamlSlot replaced_in_map(const YamlSlot& slot, std::string_view rest, const Replacement& replacement) {
  auto copy = std::make_shared<YamlData>(*slot.data);
  if (copy->kind == YamlKind::kNull) {
    copy->kind = YamlKind::kMap;
    copy->origin = replacement.value.data->origin;
  }
  for (YamlEntry& entry : copy->entries)
    if (entry.key == rest) {
      entry.value = replacement.value;
      return {copy, slot.line};
    }
  const std::string key(rest.substr(0, rest.find('.')));
  const std::string_view below = key.size() == rest.size() ? "" : rest.substr(key.size() + 1);
  for (YamlEntry& entry : copy->entries)
    if (entry.key == key) {
      entry.value = replaced(entry.value, below, replacement);
      return {copy, slot.line};
    }
  auto nothing = std::make_shared<YamlData>();
  nothing->origin = replacement.value.data->origin;
  const int line = replacement.value.line;  // what is unknown about the key is said there
  copy->entries.push_back({key, line, replaced({nothing, line}, below, replacement)});
  return {copy, slot.line};
}

YamlSlot replaced(const YamlSlot& slot, std::string_view rest, const Replacement& replacement) {
  if (rest.empty()) return replacement.value;
  switch (slot.data->kind) {
    case YamlKind::kNull:
    case YamlKind::kMap:
      return replaced_in_map(slot, rest, replacement);
    case YamlKind::kList:
      return replaced_in_list(slot, rest, replacement);
    case YamlKind::kScalar:
      break;
  }
  const std::string& path = replacement.path;
  const std::string above = path.substr(0, path.size() - rest.size() - 1);
  fail(replacement,
       fmt::format("{}, which runs through {} ({}: {})", in_quotes(path), in_quotes(above),
                   slot.data->origin->place(slot.line), in_quotes(slot.data->text)),
       "a path through maps");
}

}  // namespace

YamlNode with_value(const YamlNode& document, const std::string& dotted_path, const YamlNode& value) {
  const Replacement replacement{dotted_path, YamlAccess::slot(value)};
  if (dotted_path.empty() || dotted_path.front() == '.' || dotted_path.back() == '.' ||
      dotted_path.find("..") != std::string::npos)
    fail(replacement, "the path " + in_quotes(dotted_path),
         "names joined by single dots, like npu.hbm.capacity");
  return YamlAccess::node(replaced(YamlAccess::slot(document), dotted_path, replacement), document.path());
}

YamlNode with_text(const YamlNode& node, const std::string& text) {
  const YamlSlot slot = YamlAccess::slot(node);
  auto data = std::make_shared<YamlData>();
  data->origin = slot.data->origin;
  data->kind = YamlKind::kScalar;
  data->text = text;
  return YamlAccess::node({data, slot.line}, node.path());
}

YamlNode apply_overrides(YamlNode document, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const auto origin = std::make_shared<YamlOrigin>(YamlOrigin{"--set " + shortened(setting), "", false});
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos)
      throw InputError(origin->name, "no \"=\"", "key=value, like --set npu.count=2");
    YamlSlot value = parse_yaml_slot(setting.substr(equals + 1), origin);
    if (!value.data) {
      auto nothing = std::make_shared<YamlData>();
      nothing->origin = origin;
      value.data = nothing;
    }
    value.line = 0;
    document = with_value(document, setting.substr(0, equals), YamlAccess::node(value, ""));
  }
  return document;
}

}  // namespace hyperoffload
