// A trace whose engines never overlap, on one engine.
//
// Where every op depends on the one before it in program order (decoding with collectives, say), no two run at once, and
// which engine runs an op changes nothing: not when it starts, nor who waits for what, nor what `check` charges for
// overlapping. So plans and bounds of the trace on one engine are those of the trace; passes that know one engine only can
// work on it. Ids stay the same. O(ops + accesses) if it is one, else up to the first op that need not wait.
#pragma once

#include <optional>

#include "sim/model/graph.h"

namespace hyperoffload {

// None for a trace of one engine, too.
std::optional<Graph> on_one_engine(const Graph& graph);

}  // namespace hyperoffload
