// Names the largest tensors of a tier, for messages: "w3" (weight, 1000 B), ...
#pragma once

#include <string>

#include "sim/replay/memory.h"

namespace hyperoffload {

std::string largest_residents(const Graph& graph, const Memory& memory, Tier tier, std::size_t count = 3);

}  // namespace hyperoffload
