// Tensors from a Kineto trace's memory events: `--tensors memory`.
//
// An allocation is paired with the free of its address. The allocator works on the host: what it gives
// belongs to the kernels launched from then on, until the free. So an allocation becomes a tensor that the
// first op launched after it writes, and the last op launched before its free reads. What is freed without an
// allocation was there before (an input); what stays to the end is read by the last op. What was allocated
// before the first event and is never freed becomes one persistent tensor: the first event's total says how
// much it is. Which ops between touch a tensor isn't known: gaps between uses are lost, peaks are right.
// O(events log events).
#pragma once

#include <vector>

#include "sim/import/kineto_events.h"
#include "sim/import/trace_maker.h"

namespace hyperoffload {

// `ops`: of each device event.
void add_memory_tensors(const KinetoEvents& events, const std::vector<OpId>& ops, TraceMaker& maker);

}  // namespace hyperoffload
