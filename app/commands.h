// The sub-commands: each gets its options parsed, does its job, and returns the exit status 0 or 3.
// Standard output carries results only. "-" as a file name is standard input or output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hyperoffload {

struct MachineOptions {  // of plan, check and simulate
  std::string trace, hardware;
  std::optional<std::string> hbm;
  int iterations = 1;
};

struct TimelineOptions {  // texts with units; empty: no limit
  std::string from, to, min_duration;
  int npu = -1;
};

struct RunOptions {
  TimelineOptions timeline;
  std::string experiment, directory;
  std::vector<std::string> settings;
  int jobs = 1;
};

struct PlanOptions : MachineOptions {
  std::string output, bound = "window";
  bool explain = false;
  std::string explain_name;  // of an op or a tensor; empty: everything
  bool map = false;
  int width = 80;
  int effort = 1;
  std::string max_slowdown;  // "1%": the least HBM that keeps it
  bool addresses = false;    // where in HBM everything lies
  std::string slack = "0%";  // of transfer times
  bool frontier = false;
  int points = 12;  // of the frontier
  bool reorder = false;
  std::string recompute, changed_trace;  // layers that compute again; where the program then goes
  std::vector<std::string> pinned, never_offload;  // two names for the same
};

struct CheckOptions : MachineOptions {
  std::string plan;
};

struct SimulateOptions : MachineOptions {
  std::string plan, policy, output, timeline, bound = "window";
  TimelineOptions show;  // of the timeline
  bool fold = false;
};

struct ReportOptions {
  std::string directory, output;
};

int run_command(const RunOptions& options);
int report_command(const ReportOptions& options);
int trace_generate_command(const std::string& workload, const std::string& output);
int trace_jitter_command(const std::string& trace, const std::string& by, std::uint64_t seed, const std::string& output);
int trace_info_command(const std::string& trace, bool json);
int plan_command(const PlanOptions& options);
int check_command(const CheckOptions& options);
int simulate_command(const SimulateOptions& options);

}  // namespace hyperoffload
