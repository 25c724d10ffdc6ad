// LLMServingSim's text traces (github.com/casys-kaist/LLMServingSim, inference_serving/trace_generator.py):
// `TRACE.txt`.
//
// A line about the instance, the number of rows, a head, then rows "layer comp_ns input_loc input_B
// weight_loc weight_B output_loc output_B comm_type comm_B misc"; rows of EXPERT, PIM and ATTENTION only mark
// what follows. A row is an op that reads its weight and what the row before wrote (the format names no
// tensors: that is its converter's rule, too), and writes its output; a communication becomes an op of its
// own behind it, on the engine comm. What isn't LOCAL starts in the pool. Rows kv_load and kv_evict touch a
// KV tensor of their bytes.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_llmservingsim(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
