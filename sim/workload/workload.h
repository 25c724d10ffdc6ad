// A workload: a model, what it does (train, prefill, decode), how much of it and over how many ranks;
// and its layer trace, that of one rank.
//
// `batch` counts the samples one data-parallel replica takes an iteration, all its micro-batches
// together. `sequence` is tokens a sample (train, prefill), or the tokens already in the cache (decode).
// generate_trace() is linear in what it writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/workload/dtype.h"
#include "sim/workload/model_config.h"
#include "sim/workload/sharding.h"

namespace hyperoffload {

enum class Phase { kTrain, kPrefill, kDecode, kMixed };
enum class Detail { kKernel, kLayer };
enum class Recompute { kNone, kSelective, kFull, kLayers };
enum class Schedule { k1F1B, kGPipe };
enum class Routing { kBalanced, kRandom };
const char* to_string(Phase phase);
const char* to_string(Detail detail);
const char* to_string(Recompute recompute);
const char* to_string(Schedule schedule);
const char* to_string(Routing routing);

// A chunk of prompt that goes through the layers beside the decoding samples (phase mixed).
struct PromptChunk {
  std::int64_t batch = 1;
  std::int64_t tokens = 0;  // of each prompt, now
  std::int64_t cached = 0;  // of each prompt, before
};

struct TrainSpec {
  std::string optimizer = "adamw";  // adamw: fp32 master weights and two moments; none: no update
  Recompute recompute = Recompute::kNone;
  std::vector<std::string> recompute_kernels = {"norm", "act"};  // selective: whose results aren't kept
  std::int64_t recompute_layers = 0;  // kLayers: the first so many layers of each pipeline chunk
  int zero = 0;                       // ZeRO stage: 1 optimizer, 2 and gradients, 3 and weights
  int microbatches = 1;
  Schedule schedule = Schedule::k1F1B;
  std::optional<DataType> gradient_dtype;  // of accumulated weight gradients; else that of activations
  std::int64_t bucket_bytes = 0;           // gradients reduced together; 0: one bucket a layer
  bool optimizer_on_host = false;          // states in the pool, updated by the host
  bool given = false;                      // the workload has the key
};

// How routed experts are picked. Balanced: tokens take experts in turn, each the same number. Random:
// uniformly, from the seed.
struct RoutingSpec {
  Routing routing = Routing::kBalanced;
  std::uint64_t seed = 0;
  bool given = false;  // the workload has the key
};

// Decode attention that reads selected blocks of the cache only.
struct SparseSpec {
  std::int64_t top_k = 0;  // tokens a query reads; 0: what the model's indexer says, else all
  double reuse = 0;        // share of a step's blocks that were also the step before's
  std::uint64_t seed = 0;
  bool given = false;  // the workload has the key
};

// What one collective takes, by the alpha-beta model; without it, collectives carry no time of their own.
struct CollectiveLink {
  BytesPerSecond bandwidth;  // of one rank, each way
  Seconds latency;           // a step of the ring
};

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
  TrainSpec train;
  RoutingSpec experts;
  SparseSpec sparse;
  std::optional<PromptChunk> prefill;  // phase mixed
  std::int64_t chunk = 0;              // prefill: tokens a pass; 0: all at once
  std::int64_t steps = 1;              // decode: tokens generated a sample, one pass each
  int mtp = 0;                         // multi-token-prediction modules that run beside the model
  std::int64_t kv_block = 0;           // tokens a cache tensor; 0: one tensor a layer
  std::optional<CollectiveLink> collectives;
  std::string source;  // file (and place in it) for messages; may be empty

  DataType weights() const { return weight_dtype.value_or(dtype); }
  DataType kv() const { return kv_dtype.value_or(dtype); }
  std::string at(const std::string& key) const { return source.empty() ? key : source + ": " + key; }
};

// InputError if model and workload don't fit together.
Graph generate_trace(const WorkloadSpec& spec);
Graph generate_trace(const WorkloadSpec& spec, const ModelConfig& model);

// What generate_trace() would refuse, without generating.
void check_workload(const WorkloadSpec& spec);

class YamlNode;

// A workload file, or the `workload:` block of an experiment; `model` is relative to the file naming it.
WorkloadSpec load_workload(const std::string& path);
WorkloadSpec read_workload(const YamlNode& node);

}  // namespace hyperoffload
