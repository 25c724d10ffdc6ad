// The mechanical part of a static baseline: it says which tensors leave HBM between which accesses and when
// they come back; here that becomes a plan that keeps the rules of plans (sim/model/check_plan.h).
//
// *Absence*: a tensor leaves behind one of its accesses and is back for the next; behind the last one of a
// persistent tensor it *wraps*: the next use is the next iteration's first, and the tensor starts in the pool.
// Each gets a detach, a store before it where the pool copy isn't valid (behind the latest write; once for a
// tensor that nothing writes), and a prefetch unless the next access overwrites the old bytes. Ops in the pool
// get the stores and detaches they need, tensors bound to the pool their first load, without being asked.
// Queues are in the order of `load_after`, then of use. O(accesses + actions x log actions).
#pragma once

#include <vector>

#include "sim/model/graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct Absence {
  TensorId tensor;
  int access = 0;       // index into graph.accesses(tensor) of the access it leaves behind
  OpId load_after;      // the prefetch's after_op, before the next access; none: that iteration's start
  bool ahead = false;   // of one that wraps: loaded in the iteration it left in, at or behind that access
  OpId leave_after{};   // its bytes are given back behind this later op, before the next access; none: at once
};

// Behind which op a load "right before" `op` starts: the last one that `op` follows, on its engine or as a
// dependency; none: at the iteration's start.
OpId load_point(const Graph& graph, OpId op);
// Where a load wished for behind `wish` stands: not behind its load point, nor before the tensor's previous access or
// the op that makes the use known.
OpId load_anchor(const Graph& graph, OpId use, OpId previous, OpId wish);

// A persistent tensor without any access takes HBM for nothing: `never_used_in_pool` starts those in the pool.
Plan plan_absences(const Graph& graph, const std::vector<Absence>& absences, int iterations,
                   bool never_used_in_pool = false);

// A tensor's stretch in HBM between two accesses, in program order: what an absence can spare.
struct Stretch {
  TensorId tensor;
  int access = 0;  // as in Absence
  OpId from, to;   // the two ops; where it wraps, `to` is at or before `from`, in the next iteration
  bool wraps = false;
};

// All stretches of tensors with bytes, by tensor; those that ops in the pool end or begin are not in HBM.
std::vector<Stretch> stretches(const Graph& graph);

// Per access: whether the tensor is in HBM behind it when nothing leaves that may stay.
std::vector<char> resident_after(const Graph& graph, TensorId t);

}  // namespace hyperoffload
