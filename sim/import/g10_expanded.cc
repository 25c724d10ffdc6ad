// Reads G10's kernels.config.
#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "sim/import/g10_program.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

constexpr double kCyclesPerSecond = 1.2e9;  // "GPU_frequency_GHz 1.2" in G10's configs

// The whole number between `before` and `after` in a line.
std::optional<std::int64_t> number_between(std::string_view line, std::string_view before,
                                           std::string_view after) {
  const std::size_t begin = line.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(begin + before.size());
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (!rest.starts_with(after)) return std::nullopt;
  return value;
}

class ExpandedReader {
 public:
  explicit ExpandedReader(const std::string& source) : source_(source) {}

  G10Program read(std::string_view text) {
    while (!text.empty()) {
      std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
      ++line_;
      if (!line.empty()) take(line);
    }
    if (open_)
      fail("the end of the file in the middle of a kernel", "a line of underscores behind each kernel");
    return std::move(program_);
  }

 private:
  void take(std::string_view line) {
    if (line.starts_with("Kernel ID:")) return begin_kernel(line);
    if (!open_) fail(in_quotes(line), "\"Kernel ID: n, Name: X\"");
    G10Kernel& kernel = program_.kernels.back();
    if (line.starts_with("____")) {
      if (!timed_) fail("a kernel without an execution time", "\"Execution Time: cycles\"");
      open_ = false;
    } else if (line.starts_with("Parent Layer ID:")) {
      kernel.layer = static_cast<int>(number_between(line, "Parent Layer ID:", ";").value_or(-1));
    } else if (line.starts_with("Execution Time:")) {
      const auto cycles = number_between(line, "Execution Time:", "");
      if (!cycles) fail(in_quotes(line), "\"Execution Time: cycles\"");
      kernel.duration = Seconds(static_cast<double>(*cycles) / kCyclesPerSecond);
      timed_ = true;
    } else if (line == "Input Tensors:") {
      list_ = &kernel.reads;
    } else if (line == "Output Tensors:") {
      list_ = &kernel.writes;
    } else if (line.starts_with("tensor")) {
      if (!list_) fail(in_quotes(line), "\"Input Tensors:\" before it");
      list_->push_back(tensor(line));
    } else if (!line.starts_with("Parent OP ID:") && !line.starts_with("(")) {
      fail(in_quotes(line), "a line of G10's kernels.config");
    }
  }

  void begin_kernel(std::string_view line) {
    const auto id = number_between(line, "Kernel ID:", ", Name: ");
    if (open_ || !id || *id != static_cast<std::int64_t>(program_.kernels.size()))
      fail(in_quotes(line),
           fmt::format("\"Kernel ID: {}, Name: X\" behind a line of underscores", program_.kernels.size()));
    program_.kernels.emplace_back();
    program_.kernels.back().name = line.substr(line.find("Name: ") + 6);
    open_ = true;
    timed_ = false;
    list_ = nullptr;
  }

  // The place of the tensor of a line "tensorN Is weight (global)?: 0, Size in byte: S, Range:a--b".
  int tensor(std::string_view line) {
    const auto id = number_between(line, "tensor", " Is weight (global)?:");
    const auto global = number_between(line, "(global)?:", ",");
    const auto bytes = number_between(line, "Size in byte:", ",");
    if (!id || *id > 1'000'000'000 || !global || *global > 1 || !bytes)
      fail(in_quotes(line), "\"tensorN Is weight (global)?: 0|1, Size in byte: S, Range:a--b\"");
    const auto [place, fresh] = places_.try_emplace(*id, static_cast<int>(program_.tensors.size()));
    if (fresh) program_.tensors.push_back({static_cast<int>(*id), *bytes, *global == 1});
    const G10Tensor& known = program_.tensors[static_cast<std::size_t>(place->second)];
    if (known.bytes != *bytes || known.global != (*global == 1))
      fail(fmt::format("another size or flag for tensor{}", *id), "the same on each line");
    return place->second;
  }

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw InputError(fmt::format("{}:{}", source_, line_), found, expected);
  }

  const std::string& source_;
  int line_ = 0;
  G10Program program_;
  std::unordered_map<std::int64_t, int> places_;
  bool open_ = false, timed_ = false;
  std::vector<int>* list_ = nullptr;
};

}  // namespace

bool is_g10_expanded(std::string_view text) { return text.starts_with("Kernel ID:"); }

G10Program read_g10_expanded(const std::string& text, const std::string& source) {
  return ExpandedReader(source).read(text);
}

}  // namespace hyperoffload
