#include "sim/import/json_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/utf8.h"

namespace hyperoffload {

const std::string JsonRecord::empty_;

namespace {

using Type = JsonValue::Type;

constexpr std::size_t kMaxWholeDepth = 64;

// The stream as the input iterator that the parser takes. Copies share the stream's place.
class Characters {
 public:
  struct Source {
    TextStream& stream;
    std::string_view piece;
    std::size_t place = 0;
    bool ended = false;
    void fill() {
      piece = stream.next_piece();
      if (piece.find('\0') != std::string_view::npos)  // the parser would take it for the end
        throw InputError(stream.source(), "a byte 0 in the text", "valid JSON");
      place = 0;
      ended = piece.empty();
    }
  };
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Characters() = default;
  explicit Characters(Source* source) : source_(source) {}
  reference operator*() const { return source_->piece[source_->place]; }
  Characters& operator++() {
    if (++source_->place == source_->piece.size()) source_->fill();
    return *this;
  }
  Characters operator++(int) { return ++*this; }
  bool operator==(const Characters& other) const { return at_end() == other.at_end(); }
  bool operator!=(const Characters& other) const { return !(*this == other); }

 private:
  bool at_end() const { return !source_ || source_->ended; }
  Source* source_ = nullptr;
};

// The wanted fields as a tree of keys.
struct FieldTree {
  struct Node {
    std::vector<std::pair<std::string, int>> children;
    int field = -1;
    bool whole = false;
  };
  std::vector<Node> nodes{1};

  explicit FieldTree(const std::vector<JsonField>& fields) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      int at = 0;
      for (const std::string& key : fields[f].path) {
        int next = child(at, key);
        if (next < 0) {
          next = static_cast<int>(nodes.size());
          nodes.emplace_back();
          nodes[static_cast<std::size_t>(at)].children.emplace_back(key, next);
        }
        at = next;
      }
      nodes[static_cast<std::size_t>(at)].field = static_cast<int>(f);
      nodes[static_cast<std::size_t>(at)].whole = fields[f].whole;
    }
  }
  int child(int node, const std::string& key) const {
    for (const auto& [name, next] : nodes[static_cast<std::size_t>(node)].children)
      if (name == key) return next;
    return -1;
  }
};

}  // namespace

// Receives the parser's events. Levels: the top (an object, or an array of records), a record, what is in it.
class RecordAssembler {
 public:
  using json = nlohmann::json;

  RecordAssembler(const TextStream& stream, const JsonRecordReader& reader)
      : stream_(stream), reader_(reader), tree_(reader.fields), record_(reader.fields.size()) {}

  bool null() { return scalar(Type::kNull, nullptr); }
  bool boolean(bool value) {
    const std::string text = value ? "true" : "false";
    return scalar(Type::kBoolean, &text);
  }
  bool number_integer(json::number_integer_t value) { return whole_number(value); }
  bool number_unsigned(json::number_unsigned_t value) { return whole_number(value); }
  bool number_float(json::number_float_t, const std::string& text) { return scalar(Type::kNumber, &text); }
  bool string(std::string& value) { return scalar(Type::kString, &value); }
  bool binary(json::binary_t&) { return false; }  // not in JSON text

  bool start_object(std::size_t) { return open(Type::kObject); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Type::kArray); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (skipped_ > 0) return true;
    if (!whole_.empty())
      whole_.back().keys.push_back(name);
    else if (levels_.empty())
      top_key_ = name;
    else
      node_ = levels_.back().node < 0 ? -1 : tree_.child(levels_.back().node, name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) {
    // "[json.exception...] parse error at line 1, column 5: syntax error while ..."; without a line "... number
    // overflow parsing '1e400'"
    const std::string what = e.what();
    int line = 0, column = 0;
    const std::size_t at = what.find("at line ");
    const bool placed = at != std::string::npos && std::sscanf(what.c_str() + at, "at line %d, column %d", &line, &column) == 2;
    std::string reason = what.substr(std::min(what.size(), placed ? what.find(": ", at) + 2 : what.find("] ") + 2));
    if (reason.size() > 200) reason = reason.substr(0, 100) + " ... " + reason.substr(reason.size() - 100);
    throw InputError(stream_.source() + (placed ? fmt::format(":{}:{}", line, column) : fmt::format(": byte {}", position)),
                     "a JSON syntax error (" + printable(reason) + ")", "valid JSON");
  }

 private:
  struct Level {
    int node = -1;    // in the field tree
    long place = -1;  // next place of an array; -1: an object
  };

  bool is_array_of_records(const std::string& key) const {
    return std::find(reader_.arrays.begin(), reader_.arrays.end(), key) != reader_.arrays.end();
  }

  template <class Number>
  bool whole_number(Number value) {
    if (skipped_ > 0) return true;
    const std::string text = std::to_string(value);
    return scalar(Type::kNumber, &text);
  }

  // What a value at this place belongs to; steps on in an array.
  int target() {
    if (levels_.empty() || levels_.back().place < 0) return node_;
    const int node =
        levels_.back().node < 0 ? -1 : tree_.child(levels_.back().node, std::to_string(levels_.back().place));
    ++levels_.back().place;
    return node;
  }

  bool scalar(Type type, const std::string* text) {
    if (skipped_ > 0) return true;
    if (!whole_.empty()) {
      add_whole(make(type, text));
      return true;
    }
    if (!in_top_) fail_top(type);
    if (levels_.empty()) {
      if (in_array_) return next_record();  // an element that is no record
      if (reader_.member) reader_.member(top_key_, make(type, text));
      return true;
    }
    const int node = target();
    if (node >= 0) set(tree_.nodes[static_cast<std::size_t>(node)].field, type, text);
    return true;
  }

  static JsonValue make(Type type, const std::string* text) {
    JsonValue value;
    value.type = type;
    if (text) value.text = *text;
    return value;
  }

  void set(int field, Type type, const std::string* text) {
    if (field < 0) return;
    const auto f = static_cast<std::size_t>(field);
    record_.present_[f] = type != Type::kNull;
    record_.values_[f].type = type;
    record_.values_[f].items.clear();
    record_.values_[f].keys.clear();
    if (text) record_.values_[f].text = *text;
  }

  bool open(Type type) {
    if (skipped_ > 0) {
      ++skipped_;
      return true;
    }
    if (!whole_.empty()) return open_whole(type);
    if (!in_top_) {
      in_top_ = true;
      in_array_ = type == Type::kArray;
      if (in_array_ && !is_array_of_records("")) fail_top(type);
      return true;
    }
    if (levels_.empty() && !in_array_) return open_member(type);
    if (levels_.empty()) {  // a record
      std::fill(record_.present_.begin(), record_.present_.end(), char{0});
      levels_.push_back({0, type == Type::kArray ? 0 : -1});
      return true;
    }
    const int node = target();
    if (node < 0) {
      skipped_ = 1;
    } else if (tree_.nodes[static_cast<std::size_t>(node)].whole) {
      whole_field_ = tree_.nodes[static_cast<std::size_t>(node)].field;
      open_whole(type);
    } else {
      levels_.push_back({node, type == Type::kArray ? 0 : -1});
    }
    return true;
  }

  bool open_member(Type type) {
    if (reader_.member) reader_.member(top_key_, make(type, nullptr));
    if (type == Type::kArray && is_array_of_records(top_key_)) {
      in_array_ = in_member_ = true;
      index_ = 0;
      return true;
    }
    skipped_ = 1;
    return true;
  }

  bool open_whole(Type type) {
    if (whole_.size() >= kMaxWholeDepth)
      throw InputError(stream_.source(), fmt::format("nesting deeper than {}", kMaxWholeDepth),
                       stream_.expected());
    whole_.emplace_back();
    whole_.back().type = type;
    return true;
  }

  void add_whole(JsonValue value) { whole_.back().items.push_back(std::move(value)); }

  bool close() {
    if (skipped_ > 0) {
      --skipped_;
    } else if (!whole_.empty()) {
      JsonValue value = std::move(whole_.back());
      whole_.pop_back();
      if (!whole_.empty()) {
        add_whole(std::move(value));
      } else {
        record_.present_[static_cast<std::size_t>(whole_field_)] = 1;
        record_.values_[static_cast<std::size_t>(whole_field_)] = std::move(value);
      }
    } else if (!levels_.empty()) {
      levels_.pop_back();
      if (levels_.empty()) {
        reader_.record(in_member_ ? top_key_ : none_, index_, record_);
        next_record();
      }
    } else if (in_member_) {
      in_array_ = in_member_ = false;
    }
    return true;
  }

  bool next_record() {
    ++index_;
    return true;
  }

  [[noreturn]] void fail_top(Type type) const {
    throw InputError(stream_.source(),
                     type == Type::kArray    ? "an array"
                     : type == Type::kObject ? "an object"
                                             : "a single value",
                     stream_.expected());
  }

  const TextStream& stream_;
  const JsonRecordReader& reader_;
  const FieldTree tree_;
  JsonRecord record_;
  bool in_top_ = false, in_array_ = false, in_member_ = false;
  std::string top_key_;
  const std::string none_;
  std::size_t index_ = 0;
  int node_ = -1;              // of the key just read
  std::size_t skipped_ = 0;    // open containers of something unwanted
  std::vector<Level> levels_;  // open containers of a record, itself first
  std::vector<JsonValue> whole_;
  int whole_field_ = -1;
};

void read_json_records(TextStream& stream, const JsonRecordReader& reader) {
  Characters::Source source{stream, {}, 0, false};
  source.fill();
  if (source.ended) throw InputError(stream.source(), "an empty file", stream.expected());
  RecordAssembler assembler(stream, reader);
  nlohmann::json::sax_parse(Characters(&source), Characters(), &assembler);
}

std::string TopMembers::without_records(const std::string& array) const {
  constexpr std::size_t kShown = 8;
  std::string keys;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto& [key, type] = members_[i];
    if (key == array) return (type == Type::kArray ? "no records in " : "no array in ") + array;
    if (i < kShown) keys += (i > 0 ? ", " : "") + in_quotes(key);
  }
  if (members_.size() > kShown) keys += ", ...";
  return "no " + array + (keys.empty() ? "" : " (keys: " + keys + ")");
}

}  // namespace hyperoffload
