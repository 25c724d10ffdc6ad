// The tight lower limits (`--bound lp`): least stall at the given HBM capacity, least HBM at zero stall.
//
// Why it is a bound. Take any run that keeps docs/semantics.md: a plan's, or of a policy that decides while
// time runs. Look at it from one engine (EngineView) at the starts and ends of its ops, or at any subset of
// them (boundaries; slot s is the time before boundary s).
//  1. Bytes of a tensor take HBM from the start of their load to their detach or death. A detach needs a valid
//     pool copy of those bytes, a write makes the copy stale, and a store of what a write left starts behind
//     the write's end. So within a stay, at every boundary, a share of the tensor's bytes may be away only if
//     as many bytes were stored behind the stay's beginning: one store serves all its gaps. Clean from the
//     start are: persistent tensors in the last of several iterations (its state at the start is free: any
//     bytes there, any copies) and, in a cold pass, those that start in the pool (those that start in HBM have
//     no copy).
//  2. An op starts with all it reads resident, so what was away at a boundary of the gap before a read came
//     over the link between that boundary and the op's start.
//  3. At an op's start and at its end HBM holds its working set and all that is not away: the sum is at most
//     the capacity. What other engines' ops take is left out.
//  4. One transfer at a time and direction. Let a load of S bytes that takes L = latency + S / bandwidth alone
//     count as arriving evenly over the time it takes: its bytes are taken from its start, so 2 and 3 hold
//     for bytes counted so; a store likewise. A transfer moves no more than its tensor, so bytes of a tensor
//     of S bytes take at least L / S each, and all that arrive in a slot at most its length. Where HBM's
//     bandwidth can hold a copy back beside an op (5), latency counts as zero and bytes as they flow.
//  5. Kernels and copies share HBM bandwidth B: an op of h bytes that takes d alone runs for at least d and
//     (h + c) / B if c bytes are copied meanwhile; so c <= min(link d, B d - h) + B (its time - d). Summed
//     over a slot: bytes <= sum of these + B x (the slot's time - its ops' time), for loads, stores and both.
//  6. A slot takes at least its ops' time alone, and what ops of other engines force this one to wait
//     (EngineView::waits) lies somewhere in the slots of that wait; the iteration ends no sooner than the
//     last op, and no sooner than the waits say.
// Fractions of what leaves when (patterns) are a point of a linear program whose value is thus at most the
// time above that of the ops and forced waits; and any prices prove a lower limit for the program
// (offload_lp.h). Dropping boundaries drops inequalities (2, 3) and sums others (4, 5): still a bound; that is
// how long traces are coarsened. Gaps at whose boundaries everything fits are dropped too: staying costs
// nothing there. Stays with the same boundaries and slots are one: the program is convex.
// Least HBM: where the program's value at a capacity is above zero, that capacity is too small for zero stall; where it is
// above `allowed_stall`, for no more than that.
// Several engines: the largest of the limits each engine's view gives. The result is the larger of this,
// window_bound and, for the stall, reload_bound. Proven for program order, without recomputation.
// Whole tensors: what lies idle in HBM at a boundary are whole tensors, so that the capacity left to them is at
// most the largest sum of some of their sizes: an internal limit for plans without pieces on one
// engine (round a circle, too: what lies idle across the iteration's end lies idle at its start).
// Steady: where an iteration ends in the very state it began in (what is where, what is on its way), it goes on
// round a circle: behind its last boundary comes its first, and stays of persistent tensors run from a write to
// the next through the iteration's end. 1-6 hold for them as for any other, so that the program on the circle
// bounds the time of such an iteration, and the least HBM is that at which its value is no more than is allowed; as it is
// convex and the same every turn, both hold for the mean time, too, over any
// number of iterations behind which a state returns. A plan is one body repeated, which settles; but the last of
// a few iterations, still living on what the first left in HBM, can be faster: not a limit for a given N.
// Branches: the program lets parts of a tensor start a cold pass in the pool and in HBM, a run can't. branch_starts.h
// proves the larger limit of programs that decide it, of seconds or, of the same program asked for capacity, of bytes.
// Many units: tensors that may start a cold pass in the pool, each with its own gaps, make a program that takes minutes
// (15,424 ops, 3,000 tensors used eight times each: 307 s). From 2,500 units on their gaps are taken one by one, as if
// there were a copy already: that asks for less, so it is a bound still (0.3 s, and as high in that case).
// Known late: with `known_after`, of runs that load nothing for an op before the op that tells what it reads has ended. What is
// away at a boundary of the gap before such a read, and is not known to be read by a later op either, comes over the
// link in a slot that ends behind that op's end (or, if it runs on another engine, behind the last op that is surely over when it
// starts); staying is allowed as ever. The gap's patterns without the earlier loads are a subset: the limit is no lower, and
// holds for these runs: plans of this planner, and policies that follow what is known.
// Cost: `boundaries` bounds the program (docs/planner.md has figures; Llama decode on all its 774: 0.5 s).
// Weakness: coarse boundaries, what other engines hold in HBM, and the free state at the start of a repeated iteration.
#pragma once

#include "planner/analysis/flat_graph.h"
#include "sim/model/plan.h"

namespace hyperoffload {

struct LpBoundOptions {
  bool whole_tensors = false;
  // At most; 0: 400 or, where every unit of a trace of up to 1,000 ops has one gap, all.
  int boundaries = 0;
  // The least stall of an iteration that ends in the state it began in; with one engine and no ops in the pool.
  bool steady = false;
  bool known_after = false;  // of runs that keep it
  int branches = 0;  // programs more, for either limit, that decide where tensors start a cold pass
  bool stall = true, hbm = true;  // which limits to work out; the other is the window's
  double allowed_stall = 0;       // seconds; the least HBM is that of no more
};

struct LpBoundStats {
  int boundaries = 0, units = 0, rows = 0, columns = 0, rounds = 0;  // of the largest program
  double stall_upper = 0;  // the relaxation's value lies between the limit and this; with branches: of the best of whole starts
  int programs = 0;
};

// `ideal`: the iteration's time with everything in place. `graph.machine` must be what the NPU gets at best
// (best_npu).
Bound lp_bound(const FlatGraph& graph, double ideal, int iterations, const LpBoundOptions& options = {},
               LpBoundStats* stats = nullptr);

}  // namespace hyperoffload
