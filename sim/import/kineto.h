// PyTorch profiler traces (Kineto, Chrome trace JSON): `TRACE.json [EXECUTION_TRACE.json]`.
//
// One op per kernel, gpu_memcpy and gpu_memset event (ph "X"), none for annotations; a stream is an engine.
// Times are microseconds, as numbers or text. The trace itself names no tensors; an execution trace of the
// same run gives them (kineto_link.h), or memory events (kineto_memory.h, option tensors). Options: category,
// device, link, and those of timeline.h. Streamed: memory is that of the device events, and of what links
// them where asked for.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_kineto(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
