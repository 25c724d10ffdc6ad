#include "sim/import/kineto_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "sim/import/exact_time.h"
#include "sim/import/json_records.h"
#include "sim/import/torch_types.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"

namespace hyperoffload {
namespace {

enum Field : std::size_t {
  kPhase,
  kCategory,
  kName,
  kDuration,
  kCorrelation,
  kExternalId,
  kDims,
  kTypes,
  kCopyBytes
};

std::vector<JsonField> fields() {
  return {{{"ph"}},
          {{"cat"}},
          {{"name"}},
          {{"dur"}},
          {{"args", "correlation"}},
          {{"args", "External id"}},
          {{"args", "Input Dims"}, true},
          {{"args", "Input type"}, true},
          {{"args", "bytes"}}};
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Operand {
  std::vector<double> dims;
  double elements = 1, bytes = 0;
};

// The operator's tensors, in the order of its arguments; no value where one is of a type unknown here.
std::optional<std::vector<Operand>> operands_of(const JsonRecord& r) {
  if (!r.has(kDims) || !r.has(kTypes)) return std::nullopt;
  const JsonValue &dims = r.value(kDims), &types = r.value(kTypes);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < std::min(dims.items.size(), types.items.size()); ++i) {
    const JsonValue& shape = dims.items[i];
    const std::string& type = types.items[i].text;
    if (shape.type != JsonValue::Type::kArray || shape.items.empty()) continue;  // a scalar, or no tensor
    Operand operand;
    for (const JsonValue& size : shape.items) {
      const std::optional<double> n = number(size.text);
      if (!n) return std::nullopt;  // a list of tensors
      operand.dims.push_back(*n);
      operand.elements *= *n;
    }
    const std::optional<std::int64_t> each = bytes_of_torch_type(type);
    if (!each) return std::nullopt;
    operand.bytes = operand.elements * static_cast<double>(*each);
    operands.push_back(std::move(operand));
  }
  return operands;
}

struct Work {
  std::string kernel;
  double flops = 0, bytes = 0;
};

// `added`: how many tensors stand before the two matrices.
std::optional<Work> product(const std::vector<Operand>& operands, std::size_t added, std::size_t rank) {
  if (operands.size() != added + 2) return std::nullopt;
  const Operand &a = operands[added], &b = operands[added + 1];
  if (a.dims.size() != rank || b.dims.size() != rank || a.dims[rank - 1] != b.dims[rank - 2])
    return std::nullopt;
  const double columns = b.dims[rank - 1], each = a.elements > 0 ? a.bytes / a.elements : 0;
  const double results = a.elements / std::max(1.0, a.dims[rank - 1]) * columns;
  Work work{"matmul", 2 * a.elements * columns, a.bytes + b.bytes + results * each};
  if (added > 0) work.bytes += operands[0].bytes;
  return work;
}

std::optional<Work> work_of(const std::string& name, const std::vector<Operand>& operands) {
  if (name == "aten::mm") return product(operands, 0, 2);
  if (name == "aten::bmm") return product(operands, 0, 3);
  if (name == "aten::addmm") return product(operands, 1, 2);
  if (name == "aten::baddbmm") return product(operands, 1, 3);
  static const std::set<std::string> vector = {
      "aten::add",  "aten::add_",      "aten::sub",        "aten::mul",  "aten::mul_",
      "aten::div",  "aten::div_",      "aten::neg",        "aten::silu", "aten::gelu",
      "aten::relu", "aten::sigmoid",   "aten::tanh",       "aten::exp",  "aten::rsqrt",
      "aten::pow",  "aten::clamp_min", "aten::clamp_min_", "aten::copy_"};
  if (vector.count(name) == 0 || operands.empty()) return std::nullopt;
  Work work{"vector", 0, 0};
  double largest = 0;
  for (const Operand& operand : operands) {
    work.bytes += operand.bytes;
    largest = std::max(largest, operand.bytes);
  }
  if (name != "aten::copy_") work.bytes += largest;  // whose first operand is the result
  return work;
}

class Reader {
 public:
  Reader(const std::string& file, Measured& measured)
      : stream_(file, "a PyTorch profiler trace (Kineto)"), measured_(measured) {}

  void read() {
    JsonRecordReader reader;
    reader.arrays = {"traceEvents"};
    reader.fields = fields();
    reader.record = [this](const std::string&, std::size_t index, const JsonRecord& record) {
      ++events_;
      if (record.text(kPhase) == "X") event(index, record);
    };
    TopMembers members;
    reader.member = [&](const std::string& key, const JsonValue& value) { members.add(key, value); };
    read_json_records(stream_, reader);
    if (events_ == 0)
      throw InputError(stream_.source(), members.without_records("traceEvents"), stream_.expected());
    for (const auto& [id, seconds] : kernels_) {
      const auto work = works_.find(id);
      if (work == works_.end())
        ++measured_.other_kernels;
      else if (seconds > 0)
        measured_.kernels.push_back(
            {work->second.kernel, work->second.flops, work->second.bytes, Seconds(seconds)});
    }
  }

 private:
  void event(std::size_t index, const JsonRecord& r) {
    const std::string& category = r.text(kCategory);
    if (category == "cpu_op")
      host_op(r);
    else if (category == "kernel" || category == "Kernel")
      kernel(index, r);
    else if (category == "gpu_memcpy" || category == "Memcpy")
      copy(index, r);
  }

  double seconds(std::size_t index, const JsonRecord& r) const {
    if (!r.has(kDuration)) return 0;
    const auto time = parse_picoseconds(r.text(kDuration), kPicosPerMicro);
    if (!time || *time < 0)
      throw InputError(fmt::format("{}: traceEvents[{}].dur", stream_.source(), index),
                       in_quotes(r.text(kDuration)), "microseconds");
    return to_seconds(*time).value;
  }

  void host_op(const JsonRecord& r) {
    const std::string& id = r.text(kExternalId);
    if (id.empty()) return;
    const auto operands = operands_of(r);
    if (!operands) return;
    if (const auto work = work_of(r.text(kName), *operands)) works_.emplace(id, *work);
  }

  void kernel(std::size_t index, const JsonRecord& r) {
    const std::string& id = r.text(kExternalId);
    if (id.empty() || id == r.text(kCorrelation))  // older versions: it names no operator
      ++measured_.other_kernels;
    else
      kernels_[id] += seconds(index, r);
  }

  void copy(std::size_t index, const JsonRecord& r) {
    const std::string& name = r.text(kName);
    const bool in = name.find("HtoD") != std::string::npos, out = name.find("DtoH") != std::string::npos;
    const std::optional<double> bytes = number(r.text(kCopyBytes));
    const double time = seconds(index, r);
    if ((!in && !out) || !bytes || *bytes <= 0 || time <= 0) return;
    measured_.copies.push_back({in, name.find("Pageable") != std::string::npos, *bytes, Seconds(time)});
  }

  TextStream stream_;
  Measured& measured_;
  std::size_t events_ = 0;
  std::map<std::string, Work> works_;      // by External id
  std::map<std::string, double> kernels_;  // seconds, by External id
};

}  // namespace

void read_kineto_measured(const std::string& file, Measured& measured) { Reader(file, measured).read(); }

}  // namespace hyperoffload
