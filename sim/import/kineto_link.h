// Gives the ops of a Kineto trace the tensors of an execution trace of the same run, and with them
// dependencies.
//
// A device event belongs to the operator that its External id names; where that is its own correlation (older
// versions), to the innermost operator that was running on the thread when the call with this correlation was
// made. An operator is the execution trace's node whose rf_id is its Record function id or External id, when
// all of these agree in their names; else both sides are laid beside each other thread by thread, in the
// order of External ids and node ids: the node names must occur there one after another, and may do so
// several times (iterations). All kernels of a node read and write what the node does. O(events log events +
// nodes * threads).
#pragma once

#include <string>
#include <vector>

#include "sim/import/kineto_events.h"
#include "sim/import/trace_maker.h"

namespace hyperoffload {

// `ops`: of each device event. InputError when the two files are not of the same run.
void link_execution_trace(const std::string& file, const KinetoEvents& events, const std::vector<OpId>& ops,
                          TraceMaker& maker);

}  // namespace hyperoffload
