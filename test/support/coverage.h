// Which rules a random case exercised: what the case holds (pieces, scopes, pool ops, ...) and what
// mattered in its reference replay (waits, contention, ties, ...). A property test that never meets
// one of them has lost its value, so it fails.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "test/support/random_plan.h"
#include "test/support/reference_replay.h"

namespace hyperoffload {

using Coverage = std::map<std::string, int>;  // feature -> in how many cases

void cover(const RandomCase& c, const ReferenceResult& result, Coverage& coverage);

// Every feature that `cover` can report for plans.
std::vector<std::string> plan_features();

}  // namespace hyperoffload
