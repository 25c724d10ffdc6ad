// The linear program with every tensor's start decided: in the pool or in HBM, as a whole.
//
// The program lets a part of a tensor start a cold pass in the pool and the rest in HBM; no run can. Of the runs
// that a program bounds, each starts a given tensor in one of the two, so that the smaller of the two programs with
// that start decided bounds them all; and so on down a tree, whose open leaves always cover every run: the least of
// their proven limits is one (offload_lp.h proves each from prices). First it is parted by how many
// start in the pool (of alike tensors that is what matters: at most n, or at least n + 1), where that is whole at the
// tensor of which most bytes start on the other side. Best first: the leaf with the least limit is next. Ends after
// so many programs, or when the limit reaches `enough`, or a leaf with whole starts is the least: then it is
// the best that the program allows.
// O(programs of one decision more each, warm). Each unit that has the choice must be one tensor
// (ProgramOptions::starts_apart).
#pragma once

#include "planner/bound/offload_lp.h"

namespace hyperoffload {

struct BranchLimits {
  int programs = 0;       // at most, beside the first
  double enough = 1e300;  // seconds above those of slots and waits
  bool dive = false;      // for good starts rather than a high limit: on to whole starts before other leaves
};

struct Branched {
  double lower = 0;  // proven, at least that of the program as it is
  LpOutcome best;    // of the leaves with every start whole; its `upper` is infinite: none found
  int programs = 0;  // beside the first
};

// `solver`: no start is decided; afterwards any may be.
Branched branch_starts(OffloadSolver& solver, const LpLimits& limits, const BranchLimits& branches);

}  // namespace hyperoffload
