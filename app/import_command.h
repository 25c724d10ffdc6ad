// `trace import`: a real tool's trace -> layer trace. Remarks go to standard error.
#pragma once

#include <string>
#include <vector>

#include "sim/import/import.h"

namespace hyperoffload {

struct ImportCommand {
  std::string format, output;
  std::vector<std::string> files;
  ImportOptions options;
};

std::string import_format_help();  // the formats and what they read, a line each

int trace_import_command(const ImportCommand& command);

}  // namespace hyperoffload
