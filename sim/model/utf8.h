// UTF-8 of files and names: where it is broken, and text made fit to show on one line.
#pragma once

#include <string>
#include <string_view>

namespace hyperoffload {

// Byte offset of the first byte that is not well-formed UTF-8 (RFC 3629); npos: all is well.
std::size_t first_invalid_utf8(std::string_view text);

// The text with control characters and ill-formed bytes replaced by '?'.
std::string printable(std::string_view text);

// Line of a byte offset, from 1; lines end with "\n".
int line_of(std::string_view text, std::size_t offset);

}  // namespace hyperoffload
