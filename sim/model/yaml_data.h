// Inside of yaml_reader: the tree behind a YamlNode, and the step that builds it from text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/model/yaml_reader.h"

namespace hyperoffload {

struct YamlOrigin {
  std::string name;       // "toy.yaml", or "--set npu.count=2"
  std::string directory;  // that file names are relative to; empty: the current one
  bool has_lines = true;  // false for a setting

  std::string place(int line) const {
    return has_lines && line > 0 ? name + ":" + std::to_string(line) : name;
  }
};

enum class YamlKind { kNull, kScalar, kList, kMap };

// A node at the place where it is used: aliases give one node several places.
struct YamlSlot {
  std::shared_ptr<const YamlData> data;
  int line = 0;
};

struct YamlEntry {
  std::string key;
  int key_line = 0;
  YamlSlot value;
};

struct YamlData {
  std::shared_ptr<const YamlOrigin> origin;
  YamlKind kind = YamlKind::kNull;
  std::string text;     // of a scalar
  bool quoted = false;  // a quoted scalar is text, never a boolean
  std::vector<YamlSlot> items;
  std::vector<YamlEntry> entries;  // merges done; own keys in file order, then merged ones
};

// Parses one document of any shape.
YamlSlot parse_yaml_slot(const std::string& text, std::shared_ptr<const YamlOrigin> origin);

// The only way from a tree to nodes and back.
struct YamlAccess {
  static YamlNode node(const YamlSlot& slot, std::string path) {
    YamlNode node;
    node.data_ = slot.data;
    node.line_ = slot.line;
    node.path_ = std::move(path);
    return node;
  }
  static YamlSlot slot(const YamlNode& node) { return {node.data_, node.line_}; }
};

}  // namespace hyperoffload
