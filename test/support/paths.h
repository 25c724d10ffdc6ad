// Where the tests find things. Functions of one source file rather than definitions on the command line,
// so that a compiler cache serves every clone.
#pragma once

#include <string>

namespace hyperoffload {

std::string source_dir();       // of the project
std::string shared_data_dir();  // real files of other tools; absent on most machines. HYPEROFFLOAD_SHARED_DATA replaces it
std::string binary_path();      // of the built `hyperoffload`

}  // namespace hyperoffload
