// Output files that are whole or absent: written under a temporary name in the same directory (which
// never ends in .json), then renamed. "-" is standard output. A name that ends in .gz is packed, always to
// the same bytes (no time, no file name inside).
#pragma once

#include <string>

namespace hyperoffload {

// InputError, one sentence, when the file can't be written; nothing is left behind then.
void write_file_atomically(const std::string& path, const std::string& text);

// The text as a gzip file.
std::string gzip(const std::string& text);

}  // namespace hyperoffload
