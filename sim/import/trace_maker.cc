#include "sim/import/trace_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/model/error.h"
#include "sim/model/json_reader.h"
#include "sim/model/read_file.h"

namespace hyperoffload {

std::string plain_name(const std::string& path) {
  if (path == "-") return "standard input";
  std::string name = path.substr(path.find_last_of('/') + 1);
  if (name.size() > 3 && name.ends_with(".gz")) name.resize(name.size() - 3);
  return name;
}

// Whether "mm#3" was made of an "mm".
bool UniqueNames::was_made(const std::string& name) const {
  const std::size_t mark = name.rfind('#');
  std::uint64_t number = 0;
  if (mark == std::string::npos || name[mark + 1] == '0') return false;
  const auto [end, error] = std::from_chars(name.data() + mark + 1, name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return false;
  const auto base = seen_.find(name.substr(0, mark));
  return base != seen_.end() && number >= 2 && number <= base->second;
}

std::string UniqueNames::take(const std::string& name) {
  const bool made = was_made(name);
  const auto [place, fresh] = seen_.try_emplace(name, 1);
  if (fresh && !made) return name;
  while (true) {
    std::string numbered = fmt::format("{}#{}", name, ++place->second);
    if (seen_.find(numbered) == seen_.end()) return numbered;
  }
}

TraceMaker::TraceMaker(const std::string& format, const std::vector<std::string>& files) : format_(format) {
  for (const std::string& file : files) file_names_.push_back(plain_name(file));
  spec_.name = file_names_.empty() ? format : file_names_.front();
  source_ = files.empty() ? format : source_name(files.front());
  spec_.source = source_;
  spec_.engines.clear();
}

EngineId TraceMaker::engine(const std::string& name) {
  for (std::size_t i = 0; i < spec_.engines.size(); ++i)
    if (spec_.engines[i] == name) return EngineId(i);
  spec_.engines.push_back(name);
  return EngineId(spec_.engines.size() - 1);
}

TensorId TraceMaker::add_tensor(const std::string& name, Bytes bytes, TensorKind kind, bool persistent) {
  Tensor tensor;
  tensor.name = tensor_names_.take(name.empty() ? "unnamed" : name);
  tensor.bytes = bytes;
  tensor.kind = kind;
  tensor.persistent = persistent;
  spec_.tensors.push_back(std::move(tensor));
  return TensorId(spec_.tensors.size() - 1);
}

OpId TraceMaker::add_op(Op op) {
  op.name = op_names_.take(op.name.empty() ? "unnamed" : op.name);
  if (op.engine.is_none()) op.engine = engine("compute");
  spec_.ops.push_back(std::move(op));
  return OpId(spec_.ops.size() - 1);
}

void TraceMaker::keep_to(OpId id, TensorId tensor) {
  Op& op = op_at(id);
  if (std::find(op.writes.begin(), op.writes.end(), tensor) == op.writes.end()) op.reads.push_back(tensor);
}

void TraceMaker::mark_inputs() {
  std::vector<bool> written(spec_.tensors.size());
  for (const Op& op : spec_.ops) {
    for (TensorId t : op.reads) {
      Tensor& tensor = spec_.tensors[t.index()];
      if (!written[t.index()] && !tensor.persistent) tensor.kind = TensorKind::kInput;
    }
    for (TensorId t : op.writes) written[t.index()] = true;
  }
}

std::string TraceMaker::meta_json() const {
  std::string json = "{\"import\": {\"format\": ";
  append_json_string(json, format_);
  json += ", \"files\": [";
  for (std::size_t i = 0; i < file_names_.size(); ++i) {
    if (i > 0) json += ", ";
    append_json_string(json, file_names_[i]);
  }
  json += "]";
  for (const auto& [key, value] : notes_) {
    json += ", ";
    append_json_string(json, key);
    json += ": " + value;
  }
  json += ", \"remarks\": [";
  for (std::size_t i = 0; i < remarks_.size(); ++i) {
    if (i > 0) json += ", ";
    append_json_string(json, remarks_[i]);
  }
  return json + "]}}";
}

ImportResult TraceMaker::finish(const std::string& what) {
  if (spec_.ops.empty()) throw InputError(source_, "no " + what, "at least one");
  const bool nothing = std::all_of(spec_.ops.begin(), spec_.ops.end(), [](const Op& op) {
    return op.duration.value_or(Seconds(0)) == Seconds(0) && op.flops.value_or(Flops(0)) == Flops(0) &&
           op.hbm_bytes.value_or(Bytes(0)) == Bytes(0) && !op.collective && op.reads.empty() &&
           op.writes.empty();
  });
  if (nothing)
    throw InputError(source_, fmt::format("{} without any time or bytes", count_of(spec_.ops.size(), "op")),
                     "times or sizes");
  mark_inputs();
  spec_.meta_json = meta_json();
  return {build_graph(std::move(spec_)), std::move(remarks_)};
}

}  // namespace hyperoffload
