// What `--version` prints: this program's version, and those of the packages it runs with.
#pragma once

#include <string>

namespace hyperoffload {

std::string version_text();  // two lines, the last one not ended

}  // namespace hyperoffload
