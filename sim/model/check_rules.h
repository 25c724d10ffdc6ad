// The plan checker's first pass: each tensor's accesses and actions in program order, by byte range.
//
// Accesses and actions of one tensor take effect in program order, so in every timing they find the
// state this walk finds; a prefetch that may have started has happened here. A tensor is cut into
// pieces at its actions' range boundaries, so that a piece is resident or absent as a whole, and its
// pool copy valid, stale or missing. A rule broken for any byte is broken. A tensor of no bytes is
// one piece of none: prefetched, stored and detached like any other.
//
// Behind a broken rule the walk goes on as if it had been kept, so that one mistake is reported once:
// a prefetched tensor counts as resident, a read one too, a store or detach as having had its copy.
//
// O(accesses + pieces + actions x the pieces they cover) an iteration; iterations end early once an
// iteration starts as the one before did. Accesses by pool ops also cost their tensor's pieces.
#pragma once

#include <vector>

#include "sim/model/check_plan.h"
#include "sim/model/check_words.h"
#include "sim/model/plan_body.h"

namespace hyperoffload {

// What the ops and stores of one iteration take anew when they start.
struct BodyTakes {
  std::vector<WideBytes> op;  // in the op's tier: births, missing bytes of pure writes, workspace; in the
                              // pool as allocated
  std::vector<Bytes> store;   // per plan action: pool bytes that a store doesn't have yet
};

struct RuleFindings {
  std::vector<Violation> broken;
  std::vector<BodyTakes> bodies;  // of iterations 0, 1, ...; the last stands for all that follow
};

RuleFindings check_rules(const Graph& graph, const Plan& plan, const CheckLimits& limits, const PlanBody& first,
                         const PlanBody& later, int iterations);

}  // namespace hyperoffload
