#include "sim/model/yaml_data.h"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxMergedEntries = 1'000'000;  // of one file; only an attack gets there

// Builds the tree from yaml-cpp's parse events, which, unlike its own nodes, tell aliases apart.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const YamlOrigin> origin) : origin_(std::move(origin)) {}

  YamlSlot take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override { root_ = {make(YamlKind::kNull), mark.line + 1}; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(mark, anchor, make(YamlKind::kNull));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end())
      fail(mark, "an alias to the value it stands in", "an alias to an earlier value");
    add(mark, 0, it->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto data = make(YamlKind::kScalar);
    data->text = value;
    data->quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!data->quoted) check_tag(mark, tag);
    add(mark, anchor, data);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(mark, anchor, YamlKind::kList);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_tag(mark, tag);
    open(mark, anchor, YamlKind::kMap);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override {
    merge(stack_.back());
    close();
  }

 private:
  struct Frame {
    std::shared_ptr<YamlData> data;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    bool has_key = false;
    bool merge_key = false;
    std::string key;
    int key_line = 0;
    std::unordered_map<std::string, int> lines;  // of the keys so far; kMergeKey is apart
    int merge_line = 0;
    std::vector<YamlSlot> merged;
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& found,
                         const std::string& expected) const {
    throw InputError(origin_->place(mark.line + 1), found, expected);
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      fail(mark, "the tag " + in_quotes(tag), "values without tags");
  }

  std::shared_ptr<YamlData> make(YamlKind kind) const {
    auto data = std::make_shared<YamlData>();
    data->origin = origin_;
    data->kind = kind;
    return data;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, YamlKind kind) {
    if (stack_.size() >= kMaxDepth)
      fail(mark, fmt::format("nesting deeper than {}", kMaxDepth), "a flatter file");
    if (expects_key()) fail(mark, "a list or map as a key", "a plain name");
    Frame frame{};
    frame.data = make(kind);
    frame.mark = mark;
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }

  void close() {
    const Frame frame = std::move(stack_.back());
    stack_.pop_back();
    add(frame.mark, frame.anchor, frame.data);
  }

  bool expects_key() const {
    return !stack_.empty() && stack_.back().data->kind == YamlKind::kMap && !stack_.back().has_key;
  }

  void add(const YAML::Mark& mark, YAML::anchor_t anchor, const std::shared_ptr<const YamlData>& data) {
    if (anchor != 0) anchors_[anchor] = data;
    if (stack_.empty()) {
      root_ = {data, mark.line + 1};
    } else if (expects_key()) {
      take_key(mark, *data);
    } else if (Frame& frame = stack_.back(); frame.data->kind == YamlKind::kList) {
      frame.data->items.push_back({data, mark.line + 1});
    } else {
      frame.has_key = false;
      // The event of a value that isn't there carries the mark of whatever comes next.
      const YamlSlot slot{data, data->kind == YamlKind::kNull ? frame.key_line : mark.line + 1};
      if (frame.merge_key)
        take_merge(frame, mark, slot);
      else
        frame.data->entries.push_back({frame.key, frame.key_line, slot});
    }
  }

  void take_key(const YAML::Mark& mark, const YamlData& data) {
    Frame& frame = stack_.back();
    if (data.kind != YamlKind::kScalar || data.text.empty())
      fail(mark,
           data.kind == YamlKind::kList || data.kind == YamlKind::kMap ? "a list or map as a key"
                                                                       : "an empty key",
           "a plain name");
    frame.has_key = true;
    frame.key = data.text;
    frame.key_line = mark.line + 1;
    frame.merge_key = !data.quoted && data.text == "<<";
    int& first = frame.merge_key ? frame.merge_line : frame.lines[frame.key];
    if (first != 0)
      fail(mark, fmt::format("the key {} a second time (first in line {})", in_quotes(frame.key), first),
           frame.merge_key ? "one \"<<\" a map, with a list for several" : "each key once");
    first = frame.key_line;
  }

  void take_merge(Frame& frame, const YAML::Mark& mark, const YamlSlot& slot) {
    frame.merged = slot.data->kind == YamlKind::kList ? slot.data->items : std::vector<YamlSlot>{slot};
    for (const YamlSlot& source : frame.merged)
      if (source.data->kind != YamlKind::kMap)
        fail(mark, "\"<<\" with something that is no map", "a map or a list of maps");
  }

  void merge(Frame& frame) {
    for (const YamlSlot& source : frame.merged)
      for (const YamlEntry& entry : source.data->entries) {
        if (++merged_entries_ > kMaxMergedEntries)
          fail(frame.mark, "more than a million merged keys", "fewer");
        if (frame.lines.emplace(entry.key, entry.key_line).second) frame.data->entries.push_back(entry);
      }
  }

  std::shared_ptr<const YamlOrigin> origin_;
  YamlSlot root_;
  std::vector<Frame> stack_;
  std::unordered_map<YAML::anchor_t, std::shared_ptr<const YamlData>> anchors_;
  std::size_t merged_entries_ = 0;
};

// What yaml-cpp lets through or reads wrongly: bytes it takes for the end of the file, tabs, bad UTF-8.
void check_text(const std::string& text, const YamlOrigin& origin) {
  const auto fail = [&](std::size_t offset, const std::string& found, const std::string& expected) {
    throw InputError(origin.place(line_of(text, offset)), found, expected);
  };
  if (const std::size_t bad = first_invalid_utf8(text); bad != std::string::npos)
    fail(bad, "bytes that are not UTF-8", "UTF-8 text");
  bool indentation = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\t' && indentation) fail(i, "a tab in the indentation", "spaces");
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F)
      fail(i, fmt::format("the control character {:#04x}", static_cast<unsigned>(c)), "text");
    indentation = c == '\n' || (indentation && c == ' ');
  }
}

class NoEvents : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

void check_syntax(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  NoEvents handler;
  // Two are enough: on some broken texts the parser finds empty documents without end.
  for (int document = 0; document < 2 && parser.HandleNextDocument(handler); ++document) {
  }
}

YamlSlot build_tree(const std::string& text, const std::shared_ptr<const YamlOrigin>& origin) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  TreeBuilder builder(origin), rest(origin);
  if (!parser.HandleNextDocument(builder)) return {};
  const YamlSlot root = builder.take_root();
  if (parser.HandleNextDocument(rest))
    throw InputError(origin->place(rest.take_root().line),
                     "a second document, or a value that does not continue the first", "one document a file");
  return root;
}

InputError syntax_error(const YAML::Exception& e, const std::string& text, const YamlOrigin& origin) {
  const int last = std::max(1, line_of(text, text.size()) - (text.ends_with('\n') ? 1 : 0));
  const std::string where = origin.place(e.mark.is_null() ? last : std::min(last, e.mark.line + 1));
  if (dynamic_cast<const YAML::DeepRecursion*>(&e) != nullptr)
    return InputError(where, "nesting that is too deep", "a flatter file");
  return InputError(where, "a YAML syntax error (" + printable(e.msg) + ")", "valid YAML");
}

}  // namespace

YamlSlot parse_yaml_slot(const std::string& text, std::shared_ptr<const YamlOrigin> origin) {
  check_text(text, *origin);
  // yaml-cpp 0.7 takes a line break and the end of the file for a closing quote; a comment is none.
  const std::string ended = text + "\n#";
  try {
    return build_tree(ended, origin);
  } catch (const YAML::Exception& e) {
    throw syntax_error(e, text, *origin);
  } catch (const InputError&) {
    // After a bracket that is never closed the events make no sense: then that is what to say.
    try {
      check_syntax(ended);
    } catch (const YAML::Exception& e) {
      throw syntax_error(e, text, *origin);
    }
    throw;
  }
}

}  // namespace hyperoffload
