// Strict reading of the project's YAML files (machine, workload, experiment), on yaml-cpp.
//
// A YamlNode is a value that knows its file, line and dotted path; wrong content is an InputError
// "toy.yaml:3: npu.hbm.capacity: found ..., expected ...". Dimensioned values carry their unit
// (parse_units.h). Scalars stay as written until a type is asked for: an unquoted `no` or `off` is text
// where text is wanted, and only `true` and `false` are booleans.
// Refused: duplicate keys (both lines are named), keys that are no plain text, several documents, tabs in
// the indentation, broken UTF-8, control characters, tags other than !!str, nesting deeper than 64.
// `<<` merges: shallow, the map's own keys win, then earlier maps of a list; nodes behind aliases are
// shared, never copied, so aliases of aliases cost nothing.
// Typical use:
//   const YamlMap npu(root.get("npu"), {"count", "compute", "hbm"});   // unknown keys: error
//   hardware.compute = npu.get("compute").flops_per_second();          // missing key: error
//   if (const auto count = npu.find("count")) hardware.npu_count = count->integer(1, 1'000'000);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/units.h"

namespace hyperoffload {

struct YamlData;

class YamlNode {
 public:
  bool is_null() const;    // nothing, `null` or `~`
  bool is_scalar() const;  // text, a number, true or false
  bool is_list() const;
  bool is_map() const;

  // Each is an InputError when the node is something else.
  std::string string() const;                                      // any scalar, as written; not empty
  bool boolean() const;                                            // unquoted true or false
  std::int64_t integer(std::int64_t min, std::int64_t max) const;  // 4096, 1e6
  double number(double min, double max) const;                     // without a dimension
  Bytes bytes() const;
  BytesPerSecond rate() const;  // 0 is accepted here, as for the next two
  FlopsPerSecond flops_per_second() const;
  Seconds seconds() const;
  std::vector<YamlNode> list() const;
  std::vector<std::pair<std::string, YamlNode>> map() const;  // any keys, in file order, merges done

  // A file named here: relative to the file that names it. What `--set` names is relative to the current
  // directory.
  std::string file_name() const;

  // "toy.yaml:3: npu.hbm"; for messages.
  std::string where() const;
  const std::string& path() const { return path_; }  // "npu.hbm", "policies[1].name"; empty at the top
  // The value in one line of flow YAML, the same for the same content. InputError above 1 MiB.
  std::string flow_text() const;
  // Throws InputError: WHERE: found FOUND, expected EXPECTED. Without `found`: what the node is.
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const;
  [[noreturn]] void fail(const std::string& expected) const;

 private:
  friend struct YamlAccess;
  std::shared_ptr<const YamlData> data_;
  int line_ = 0;  // where it is used; 0: not in a file
  std::string path_;
};

// A map with a fixed set of keys.
class YamlMap {
 public:
  YamlMap(const YamlNode& node, std::vector<std::string> valid_keys);
  std::optional<YamlNode> find(const std::string& key) const;
  YamlNode get(const std::string& key) const;  // InputError when it is missing
  const YamlNode& node() const { return node_; }

 private:
  YamlNode node_;
  std::vector<std::string> valid_;
  std::vector<std::pair<std::string, YamlNode>> entries_;
};

// A file whose top level is a map. "-" reads standard input.
YamlNode load_yaml(const std::string& path);
YamlNode parse_yaml(const std::string& text, const std::string& source);

// The document with the value at a dotted path replaced or added; maps on the way are made where there is
// nothing. A number picks an element of a list that is there. A key of the file that itself has dots
// ("parallel.tp" under `sweep`) is found before the path is split there.
YamlNode with_value(const YamlNode& document, const std::string& dotted_path, const YamlNode& value);
// A scalar that stands where `node` does.
YamlNode with_text(const YamlNode& node, const std::string& text);
// "a.b.c=value" each, in order; the value is YAML: 48GiB, [resident, graph], {tp: 2}.
YamlNode apply_overrides(YamlNode document, const std::vector<std::string>& settings);

}  // namespace hyperoffload
