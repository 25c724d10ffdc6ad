#include "app/import_command.h"

#include <fmt/format.h>

#include "app/output.h"

namespace hyperoffload {

std::string import_format_help() {
  std::string help;
  for (const ImportFormat& format : import_formats())
    help += fmt::format("  {:<18}{}: {}\n", format.name, format.files, format.summary);
  return help;
}

int trace_import_command(const ImportCommand& command) {
  refuse_overwriting(command.output, command.files);
  const ImportResult result = import_trace(command.format, command.files, command.options);
  for (const std::string& remark : result.remarks) write_output("", remark + "\n");
  write_output(command.output, graph_to_json(result.graph));
  return 0;
}

}  // namespace hyperoffload
