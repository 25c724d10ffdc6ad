// What is too large to be generated, found before anything is built. InputErrors name the field.
//
// Sizes: a config's whole numbers are bounded when read (config_reader.h), but their products aren't:
// here a weight's rows and columns (2^28 each), the parameters together (2^50), and the elements of the
// largest value of a pass (2^50) are, in floating point, so that every later sum and product of them fits
// 64 bits. Counts: ops and tensors of the trace (5 million each) and operands of its ops (50 million),
// from the number of passes and one pass's programs; recomputation and backward passes as upper bounds.
#pragma once

#include "sim/workload/model_config.h"
#include "sim/workload/sharding.h"
#include "sim/workload/workload.h"

namespace hyperoffload {

void check_model_size(const ModelConfig& model);
void check_value_sizes(const WorkloadSpec& spec, const ModelConfig& model);
void check_trace_size(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place);

}  // namespace hyperoffload
