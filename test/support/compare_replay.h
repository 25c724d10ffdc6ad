// Compares a replay's RunRecord with the reference's result: the first difference as one readable
// sentence, or "" when they agree.
//
// Times agree within 1e-9 of the larger one plus ten instants (1e-11 s): events less than an instant
// apart count as one, and either side may stamp it with any of theirs. Peaks are compared exactly,
// bytes moved within one byte a transfer that crosses an end of the last iteration (rounding).
// A transfer still in flight at the last op's end is compared by its start only. `record` must be of
// one NPU and `full`.
#pragma once

#include <string>

#include "sim/report/run_record.h"
#include "test/support/reference_replay.h"

namespace hyperoffload {

std::string first_difference(const RunRecord& record, const ReferenceResult& reference, const Graph& graph);

// The reference's result in the shape of a record, for tests of the comparison and of what reads records.
RunRecord to_record(const ReferenceResult& reference);

}  // namespace hyperoffload
