// The sub-commands as CLI11 knows them: names, options, help, and which one was chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "app/ask.h"
#include "app/calibrate_command.h"
#include "app/commands.h"
#include "app/compare_command.h"
#include "app/export_command.h"
#include "app/import_command.h"
#include "app/sweep.h"

namespace hyperoffload {

struct TraceOptions {
  std::string input, output;
  std::string by;  // of jitter
  std::uint64_t seed = 1;
  bool json = false;
};

struct SubcommandOptions {
  RunOptions run;
  ReportOptions report;
  SweepOptions sweep;
  AskOptions ask;
  TraceOptions trace;
  ImportCommand import;
  ExportCommand export_plan;
  PlanOptions plan;
  CheckOptions check;
  SimulateOptions simulate;
  CompareCommand compare;
  CalibrateCommand calibrate;
};

using Command = std::function<int()>;  // its exit status

// All of them. Parsing fills `options` and sets `chosen`; both must outlive the app.
void add_subcommands(CLI::App& app, SubcommandOptions& options, Command& chosen);

}  // namespace hyperoffload
