// Puts a layer trace together while a file is read: names made unique, engines by name, remarks.
//
// A name that was there before gets "#2", "#3", ...; an empty one becomes "unnamed". Tensors are found by
// the id that the foreign file gives them (any integer). finish() turns what is read before any write
// into an `input` unless it is persistent, and refuses a trace that has no ops.
// O(1) an op, a tensor and an access.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/import/import.h"
#include "sim/model/count_of.h"
#include "sim/model/graph.h"

namespace hyperoffload {

// Memory of the different names, however often each repeats.
class UniqueNames {
 public:
  std::string take(const std::string& name);

 private:
  bool was_made(const std::string& name) const;
  std::unordered_map<std::string, std::uint64_t> seen_;  // names as given -> the last number made of them
};

class TraceMaker {
 public:
  // `files`: those read; the first names the trace.
  TraceMaker(const std::string& format, const std::vector<std::string>& files);

  EngineId engine(const std::string& name);
  const std::string& engine_name(EngineId id) const { return spec_.engines[id.index()]; }
  void rename_engine(EngineId id, const std::string& name) { spec_.engines[id.index()] = name; }
  const std::string& source() const { return source_; }  // the first file, for messages

  // A new tensor. Its bytes and kind may be changed through tensor_at() until finish().
  TensorId add_tensor(const std::string& name, Bytes bytes, TensorKind kind, bool persistent);
  TensorId add_tensor(const std::string& name, Bytes bytes, TensorKind kind) {
    return add_tensor(name, bytes, kind, persistent_by_default(kind));
  }
  Tensor& tensor_at(TensorId id) { return spec_.tensors[id.index()]; }
  std::size_t tensor_count() const { return spec_.tensors.size(); }

  // `op.engine` none: the engine "compute". The name is made unique.
  OpId add_op(Op op);
  Op& op_at(OpId id) { return spec_.ops[id.index()]; }
  std::size_t op_count() const { return spec_.ops.size(); }

  // The tensor lives to this op: it reads the tensor, unless it writes it.
  void keep_to(OpId op, TensorId tensor);

  void name(const std::string& name) { spec_.name = name; }
  void remark(const std::string& sentence) { remarks_.push_back(sentence); }
  // A figure that the layer trace has no place for; goes to its `meta`. `json`: as it stands in JSON.
  void note(const std::string& key, const std::string& json) { notes_.emplace_back(key, json); }

  // `what` names the elements that would have become ops ("kernel events"), for the message.
  ImportResult finish(const std::string& what);

 private:
  void mark_inputs();
  std::string meta_json() const;

  std::string format_, source_;
  std::vector<std::string> file_names_;
  GraphSpec spec_;
  UniqueNames op_names_, tensor_names_;
  std::vector<std::string> remarks_;
  std::vector<std::pair<std::string, std::string>> notes_;
};

// A file's name without its folders and without .gz.
std::string plain_name(const std::string& path);

}  // namespace hyperoffload
