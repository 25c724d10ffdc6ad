// "1 event", "3 events".
#pragma once

#include <cstddef>
#include <string>

namespace hyperoffload {

// `plural` only where it isn't an s.
std::string count_of(std::size_t count, const std::string& thing, const std::string& plural = "");

}  // namespace hyperoffload
