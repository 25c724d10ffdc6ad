// The backward pass of a program: gradients of values flow from its output to its input, gradients of
// weights are written or added to.
//
// A gradient is a tensor as large as its value. Where y = a + b, the gradients of both are y's, one
// tensor; a second contribution to a gradient is added in place. What the backward kernels read of the
// forward pass stays alive until then by that alone; values that are not kept are computed again first.
#pragma once

#include <functional>

#include "sim/workload/trace_writer.h"

namespace hyperoffload {

// The accumulated gradient of one weight.
struct WeightGradient {
  TensorId tensor;
  bool written = false;  // something is in it: from this pass, or an earlier one
  bool carried = false;  // from an earlier one: a contribution reads it all
};

struct BackwardJob {
  const Program& program;
  std::string part;
  Emission emission;                                 // prefix and layer; its phase is "backward"
  Binding& binding;                                  // of the forward pass; weights may be replaced before
  TensorId output_grad;                              // none: the program ends in the loss
  const std::vector<WeightGradient*>& weight_grads;  // one a weight; null: it has none
  DataType gradient_dtype = DataType::kBf16;
  bool accumulate = false;  // an earlier micro-batch has left its gradients
};

// Returns the gradient of the program's input (none for token ids).
TensorId emit_backward(TraceWriter& writer, const BackwardJob& job);

// Values of `program` that its backward pass reads.
std::vector<bool> values_needed(const Program& program);

// Computes values again that `kept` says were not kept, as far as the backward pass needs them; rebinds
// them. The ops have phase "recompute".
void emit_recompute(TraceWriter& writer, const Program& program, const std::string& part, Emission emission,
                    Binding& binding, const std::vector<bool>& kept);

// Which values stay after the forward pass under a policy (the input always does).
std::vector<bool> kept_values(const Program& program, const TrainSpec& train, bool recompute_all);

}  // namespace hyperoffload
