// A plan as hyper-parallel's residency schedule, and back:
// {"pre": {"op": [actions]}, "post": {"op": [actions]}}, an action being {"op_id", "storage_id", "kind"} with
// the kinds COPY_H2D, COPY_D2H, RELEASE_DEVICE and RELEASE_HOST (mindspore-ai/hyper-parallel,
// hyper_offload/ir/schedule.py at ca95c12; issue #693). Ops are numbered by program order, storages as an
// imported ActivationTrace had them, else by the trace's order of tensors; "storages" says which is which.
//
// A prefetch stands before the op behind its anchor, stores and detaches behind their anchor. The schedule
// also says what a plan leaves out: at a tensor's last access its device bytes, and its copy if it has one,
// are released. What hyper-parallel has no word for stands under keys of ours, so that out and in again is
// the same plan, without its prediction and bound: before_op, range_bytes, iteration and position (a place in
// the queues that the order of ops doesn't give) of an action, and initial_pool and order.
#pragma once

#include <string>
#include <vector>

#include "sim/model/plan.h"

namespace hyperoffload {

struct Exported {
  std::string text;
  std::vector<std::string> remarks;  // what the format can't say
};

Exported plan_to_schedule(const Plan& plan, const Graph& graph);

// Releases at a tensor's last access are no actions of a plan. InputError with the path inside the file.
Plan parse_schedule(const std::string& text, const std::string& source, const Graph& graph);

}  // namespace hyperoffload
