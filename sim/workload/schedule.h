// The order in which one pipeline stage runs the forward and backward passes of its micro-batches.
//
// 1F1B: as many forward passes first as there are stages behind, then one of each in turn. Interleaved
// (virtual_stages > 1): each rank holds several chunks of layers; chunk c of rank r is the c * pp + r-th
// part of the model (Narayanan et al. 2021, and Megatron-LM's schedules). GPipe: all forward, then all
// backward. Only the rank's own order: what it waits for others is not part of one rank's trace.
#pragma once

#include <string>
#include <vector>

#include "sim/workload/workload.h"

namespace hyperoffload {

struct PassStep {
  bool backward = false;
  int microbatch = 0;
  int chunk = 0;
  bool operator==(const PassStep&) const = default;
};

// InputError with `where` for interleaving whose micro-batches are no multiple of pp.
std::vector<PassStep> pipeline_schedule(Schedule schedule, int pp, int pp_rank, int chunks, int microbatches,
                                        const std::string& where);

}  // namespace hyperoffload
