// What a model card says of a model, from its config alone: parameters, cache bytes, work a token.
//
// Parameters: every learned tensor of the main model, router correction biases included;
// multi-token-prediction heads and quantisation scales excluded. Active: without the routed experts a
// token does not visit. KV bytes: what one token writes to the caches of all layers (sliding-window
// layers included: they keep it for a while). FLOPs as in program.h, of a whole causal sequence, logits
// of every token included.
#pragma once

#include "sim/workload/model_config.h"

namespace hyperoffload {

struct ModelFigures {
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;
  Bytes kv_bytes_per_token;      // of a dtype given
  Bytes kv_bytes_per_token_far;  // of it, what still grows beyond every window
  Bytes state_bytes_per_sample;  // fixed-size states
};

ModelFigures model_figures(const ModelConfig& model, DataType kv_type);

// Mean FLOPs a token of a forward pass over `sequence` tokens; a training step does three times that.
double forward_flops_per_token(const ModelConfig& model, std::int64_t sequence);

// Bytes of all weights as the config says they are stored: quantised matrices with their scales.
Bytes published_weight_bytes(const ModelConfig& model);

}  // namespace hyperoffload
