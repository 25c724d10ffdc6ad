// `export`: a plan in another tool's words, or such words as a plan. What is lost goes to standard error.
#pragma once

#include <string>

namespace hyperoffload {

struct ExportCommand {
  std::string plan, trace, format, output = "-";
};

int export_command(const ExportCommand& command);

}  // namespace hyperoffload
