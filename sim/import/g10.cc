// G10's nets, with its kernel times and workspaces, or its expanded form.
#include "sim/import/g10.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/import/exact_time.h"
#include "sim/import/g10_program.h"
#include "sim/import/option_value.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

constexpr int kMaxBatch = 1'000'000;
const std::string kNetExpected = "a net of G10's, or its expanded kernels.config";

// The rows "kernel number, value, unit" of a times or workspace file.
struct Rows {
  std::string source;
  bool times = false;  // ms; else bytes
  std::vector<std::string> values;
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t\r")));
    if (line.empty()) return words;
    words.push_back(line.substr(0, line.find_first_of(" \t\r")));
    line.remove_prefix(words.back().size());
  }
}

Rows read_rows(const std::string& file) {
  const std::string expected = "rows of a kernel's number, its time or workspace, and ms or B";
  const std::string text = read_file(file, expected);
  Rows rows;
  rows.source = source_name(file);
  std::string_view rest = text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::string_view row = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), row.size() + 1));
    const std::vector<std::string_view> words = words_of(row);
    if (words.empty()) continue;
    const std::string where = fmt::format("{}:{}", rows.source, line);
    if (words.size() != 3 || (words[2] != "ms" && words[2] != "B"))
      throw InputError(where, in_quotes(row), expected);
    if (rows.values.empty()) rows.times = words[2] == "ms";
    if (rows.times != (words[2] == "ms")) throw InputError(where, in_quotes(row), rows.times ? "ms" : "B");
    if (words[0] != fmt::format("{:0{}}", rows.values.size(), words[0].size()))
      throw InputError(where, "kernel " + in_quotes(words[0]), fmt::format("kernel {}", rows.values.size()));
    rows.values.emplace_back(words[1]);
  }
  if (rows.values.empty()) throw InputError(rows.source, "an empty file", expected);
  return rows;
}

void take_rows(const Rows& rows, const std::string& net, G10Program& program) {
  if (rows.values.size() != program.kernels.size())
    throw InputError(
        rows.source,
        fmt::format("{} for {}", rows.times ? "times" : "workspaces", count_of(rows.values.size(), "kernel")),
        fmt::format("{}: one for each kernel of {}", program.kernels.size(), net));
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    const std::string where = fmt::format("{}: kernel {}", rows.source, i);
    if (rows.times) {
      const auto time = parse_picoseconds(rows.values[i], kPicosPerMilli);
      if (!time || *time < 0) throw InputError(where, in_quotes(rows.values[i]), "milliseconds, 0 or more");
      program.kernels[i].duration = to_seconds(*time);
    } else {
      program.kernels[i].workspace_bytes =
          whole_pages(whole_number(rows.values[i], where, "bytes", 1LL << 50));
    }
  }
}

// "results/BERT_Base/cudnn128.txt" -> 128.
std::optional<std::int64_t> batch_in_name(const std::string& file) {
  const std::string name = plain_name(file);
  const std::string prefix = "cudnn";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t batch = 0;
  std::size_t i = prefix.size();
  for (; i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])) && batch <= kMaxBatch; ++i)
    batch = batch * 10 + (name[i] - '0');
  return batch > 0 && batch <= kMaxBatch ? std::optional(batch) : std::nullopt;
}

int border_of(const std::string& net, const ImportOptions& options) {
  if (options.border)
    return static_cast<int>(whole_number(*options.border, "--border", "an id of the net", 1'000'000'000));
  std::string name = plain_name(net);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name.find("BERT") != std::string::npos) return 210;
  if (name.find("VIT") != std::string::npos) return 184;
  throw InputError(source_name(net), "a net of operator records that isn't BERT or VIT",
                   "--border N, the id from which on its tensors are no weights");
}

// A net of the shipped form, with the times and workspaces in the other files.
G10Program read_net(const std::string& text, const std::vector<std::string>& files,
                    const ImportOptions& options, TraceMaker& maker) {
  const std::string net = source_name(files[0]);
  std::vector<Rows> rows;
  std::optional<std::int64_t> batch;
  if (options.batch) batch = whole_number(*options.batch, "--batch", "a batch size", kMaxBatch, 1);
  for (std::size_t i = 1; i < files.size(); ++i) {
    rows.push_back(read_rows(files[i]));
    const std::optional<std::int64_t> named = batch_in_name(files[i]);
    if (!batch) batch = named;
    if (named && *named != *batch && !options.batch)
      throw InputError(source_name(files[i]), fmt::format("a file for batch {}", *named),
                       fmt::format("batch {} as in the file before", *batch));
    if (named && *named != *batch)
      maker.remark(fmt::format("{} is named for batch {}, and used for batch {}", plain_name(files[i]),
                               *named, *batch));
    if (rows.back().times && plain_name(files[i]).find("PF") != std::string::npos)
      maker.remark(plain_name(files[i]) + " has times with page faults: an ideal time made of them is none");
  }
  if (std::count_if(rows.begin(), rows.end(), [](const Rows& r) { return r.times; }) != 1 || rows.size() > 2)
    throw InputError(net, rows.empty() ? "a net without kernel times" : "other files beside a net",
                     "NET cudnnB.txt [cudnnBWorkspace.txt], with one file of kernel times");
  if (!batch)
    throw InputError(net, "no batch size in the files' names", "names like cudnn128.txt, or --batch N");
  const std::optional<int> pixels = options.pixels
                                        ? std::optional(static_cast<int>(whole_number(
                                              *options.pixels, "--pixels", "a width in pixels", 100'000)))
                                        : std::nullopt;
  G10Program program = is_g10_module_tree(text)
                           ? expand_g10_modules(text, net, *batch, pixels)
                           : expand_g10_operators(text, net, *batch, border_of(files[0], options));
  for (const Rows& each : rows) take_rows(each, net, program);
  if (rows.size() < 2) maker.remark("no workspace file: kernels have no workspace");
  maker.name(fmt::format("{} batch {}", plain_name(files[0]), *batch));
  maker.note("batch", std::to_string(*batch));
  return program;
}

G10Program read_program(const std::vector<std::string>& files, const ImportOptions& options,
                        TraceMaker& maker) {
  const std::string text = read_file(files[0], kNetExpected);
  const std::string source = source_name(files[0]);
  const bool tree = is_g10_module_tree(text);
  if (is_g10_expanded(text)) {
    if (files.size() > 1)
      throw InputError(source_name(files[1]), "a file beside an expanded kernels.config",
                       "the kernels.config alone");
    if (options.batch || options.border || options.pixels)
      throw InputError(source, "--batch, --border or --pixels for an expanded kernels.config",
                       "none: its sizes are final");
    return read_g10_expanded(text, source);
  }
  if (std::string_view(text).starts_with("tensor"))
    throw InputError(source, "G10's list of tensors or of their idle intervals", "its kernels.config");
  if (!tree && !is_g10_operator_net(text))
    throw InputError(source, in_quotes(text.substr(0, text.find('\n'))), kNetExpected);
  if (tree && options.border)
    throw InputError("--border", "a net given as a module tree", "a net of operator records");
  if (!tree && options.pixels)
    throw InputError("--pixels", "a net of operator records", "a net given as a module tree");
  return read_net(text, files, options, maker);
}

TensorKind global_kind(const ImportOptions& options) {
  if (!options.global || *options.global == "other") return TensorKind::kOther;
  const std::string word = one_word(*options.global, "--global", {"activation", "other", "weight"});
  return word == "weight" ? TensorKind::kWeight : TensorKind::kActivation;
}

// "Forward", "Backward" and "Apply_Grad" in the kernel's name.
const char* phase_of(const std::string& kernel) {
  if (kernel.find("Apply_Grad") != std::string::npos) return "optimizer";
  if (kernel.find("Backward") != std::string::npos || kernel == "makeLoss" || kernel == "Add_MultiGredient")
    return "backward";
  return "forward";
}

std::vector<TensorId> ids_of(const std::vector<int>& places) {
  std::vector<TensorId> ids;
  ids.reserve(places.size());
  for (int place : places) ids.emplace_back(place);
  return ids;
}

void add_tensors(const G10Program& program, TensorKind global, TraceMaker& maker) {
  std::vector<bool> gradient(program.tensors.size()), seen(program.tensors.size());
  for (const G10Kernel& kernel : program.kernels) {
    const bool backward = std::string_view(phase_of(kernel.name)) == "backward";
    for (const std::vector<int>* list : {&kernel.reads, &kernel.writes})
      for (int place : *list) {
        const auto i = static_cast<std::size_t>(place);
        if (!seen[i]) gradient[i] = backward && list == &kernel.writes;
        seen[i] = true;
      }
  }
  for (std::size_t i = 0; i < program.tensors.size(); ++i) {
    const G10Tensor& tensor = program.tensors[i];
    const TensorKind kind = tensor.global ? global
                            : gradient[i] ? TensorKind::kGradient
                                          : TensorKind::kActivation;
    maker.add_tensor(fmt::format("tensor{}", tensor.id), Bytes(tensor.bytes), kind,
                     tensor.global && global != TensorKind::kActivation);
  }
}

}  // namespace

ImportResult import_g10(const std::vector<std::string>& files, const ImportOptions& options) {
  TraceMaker maker("g10", files);
  const TensorKind global = global_kind(options);
  const G10Program program = read_program(files, options, maker);
  add_tensors(program, global, maker);
  std::int64_t global_bytes = 0;
  std::size_t globals = 0;
  for (const G10Tensor& tensor : program.tensors)
    if (tensor.global) {
      global_bytes += tensor.bytes;
      ++globals;
    }
  if (globals > 0 && !options.global)
    maker.remark(
        fmt::format("{} of {} bytes taken as persistent \"other\"{}", count_of(globals, "\"global\" tensor"),
                    global_bytes,
                    program.kernels.front().layer >= 0
                        ? ""
                        : ": for transformers G10's flag also covers tensors that grow with the batch "
                          "(--global weight or activation takes them as such)"));
  for (const G10Kernel& kernel : program.kernels) {
    Op op;
    op.name = kernel.name;
    op.duration = kernel.duration;
    op.reads = ids_of(kernel.reads);
    op.writes = ids_of(kernel.writes);
    op.workspace = Bytes(kernel.workspace_bytes);
    op.phase = phase_of(kernel.name);
    op.layer = kernel.layer;
    maker.add_op(std::move(op));
  }
  return maker.finish("kernels");
}

}  // namespace hyperoffload
