// Strict reading of the project's JSON files: traces and plans, up to millions of elements.
//
// The parser is nlohmann's, by events: the big top-level arrays come one element at a time, so that the
// file never stands in memory as a tree. Numbers keep their decimal text (bytes stay exact up to 2^63-1,
// microseconds become the nearest double in seconds). Refused, with line and column: wrong syntax, broken
// UTF-8, NaN and Infinity; with the path inside the file: duplicate keys and nesting deeper than 64.
// O(file) time; memory of one element beside the text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/model/units.h"

namespace hyperoffload {

struct JsonValue {
  enum class Type { kNull, kBoolean, kNumber, kString, kArray, kObject };
  Type type = Type::kNull;
  std::string text;               // of a string (unescaped), a number (as written), true or false
  std::vector<std::string> keys;  // of an object, unique, in file order
  std::vector<JsonValue> items;   // of an array; of an object, one a key
};

// The value as JSON text on one line, keys in file order.
std::string to_json(const JsonValue& value);

// A value and the way to it, for messages: "trace.json: ops[3].reads[1]: found ..., expected ...".
// Keeps pointers to the value and to the place above: use it while these live.
class JsonAt {
 public:
  JsonAt(const std::string& source, const std::string& key, const JsonValue& value)
      : source_(&source), key_(&key), value_(&value) {}
  JsonAt(const std::string& source, const std::string& key, std::size_t index, const JsonValue& value)
      : source_(&source), key_(&key), index_(static_cast<std::ptrdiff_t>(index)), value_(&value) {}
  JsonAt(const JsonAt&) = delete;
  JsonAt& operator=(const JsonAt&) = delete;

  const JsonValue& value() const { return *value_; }
  bool is_null() const { return value_->type == JsonValue::Type::kNull; }
  std::size_t size() const { return value_->items.size(); }
  const std::string& key(std::size_t i) const { return value_->keys[i]; }  // of an object
  JsonAt item(std::size_t i) const { return JsonAt(this, nullptr, i); }    // of an array
  JsonAt member(std::size_t i) const { return JsonAt(this, &value_->keys[i], i); }

  // Each is an InputError when the value is something else.
  void require_array() const;
  void require_object(const std::string& keys) const;
  const std::string& string() const;
  const std::string& name() const;  // a string that is not empty
  bool boolean() const;
  Bytes bytes() const;                 // whole, 0 to 2^63-1; 2e9 is fine
  int count(int max) const;            // whole, 0 to max
  double signed_number() const;        // finite
  double number(int exp10 = 0) const;  // times 10^exp10; finite, 0 or more

  std::string path() const;
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const;
  [[noreturn]] void fail(const std::string& expected) const;  // found: what the value is
  [[noreturn]] void fail_unknown_key(std::size_t i, const std::vector<std::string>& valid) const;
  // An object lacks a key that it must have.
  [[noreturn]] void fail_missing(const std::string& key) const;

 private:
  JsonAt(const JsonAt* above, const std::string* key, std::size_t i)
      : source_(above->source_),
        above_(above),
        key_(key),
        index_(key ? -1 : static_cast<std::ptrdiff_t>(i)),
        value_(&above->value_->items[i]) {}
  const std::string* source_;
  const JsonAt* above_ = nullptr;
  const std::string* key_ = nullptr;
  std::ptrdiff_t index_ = -1;  // -1: not in an array
  const JsonValue* value_;
};

struct JsonHandlers {
  std::vector<std::string> streamed;  // top-level keys whose arrays are handed over element by element
  // A top-level member; of a streamed array only that it begins.
  std::function<void(const std::string& key, const JsonValue& value)> member;
  std::function<void(const std::string& key, std::size_t index, const JsonValue& value)> item;
};

// Reads a text whose top level is an object. `expected` names it in messages ("a layer trace").
void read_json_object(const std::string& text, const std::string& source, const std::string& expected,
                      const JsonHandlers& handlers);

// Checks the `format` or `version` member of a file; other keys are not looked at.
void check_json_header(const JsonAt& member, const std::string& key, const std::string& format, int version);

// The string as JSON, quotes included; broken UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, const std::string& text);

}  // namespace hyperoffload
