// The words of the plan checker: byte sums that can't overflow, and how its messages name things.
#pragma once

#include <string>
#include <vector>

#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

// A sum of many Bytes, each up to 2^63-1.
__extension__ typedef __int128 WideBytes;

std::string bytes_words(WideBytes bytes);                 // `40 B`, `12884901888 B (12 GiB)`
std::string quoted(const Graph& graph, TensorId tensor);  // `"w0"`
std::string quoted(const Graph& graph, OpId op);          // `op "mlp.5"`
// `prefetch of "w0" behind op "mlp.5" (actions[3])`, with its range unless it moves the whole tensor.
std::string action_words(const Graph& graph, const Plan& plan, int index, OpId behind);
// ` in iteration 2`; nothing in the first, which is all there is for most plans.
std::string iteration_words(int iteration);
// The largest of a tier's residents: `"w0" 50 B, "w1" 30 B`; `bytes` is per tensor.
std::string largest_words(const Graph& graph, const std::vector<Bytes>& bytes);

}  // namespace hyperoffload
