// PyTorch's names of element types, as its profiler and its collectives write them.
//
// "BFloat16", "c10::BFloat16" and "long int" alike: case, blanks and what stands before the last colon don't count. In bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hyperoffload {

// Letters and digits alone, in lower case.
std::string bare_name(const std::string& text);

// Of one element; none: a type unknown here.
std::optional<std::int64_t> bytes_of_torch_type(const std::string& type);

}  // namespace hyperoffload
