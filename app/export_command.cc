#include "app/export_command.h"

#include "app/output.h"
#include "sim/export/plan_table.h"
#include "sim/export/schedule.h"
#include "sim/export/vllm_settings.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/read_file.h"

namespace hyperoffload {
namespace {

// A plan says what it is; anything else must be a schedule.
Plan read_plan(const std::string& path, const Graph& graph) {
  const std::string text = read_file(path, "a plan, or hyper-parallel's schedule");
  const std::string source = source_name(path);
  return text.find("\"hyperoffload-plan\"") != std::string::npos ? parse_plan(text, source, graph)
                                                                 : parse_schedule(text, source, graph);
}

Exported exported(const Plan& plan, const Graph& graph, const std::string& format) {
  if (format == "hyper-parallel") return plan_to_schedule(plan, graph);
  if (format == "vllm") return plan_to_vllm_settings(plan, graph);
  if (format == "table") return plan_to_table(plan, graph);
  if (format == "plan") return {plan_to_json(plan, graph), {}};
  throw InputError("--format", in_quotes(format),
                   one_of(format, export_formats()));
}

}  // namespace

std::vector<std::string> export_formats() { return {"hyper-parallel", "plan", "table", "vllm"}; }

int export_command(const ExportCommand& command) {
  refuse_overwriting(command.output, {command.plan, command.trace});
  const Graph graph = load_graph(command.trace);
  const Exported result = exported(read_plan(command.plan, graph), graph, command.format);
  for (const std::string& remark : result.remarks) write_output("", remark + "\n");
  write_output(command.output, result.text);
  return 0;
}

}  // namespace hyperoffload
