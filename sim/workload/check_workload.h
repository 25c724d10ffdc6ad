// Do a model, a workload and a rank's place fit together? Every misfit is one clear sentence.
#pragma once

#include "sim/workload/model_config.h"
#include "sim/workload/sharding.h"
#include "sim/workload/workload.h"

namespace hyperoffload {

// InputError naming the key that doesn't fit.
void check_workload(const WorkloadSpec& spec, const ModelConfig& model, const RankPlace& place);

}  // namespace hyperoffload
