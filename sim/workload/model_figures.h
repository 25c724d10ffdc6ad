// What a model card says of a model, from its config alone: parameters, cache bytes, work a token.
//
// Parameters: every learned tensor of the main model, router correction biases included;
// multi-token-prediction heads and quantisation scales excluded. Active: without the routed experts a
// token does not visit. KV bytes: what one token writes to the caches of all layers (sliding-window
// layers included: they keep it for a while). Forward FLOPs of one token: 2 a matrix element it
// meets, plus attention over `context` tokens.
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

}  // namespace hyperoffload
