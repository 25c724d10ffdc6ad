// A workload: a model, what it does (train, prefill, decode), how much of it and over how many ranks;
// and its layer trace, that of one rank.
//
// `batch` counts the samples one data-parallel replica takes an iteration, all its micro-batches
// together. `sequence` is tokens a sample (train, prefill), or the tokens already in the cache (decode).
// All sizes in tokens, bytes as in dtype.h. generate_trace() is linear in what it writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/model/graph.h"
#include "sim/workload/dtype.h"
#include "sim/workload/model_config.h"
#include "sim/workload/sharding.h"

namespace hyperoffload {

enum class Phase { kTrain, kPrefill, kDecode };
const char* to_string(Phase phase);

enum class Detail { kKernel, kLayer };

struct WorkloadSpec {
  std::string name;        // of the trace; empty: model and phase
  std::string model_path;  // a HuggingFace config.json
  Phase phase = Phase::kPrefill;
  std::int64_t batch = 1;
  std::int64_t sequence = 0;
  DataType dtype = DataType::kBf16;      // activations, and what the next two don't say
  std::optional<DataType> weight_dtype;  // of linear layers' matrices
  bool published_weights = false;        // weights stored as the config says, scales included
  std::optional<DataType> kv_dtype;
  Detail detail = Detail::kKernel;
  ParallelSpec parallel;
  std::string source;  // file (and place in it) for messages; may be empty

  DataType weights() const { return weight_dtype.value_or(dtype); }
  DataType kv() const { return kv_dtype.value_or(dtype); }
};

// InputError if model and workload don't fit together.
Graph generate_trace(const WorkloadSpec& spec);
Graph generate_trace(const WorkloadSpec& spec, const ModelConfig& model);

class YamlNode;

// A workload file, or the `workload:` block of an experiment; `model` is relative to the file naming it.
WorkloadSpec load_workload(const std::string& path);
WorkloadSpec read_workload(const YamlNode& node);

}  // namespace hyperoffload
