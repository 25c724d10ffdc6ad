// Timelines of Ascend devices: `TIMELINE.json`, or MindSpore's `output_timeline_data_N.txt`.
//
// Chrome events in an array or under traceEvents (msprof, torch_npu, MindInsight), ts as numbers or texts.
// Where processes have names, the tasks of "Ascend Hardware" streams are ops, or those of HCCL's planes where
// there is no hardware process (in one file the two tell of the same tasks twice); step traces, overlap
// analysis and whole communication kernels sum up others and are none. Without names (MindInsight) every
// complete event stands on a device's stream. The text form is a table of op_name, stream_id, start_time(ms),
// duration(ms). Options: those of timeline.h.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_ascend(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
