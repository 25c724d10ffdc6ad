#include "sim/model/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "sim/model/decimal.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

using Type = JsonValue::Type;

constexpr std::size_t kMaxDepth = 64;

std::string describe(const JsonValue& value) {
  switch (value.type) {
    case Type::kNull:
      return "null";
    case Type::kBoolean:
      return value.text;
    case Type::kNumber:
      return value.text.size() > 60 ? value.text.substr(0, 57) + "..." : value.text;
    case Type::kString:
      return in_quotes(value.text);
    case Type::kArray:
      return "an array";
    case Type::kObject:
      return "an object";
  }
  return "";
}

// Receives nlohmann's events and puts together one element of a streamed array, or one top-level
// member, at a time.
class Assembler {
 public:
  using json = nlohmann::json;

  Assembler(const std::string& text, const std::string& source, const std::string& expected,
            const JsonHandlers& handlers)
      : text_(text), source_(source), expected_(expected), handlers_(handlers) {}

  bool null() { return scalar(Type::kNull, ""); }
  bool boolean(bool value) { return scalar(Type::kBoolean, value ? "true" : "false"); }
  bool number_integer(json::number_integer_t value) { return scalar(Type::kNumber, std::to_string(value)); }
  bool number_unsigned(json::number_unsigned_t value) { return scalar(Type::kNumber, std::to_string(value)); }
  bool number_float(json::number_float_t, const std::string& text) { return scalar(Type::kNumber, text); }
  bool string(std::string& value) { return scalar(Type::kString, std::move(value)); }
  bool binary(json::binary_t&) { return false; }  // not in JSON text

  bool start_object(std::size_t) {
    if (!in_top_) {
      in_top_ = true;
      return true;
    }
    open(Type::kObject);
    return true;
  }
  bool start_array(std::size_t) {
    if (!in_top_) fail_top("an array");
    if (frames_.empty() && !streaming_ && is_streamed(top_key_)) {
      streaming_ = true;
      next_index_ = 0;
      JsonValue begins;
      begins.type = Type::kArray;
      handlers_.member(top_key_, begins);
      return true;
    }
    open(Type::kArray);
    return true;
  }
  bool end_object() {
    if (!frames_.empty()) close();
    return true;
  }
  bool end_array() {
    if (frames_.empty())
      streaming_ = false;
    else
      close();
    return true;
  }
  bool key(std::string& name) {
    if (frames_.empty()) {
      if (std::find(top_keys_.begin(), top_keys_.end(), name) != top_keys_.end()) fail_duplicate(name);
      if (top_keys_.size() < kMaxTopKeys) top_keys_.push_back(name);
      top_key_ = std::move(name);
      return true;
    }
    Frame& frame = frames_.back();
    if (is_duplicate(frame, name)) fail_duplicate(name);
    frame.value.keys.push_back(std::move(name));
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) {
    const std::size_t offset = std::min(position == 0 ? 0 : position - 1, text_.size());
    const std::size_t line_start = offset == 0 ? 0 : text_.rfind('\n', offset - 1) + 1;  // npos + 1 is 0
    throw InputError(fmt::format("{}:{}:{}", source_, line_of(text_, offset), offset - line_start + 1),
                     "a JSON syntax error (" + reason(e.what()) + ")", "valid JSON");
  }

 private:
  struct Frame {
    JsonValue value;
    std::unordered_set<std::string> seen;  // only of objects with many keys
  };
  static constexpr std::size_t kUsualKeys = 12;  // room made at once: a guess that saves allocations
  static constexpr std::size_t kFewKeys = 24;
  static constexpr std::size_t kMaxTopKeys = 1000;

  bool is_streamed(const std::string& key) const {
    return std::find(handlers_.streamed.begin(), handlers_.streamed.end(), key) != handlers_.streamed.end();
  }

  static bool is_duplicate(Frame& frame, const std::string& name) {
    const std::vector<std::string>& keys = frame.value.keys;
    if (keys.size() < kFewKeys) return std::find(keys.begin(), keys.end(), name) != keys.end();
    if (frame.seen.empty()) frame.seen.insert(keys.begin(), keys.end());
    return !frame.seen.insert(name).second;
  }

  bool scalar(Type type, std::string text) {
    JsonValue value;
    value.type = type;
    value.text = std::move(text);
    if (!in_top_) fail_top(describe(value));
    add(std::move(value));
    return true;
  }

  void open(Type type) {
    if (frames_.size() >= kMaxDepth)
      throw InputError(source_ + ": " + path(), fmt::format("nesting deeper than {}", kMaxDepth), expected_);
    frames_.emplace_back();
    JsonValue& value = frames_.back().value;
    value.type = type;
    if (type != Type::kObject) return;
    value.keys.reserve(kUsualKeys);
    value.items.reserve(kUsualKeys);
  }

  void close() {
    JsonValue value = std::move(frames_.back().value);
    frames_.pop_back();
    add(std::move(value));
  }

  void add(JsonValue value) {
    if (!frames_.empty())
      frames_.back().value.items.push_back(std::move(value));
    else if (streaming_)
      handlers_.item(top_key_, next_index_++, value);
    else
      handlers_.member(top_key_, value);
  }

  // Where the parser is now.
  std::string path() const {
    std::string path = top_key_;
    if (streaming_) path += fmt::format("[{}]", next_index_);
    for (const Frame& frame : frames_) {
      if (&frame == &frames_.back()) break;
      path += frame.value.type == Type::kArray ? fmt::format("[{}]", frame.value.items.size())
                                               : "." + printable(frame.value.keys.back());
    }
    return path;
  }

  [[noreturn]] void fail_duplicate(const std::string& name) const {
    throw InputError(frames_.empty() ? source_ : source_ + ": " + path(),
                     "the key " + in_quotes(name) + " twice", "each key once");
  }
  [[noreturn]] void fail_top(const std::string& found) const {
    throw InputError(source_, found, expected_ + " (a JSON object)");
  }

  // The library's words without its prefix: "[json...] parse error at line 1, column 5: syntax error
  // while..."
  static std::string reason(const std::string& what) {
    std::string rest = what.substr(what.find("] ") == std::string::npos ? 0 : what.find("] ") + 2);
    if (rest.starts_with("parse error") && rest.find(": ") != std::string::npos)
      rest = rest.substr(rest.find(": ") + 2);
    if (rest.starts_with("syntax error ")) rest = rest.substr(13);
    rest = printable(rest);
    if (rest.size() <= 200) return rest;
    const std::string begin = rest.substr(0, 100), end = rest.substr(rest.size() - 100);
    return printable(begin + " ... " + end);
  }

  const std::string& text_;
  const std::string& source_;
  const std::string& expected_;
  const JsonHandlers& handlers_;
  bool in_top_ = false;
  bool streaming_ = false;
  std::size_t next_index_ = 0;
  std::string top_key_;
  std::vector<std::string> top_keys_;
  std::vector<Frame> frames_;
};

void append_json(std::string& out, const JsonValue& value) {
  const char* separator = "";
  switch (value.type) {
    case Type::kNull:
      out += "null";
      return;
    case Type::kBoolean:
    case Type::kNumber:
      out += value.text;
      return;
    case Type::kString:
      append_json_string(out, value.text);
      return;
    case Type::kArray:
      out += '[';
      for (const JsonValue& item : value.items) {
        out += std::exchange(separator, ", ");
        append_json(out, item);
      }
      out += ']';
      return;
    case Type::kObject:
      out += '{';
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        out += std::exchange(separator, ", ");
        append_json_string(out, value.keys[i]);
        out += ": ";
        append_json(out, value.items[i]);
      }
      out += '}';
      return;
  }
}

}  // namespace

std::string to_json(const JsonValue& value) {
  std::string out;
  append_json(out, value);
  return out;
}

void append_json_string(std::string& out, const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
  if (plain)
    out.append(1, '"').append(text).append(1, '"');
  else
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonAt::path() const {
  std::string path = above_ ? above_->path() : "";
  if (key_) path += (path.empty() ? "" : ".") + printable(*key_);
  if (index_ >= 0) path += fmt::format("[{}]", index_);
  return path;
}

void JsonAt::fail(const std::string& found, const std::string& expected) const {
  throw InputError(*source_ + ": " + path(), found, expected);
}
void JsonAt::fail(const std::string& expected) const { fail(describe(*value_), expected); }

void JsonAt::fail_unknown_key(std::size_t i, const std::vector<std::string>& valid) const {
  fail("the unknown key " + in_quotes(key(i)), one_of(key(i), valid));
}

void JsonAt::fail_missing(const std::string& key) const { fail("no key " + in_quotes(key), "that key"); }

void JsonAt::require_array() const {
  if (value_->type != Type::kArray) fail("an array");
}

void JsonAt::require_object(const std::string& keys) const {
  if (value_->type != Type::kObject) fail("an object with " + keys);
}

const std::string& JsonAt::string() const {
  if (value_->type != Type::kString) fail("a string");
  return value_->text;
}

const std::string& JsonAt::name() const {
  if (value_->type != Type::kString || value_->text.empty()) fail("a name (a string)");
  return value_->text;
}

bool JsonAt::boolean() const {
  if (value_->type != Type::kBoolean) fail("true or false");
  return value_->text == "true";
}

Bytes JsonAt::bytes() const {
  const std::string expected = "whole bytes, 0 to 9223372036854775807 (2^63-1)";
  if (value_->type != Type::kNumber) fail(expected);
  std::string_view rest = value_->text;
  const std::optional<Decimal> number = take_decimal(rest);
  Bytes bytes;
  if (!number || !rest.empty() || to_bytes(*number, 0, 0, bytes) != ByteCheck::kOk) fail(expected);
  return bytes;
}

int JsonAt::count(int max) const {
  const std::string expected = fmt::format("a whole number, 0 to {}", max);
  if (value_->type != Type::kNumber) fail(expected);
  std::string_view rest = value_->text;
  const std::optional<Decimal> number = take_decimal(rest);
  Bytes whole;
  if (!number || !rest.empty() || to_bytes(*number, 0, 0, whole) != ByteCheck::kOk || whole.value > max)
    fail(expected);
  return static_cast<int>(whole.value);
}

double JsonAt::signed_number() const {
  std::string_view rest = value_->text;
  const std::optional<Decimal> decimal = value_->type == Type::kNumber ? take_decimal(rest) : std::nullopt;
  const std::optional<double> number = decimal && rest.empty() ? to_double(*decimal) : std::nullopt;
  if (!number) fail("a finite number");
  return *number;
}

double JsonAt::number(int exp10) const {
  const std::string expected = "a finite number, 0 or more";
  if (value_->type != Type::kNumber) fail(expected);
  std::string_view rest = value_->text;
  const std::optional<Decimal> decimal = take_decimal(rest);
  const std::optional<double> number = decimal && rest.empty() ? to_double(*decimal, exp10) : std::nullopt;
  if (!number || *number < 0) fail(expected);
  return *number;
}

void read_json_object(const std::string& text, const std::string& source, const std::string& expected,
                      const JsonHandlers& handlers) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw InputError(source, "an empty file", expected);
  // The parser would take it for the end.
  if (text.find('\0') != std::string::npos) throw InputError(source, "a byte 0 in the text", "valid JSON");
  Assembler assembler(text, source, expected, handlers);
  nlohmann::json::sax_parse(text.begin(), text.end(), &assembler);
}

void check_json_header(const JsonAt& member, const std::string& key, const std::string& format, int version) {
  if (key == "format" && member.string() != format) member.fail(in_quotes(format));
  if (key == "version" && member.count(1'000'000) != version) member.fail(fmt::format("{}", version));
}

}  // namespace hyperoffload
