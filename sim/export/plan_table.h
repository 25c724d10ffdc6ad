// A plan as a table for a person: an action a line, in the order of the file, and what it moves in all.
#pragma once

#include "sim/export/schedule.h"

namespace hyperoffload {

Exported plan_to_table(const Plan& plan, const Graph& graph);

}  // namespace hyperoffload
