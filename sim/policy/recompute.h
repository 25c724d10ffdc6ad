// `recompute`: what a layer's forward ops leave to its backward ops is dropped and computed again just before it is
// needed (activation checkpointing, arXiv 1604.06174; full recomputation of the first N layers as Megatron-LM's
// `recompute_granularity=full, recompute_method=block, recompute_num_layers=N`). Nothing is moved.
//
// The program is rewritten. A *segment* is one pass of one layer: its forward ops that hand tensors to each other. Kept
// are the tensors that other segments read (layer inputs, checkpoints); what only the segment and backward ops read is
// dropped. The segment's ops that make it run again, collectives too, before the first backward op that reads any of
// it, and write copies that the backward ops read instead. A segment stays as it is where an op to be repeated
// changes something that outlives it (a cache, a residual updated in place), or reads what has changed since.
// `layers`: so many layers, first ones first; 0: the fewest that fit, none if all fits. Where memory is short in spite
// of all layers the policy does not fit. The ideal time stays that of the trace as given; the ops that run again are
// `other_s` among the stalls. O(ops + accesses), times log(layers).
#pragma once

#include "sim/model/hardware.h"
#include "sim/policy/static_plan.h"

namespace hyperoffload {

struct RecomputeOptions {
  int layers = 0;
};

// How many layers can be computed again, and the program in which `layers` of them are, the first ones or evenly spread:
// what `graph` plans on where it may choose between keeping, moving and computing again (app/recompute_choice.h).
enum class Recomputed { kFirst, kSpread };
int recomputable_layers(const Graph& graph);
Graph with_recompute(const Graph& graph, int layers, Recomputed which);

// InfeasibleError for a trace in which nothing can be computed again, and where all layers don't suffice.
StaticPlan recompute(const Graph& graph, const Hardware& hardware, int iterations, const RecomputeOptions& options);

}  // namespace hyperoffload
