// Every learned tensor of a model: the one list that parameters, weight bytes and the trace's weight
// tensors come from.
//
// A weight is what one kernel reads as a whole ("q_proj" with its bias, one expert with its matrices);
// it consists of parts, each a matrix (or a vector: cols = 1) with the dimension that tensor parallelism
// splits. Multi-token-prediction layers are not part of the main model. Quantisation scales are bytes of
// a weight, not parameters.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/model_config.h"
#include "sim/workload/sharding.h"

namespace hyperoffload {

enum class Split { kNone, kRows, kCols };

struct WeightPart {
  std::int64_t rows = 0, cols = 1;
  Split split = Split::kNone;
  std::int64_t units = 1;     // along the split dimension: heads, or the rows themselves
  bool shared_units = false;  // fewer units than ranks is allowed: neighbours hold the same unit
  bool quantised = true;      // may be stored quantised (matrices of linear layers)
};

struct WeightSpec {
  std::string name;    // inside its layer: "q_proj", "expert.3"
  std::string kernel;  // the kernel that reads it: "qkv", "experts", ...
  std::vector<WeightPart> parts;
  int expert = -1;  // index of a routed expert; these are split over ep and etp, the others over tp
};

std::vector<WeightSpec> embedding_weights(const ModelConfig& model);
std::vector<WeightSpec> layer_weights(const ModelConfig& model, const LayerSpec& layer);
std::vector<WeightSpec> head_weights(const ModelConfig& model);  // final norm, and lm_head unless tied
// One multi-token-prediction module, without the tables it shares: a layer like the last, the projection
// that joins hidden states and embedding, three norms.
std::vector<WeightSpec> mtp_weights(const ModelConfig& model);

std::int64_t elements(const WeightSpec& weight);

// A weight's parts as one rank holds them.
WeightSpec local_weight(const WeightSpec& weight, const RankPlace& place);

// Bytes when matrices are of `type`, or stored as the config publishes them (`quant`), scales included.
// Parts that are never quantised (norms, biases, routers) are of `plain`.
Bytes weight_bytes(const WeightSpec& weight, DataType plain, DataType type, const QuantSpec* quant);

}  // namespace hyperoffload
