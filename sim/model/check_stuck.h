// The plan checker's second pass: could the plan get stuck? Judged without time.
//
// The replay in program order in which transfers take no time and go before ops (and before an
// iteration's inputs, which wait like an op), waiting for room as usual: whatever may have started
// has, so an op finds as little room as any timing leaves it. The queues go through the body of
// iteration 1, then that of iteration 2, in file order; a head that can't go blocks those behind it.
//
// With several engines ops may also run earlier than program order says. So each op is charged, in
// both tiers, with what every later op that does not depend on it would take (births, missing bytes
// of pure writes, workspace), and HBM with the prefetches whose `after_op` is such an op; what
// depends on the plan's own transfers doesn't count as dependent. See later_ops.h.
//
// An op that takes nothing is charged too: the later ones may have taken the room that its prefetch or
// its successors wait for.
//
// O(ops x engines + accesses + actions) an iteration; iterations end early once one ends as an
// earlier one did. Needs a plan that keeps the rules of check_rules.h. Its weaknesses are the
// rule's own: the charge ignores what runs and frees meanwhile, so it refuses plans that no timing
// sticks; and it leaves out the pool bytes of stores anchored on later ops, so that an op in the pool
// may wait for ever behind them (test/model/check_plan_property_test.cc).
#pragma once

#include <optional>
#include <vector>

#include "sim/model/check_addresses.h"
#include "sim/model/check_plan.h"
#include "sim/model/check_rules.h"
#include "sim/model/plan_body.h"

namespace hyperoffload {

// The op, or an iteration's inputs, that can't start once nothing more can move. `watch`, if any, is told
// who comes into HBM and goes; with `addresses` the first of them that doesn't hold is a violation, too.
std::optional<Violation> find_stuck(const Graph& graph, const Plan& plan, const CheckLimits& limits,
                                    const PlanBody& first, const PlanBody& later,
                                    const std::vector<BodyTakes>& bodies, int iterations,
                                    Residency* watch = nullptr, const AddressCheck* addresses = nullptr);

}  // namespace hyperoffload
