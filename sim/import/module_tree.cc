#include "sim/import/module_tree.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <string_view>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

constexpr int kMaxDepth = 32;

bool is_identifier(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

class TreeReader {
 public:
  TreeReader(const std::string& text, const std::string& source) : rest_(text), source_(source) {}

  Module read() {
    std::string_view line = next_line();
    Module root = module(line, "", 0);
    if (line = next_line(); !line.empty()) fail(line, "the end of the file");
    return root;
  }

 private:
  // The next line that isn't empty, without spaces around it.
  std::string_view next_line() {
    while (!rest_.empty()) {
      std::string_view line = rest_.substr(0, rest_.find('\n'));
      rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
      ++line_;
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
      if (!line.empty()) return line;
    }
    return {};
  }

  // "Type(" and its children down to ")", or "Type(arguments)".
  Module module(std::string_view text, std::string name, int depth) {
    if (depth > kMaxDepth) fail(text, fmt::format("at most {} levels", kMaxDepth));
    Module module;
    module.name = std::move(name);
    module.line = line_;
    const std::size_t open = text.find('(');
    if (open == std::string_view::npos || !is_identifier(text.substr(0, open)))
      fail(text, "\"Type(\" or \"Type(arguments)\"");
    module.type = text.substr(0, open);
    text.remove_prefix(open + 1);
    if (text.empty()) {
      read_children(module, depth);
    } else if (text.back() == ')') {
      module.arguments = text.substr(0, text.size() - 1);
    } else {
      fail(text, "a closing parenthesis");
    }
    return module;
  }

  void read_children(Module& parent, int depth) {
    while (true) {
      const std::string_view line = next_line();
      if (line == ")") return;
      const std::size_t close = line.find("): ");
      if (line.empty() || line[0] != '(' || close == std::string_view::npos)
        fail(line, "\"(name): Type(...)\" or \")\"");
      parent.children.push_back(
          module(line.substr(close + 3), std::string(line.substr(1, close - 1)), depth + 1));
    }
  }

  [[noreturn]] void fail(std::string_view found, const std::string& expected) const {
    throw InputError(fmt::format("{}:{}", source_, line_),
                     found.empty() ? "the end of the file" : in_quotes(found), expected);
  }

  std::string_view rest_;
  const std::string& source_;
  int line_ = 0;
};

// The value of an argument as text: "(7, 5)", "1", "False".
std::optional<std::string_view> argument_text(std::string_view arguments, std::string_view wanted) {
  int position = 0;
  while (!arguments.empty()) {
    std::size_t end = 0;
    for (int depth = 0; end < arguments.size() && (depth > 0 || arguments[end] != ','); ++end)
      depth += arguments[end] == '(' ? 1 : arguments[end] == ')' ? -1 : 0;
    std::string_view argument = arguments.substr(0, end);
    arguments.remove_prefix(std::min(arguments.size(), end + 1));
    while (!argument.empty() && argument.front() == ' ') argument.remove_prefix(1);
    const std::size_t equals = argument.find('=');
    const std::string key = equals == std::string_view::npos ? std::to_string(position++)
                                                             : std::string(argument.substr(0, equals));
    if (key == wanted) return equals == std::string_view::npos ? argument : argument.substr(equals + 1);
  }
  return std::nullopt;
}

}  // namespace

int Module::number(const std::string& argument, int n, int otherwise) const {
  const auto text = argument_text(arguments, argument);
  if (!text) return otherwise;
  std::string_view rest = *text;
  if (rest.starts_with('(')) {
    rest.remove_prefix(1);
    for (; n > 0 && rest.find(',') != std::string_view::npos; --n) rest.remove_prefix(rest.find(',') + 1);
  }
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  int value = 0;
  bool any = false;
  for (; !rest.empty() && std::isdigit(static_cast<unsigned char>(rest[0])) && value < 10'000'000;
       rest.remove_prefix(1)) {
    value = value * 10 + (rest[0] - '0');
    any = true;
  }
  return any ? value : otherwise;
}

bool Module::flag(const std::string& argument, bool otherwise) const {
  const auto text = argument_text(arguments, argument);
  return text ? *text == "True" : otherwise;
}

Module parse_module_tree(const std::string& text, const std::string& source) {
  return TreeReader(text, source).read();
}

}  // namespace hyperoffload
