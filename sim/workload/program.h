// The forward pass of one part of a model (embedding, a layer, the head) on one rank, as kernels over
// values: what inference emits as it is, and training runs forwards, backwards and again.
//
// What is counted. FLOPs: matrix products only, 2 m n k each, and attention's two products over the
// (query, key) pairs the mask lets through; vector kernels (norm, rope, activation, add) have none: HBM
// bounds them. HBM bytes: each operand read once, each result written once, so that a kernel is taken to
// keep its tiles on chip (flash attention writes no sequence x sequence tensor); of a table or a cache,
// only the rows used. Values are in SSA form: each is written by one kernel, except for kernels that
// update theirs in place. Equal layers share one program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/workload/weights.h"
#include "sim/workload/workload.h"

namespace hyperoffload {

// One pass over the layers on one rank.
struct Pass {
  Phase phase = Phase::kPrefill;
  std::int64_t sequences = 1;    // samples
  std::int64_t new_tokens = 1;   // a sample, that go through the layers now
  std::int64_t cached = 0;       // a sample, that went through before
  std::int64_t capacity = 0;     // a sample, that the cache is sized for
  bool last_logits_only = true;  // the head computes the last token of each sample only
  std::int64_t tokens() const { return sequences * new_tokens; }
};

struct Value {
  std::string name;
  Bytes bytes;
};

struct LocalWeight {
  std::string name;
  Bytes bytes;
  std::int64_t elements = 0;
};

// What outlives the pass beside weights: a layer's KV cache or recurrent state.
struct State {
  std::string name;
  Bytes bytes;
};

struct Kernel {
  std::string kernel;              // its kind: "norm", "qkv", "attention", ...
  std::string name;                // unique in the program
  std::vector<int> reads, writes;  // values; in both: updated in place
  std::vector<int> weights;
  std::vector<int> state_reads, state_writes;
  double flops = 0;
  Bytes hbm_bytes;
  Bytes workspace;
};

struct Program {
  std::vector<Value> values;
  std::vector<LocalWeight> weights;
  std::vector<State> states;
  std::vector<Kernel> kernels;
  int input = -1, output = -1;  // values
};

struct ProgramContext {
  const ModelConfig& model;
  const WorkloadSpec& spec;
  RankPlace place;
  Pass pass;
};

Program embedding_program(const ProgramContext& context);
Program layer_program(const ProgramContext& context, const LayerSpec& layer);
Program head_program(const ProgramContext& context);

// (query, key) pairs a causal mask lets through: query i of `new_tokens` sees itself and all before it,
// those of the cache included; no more than `window` keys (0: all), or those of its own chunk of `window`.
std::int64_t attended_pairs(std::int64_t new_tokens, std::int64_t cached, std::int64_t window, bool chunked);

// Tokens of one sample a layer keeps in a cache sized for `capacity`, and reads at the end of a pass.
std::int64_t kept_tokens(std::int64_t capacity, const AttentionSpec& attention);

// Bytes one token takes in a layer's cache on this rank, and bytes of its fixed-size state a sample.
Bytes kv_bytes_per_token(const LayerSpec& layer, DataType type, const RankPlace& place);
Bytes state_bytes_per_sample(const LayerSpec& layer, DataType type, const RankPlace& place);

}  // namespace hyperoffload
