// Which SimGrid this program runs with, e.g. "3.32.0": of the library that is loaded, not of its headers.
#pragma once

#include <string>

namespace hyperoffload {

std::string simgrid_version();

}  // namespace hyperoffload
