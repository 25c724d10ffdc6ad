// `export`: a plan in another tool's words, or such words as a plan. What is lost goes to standard error.
#pragma once

#include <string>
#include <vector>

namespace hyperoffload {

struct ExportCommand {
  std::string plan, trace, format, output = "-";
};

std::vector<std::string> export_formats();

int export_command(const ExportCommand& command);

}  // namespace hyperoffload
