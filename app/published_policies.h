// Rows of the table of policies: re-creations of published systems (unified memory, DeepUM, Capuchin,
// FlashNeuron, G10).
#pragma once

#include <vector>

#include "app/policy_table.h"

namespace hyperoffload {

std::vector<PolicyEntry> published_policies();

}  // namespace hyperoffload
