// Streams the records of big JSON files: the elements of one or more top-level arrays ("traceEvents"), or of
// the top level itself where that is an array.
//
// Only the wanted fields of a record are kept, found by their path of keys (places, as text, in arrays); all
// else is skipped as it is parsed. Numbers keep their text, so nothing is lost to a double. The same key
// twice: the last counts. Refused with line and column: wrong syntax, broken UTF-8, NaN and Infinity, an end
// in the middle. O(file) time, memory of one record.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/import/text_stream.h"
#include "sim/model/json_reader.h"

namespace hyperoffload {

struct JsonField {
  std::vector<std::string> path;
  bool whole = false;  // kept as a value with all that is in it; else only a string, number, true or false
};

class JsonRecord {
 public:
  explicit JsonRecord(std::size_t fields) : values_(fields), present_(fields) {}

  bool has(std::size_t field) const { return present_[field] != 0; }  // null counts as absent
  const JsonValue& value(std::size_t field) const { return values_[field]; }
  // The text of a string or number; empty when absent.
  const std::string& text(std::size_t field) const { return has(field) ? values_[field].text : empty_; }
  bool is_number(std::size_t field) const {
    return has(field) && values_[field].type == JsonValue::Type::kNumber;
  }
  bool is_string(std::size_t field) const {
    return has(field) && values_[field].type == JsonValue::Type::kString;
  }

 private:
  friend class RecordAssembler;
  std::vector<JsonValue> values_;
  std::vector<char> present_;
  static const std::string empty_;
};

struct JsonRecordReader {
  std::vector<std::string> arrays;  // top-level keys; "" is the top level itself
  std::vector<JsonField> fields;
  std::function<void(const std::string& array, std::size_t index, const JsonRecord& record)> record;
  // A top-level member, as it begins; of a container only that it is there. May be absent.
  std::function<void(const std::string& key, const JsonValue& value)> member;
};

void read_json_records(TextStream& stream, const JsonRecordReader& reader);

// Says why a file has no records in `array`: the key isn't among its members, or is no array, or an empty one.
class TopMembers {
 public:
  void add(const std::string& key, const JsonValue& value) { members_.emplace_back(key, value.type); }
  std::string without_records(const std::string& array) const;

 private:
  std::vector<std::pair<std::string, JsonValue::Type>> members_;
};

}  // namespace hyperoffload
