#include "app/subcommands.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "app/command_line.h"
#include "app/experiment.h"
#include "app/output.h"
#include "app/policy_spec.h"
#include "planner/memory_map.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

// CLI11's own messages for a number out of range print a type's name; this says what was expected.
CLI::Validator whole_number(int min, int max) {
  return CLI::Validator(
      [min, max](std::string& text) {
        int value = 0;
        const bool fine = CLI::detail::lexical_cast(text, value) && value >= min && value <= max;
        return fine ? std::string()
                    : fmt::format("found {}, expected a whole number from {} to {}", shortened(text), min,
                                  max);
      },
      "N");
}

CLI::Validator seed_number() {
  return CLI::Validator(
      [](std::string& text) {
        std::uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        return error == std::errc() && rest == end
                   ? std::string()
                   : fmt::format("found {}, expected a whole number from 0 to 18446744073709551615", shortened(text));
      },
      "N");
}

CLI::Validator count_from_1(int max) { return whole_number(1, max); }

void add_machine_options(CLI::App& command, MachineOptions& options) {
  command.add_option("TRACE", options.trace, "layer trace (JSON, may be gzipped; - is standard input)")
      ->required();
  command.add_option("--hardware", options.hardware, "machine file (YAML)")->required();
  command.add_option("--hbm", options.hbm, "replaces the machine's HBM capacity, e.g. 48GiB");
  command.add_option("--iterations", options.iterations, "times the trace runs in a row (1: one cold pass)")
      ->check(count_from_1(kMaxIterations));
}

void add_timeline_options(CLI::App& command, TimelineOptions& options) {
  command.add_option("--timeline-from", options.from, "timelines: only what reaches beyond this time, e.g. 20ms");
  command.add_option("--timeline-to", options.to, "timelines: only what starts before this time");
  command.add_option("--timeline-npu", options.npu, "timelines: only this NPU, counted from 0")
      ->check(whole_number(0, std::numeric_limits<int>::max()));
  command.add_option("--timeline-min-duration", options.min_duration,
                     "timelines: only ops, waits and transfers that take this long, e.g. 5us");
}

void add_run(CLI::App& app, RunOptions& options, Command& chosen) {
  auto* run =
      app.add_subcommand("run", "the main job: workload -> plan -> replay, every listed policy side by side");
  run->add_option("EXPERIMENT", options.experiment, "experiment file (YAML)")->required();
  run->add_option("-o,--output", options.directory,
                  "folder for results.json, results.csv, plans and timelines");
  run->add_option("--set", options.settings, "key=value laid over the experiment; repeatable")
      ->take_all()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_timeline_options(*run, options.timeline);
  run->add_option("--jobs", options.jobs, "policies run at once")->check(count_from_1(1024));
  run->footer(
      "Example: hyperoffload run configs/experiments/quickstart.yaml -o out/quickstart --set hbm=30GiB");
  run->callback([&] { chosen = [&] { return run_command(options); }; });
}

void add_report(CLI::App& app, ReportOptions& options, Command& chosen) {
  auto* report =
      app.add_subcommand("report", "the results of `run` or `sweep` -> one self-contained HTML page");
  report->add_option("DIR", options.directory, "folder that `run -o` or `sweep -o` wrote")->required();
  report->add_option("-o,--output", options.output,
                     "page to write (default: DIR/report.html); - is standard output");
  report->footer("Example: hyperoffload report out/quickstart -o report.html");
  report->callback([&] { chosen = [&] { return report_command(options); }; });
}

void add_sweep(CLI::App& app, SweepOptions& options, Command& chosen) {
  auto* sweep = app.add_subcommand("sweep",
                                   "an experiment at every point of its `sweep:` axes; run again, it "
                                   "does what is missing or changed");
  sweep->add_option("EXPERIMENT", options.experiment, "experiment file (YAML) with `sweep:`")->required();
  sweep->add_option("-o,--output", options.directory, "folder for results.csv and a folder a point")
      ->required();
  sweep->add_option("--set", options.settings, "key=value laid over the experiment; repeatable")
      ->take_all()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sweep->add_option("--jobs", options.jobs, "policies and points run at once")->check(count_from_1(1024));
  auto* shard = sweep->add_option("--shard", options.shard, "I/N: the I-th of N shares of the points, for job arrays");
  auto* list = sweep->add_flag("--list", options.list, "print one command a point, and run none");
  sweep->add_flag("--prune", options.prune, "remove folders of points that are no longer in the axes, once all are there")
      ->excludes(shard)
      ->excludes(list);
  sweep->footer("Example: hyperoffload sweep configs/experiments/prefill-sweep.yaml -o out/sweep --jobs 2");
  sweep->callback([&] { chosen = [&] { return sweep_command(options); }; });
}

struct AskQuestion {
  const char *name, *help, *example;
};
constexpr AskQuestion kQuestions[] = {
    {"hbm", "the least HBM for a target", "configs/experiments/quickstart.yaml --max-slowdown 0.1%"},
    {"bandwidth", "the least pool bandwidth for a target", "configs/experiments/llama-3.1-8b-train.yaml --max-slowdown 1%"},
    {"sequence", "the longest sequence that meets a target", "configs/experiments/llama-3.1-8b-decode.yaml --max-slowdown 50%"},
    {"batch", "the largest batch that meets a target", "configs/experiments/llama-3.1-8b-decode.yaml --max-slowdown 50%"},
    {"layers", "how many layers' weights may live in the pool", "configs/experiments/llama-3.1-8b-decode.yaml --min-tokens 100"},
    {"machine", "the cheapest machine of a price list that meets a target",
     "configs/experiments/llama-3.1-8b-decode.yaml --prices configs/prices.yaml --min-tokens 100"}};

void add_question(CLI::App& ask, const AskQuestion& question, AskOptions& options, Command& chosen) {
  auto* command = ask.add_subcommand(question.name, question.help);
  const std::string name = question.name;
  command->add_option("EXPERIMENT", options.experiment, "experiment file (YAML); its `policies` are not used")->required();
  command->add_option("--set", options.settings, "key=value laid over the experiment; repeatable")
      ->take_all()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--max-slowdown", options.max_slowdown,
                      "at most so much slower than ideal, like 1% (default, without another target: 0%)");
  command->add_option("--max-time", options.max_time, "at most so long an iteration, like 50ms");
  command->add_option("--min-tokens", options.min_tokens, "at least so many tokens a second");
  command->add_flag("--json", options.json, "as JSON, with every run that was tried");
  if (name != "layers") command->add_option("--policy", options.policy, "policy that runs it (default: graph)");
  if (name != "layers" && name != "machine")
    command->add_option("--tolerance", options.tolerance, "how near the answer is to the limit (default: 0.1%; 0: exact)");
  if (name == "sequence" || name == "batch")
    command->add_option("--step", options.step, "only multiples of it")->check(count_from_1(1 << 30));
  if (name == "layers") command->add_option("--layers", options.layers, "no search: the figures of so many");
  if (name == "machine") command->add_option("--prices", options.prices, "price list (YAML)")->required();
  command->footer("Example: hyperoffload ask " + name + " " + question.example);
  command->callback([&options, &chosen, name] {
    options.question = name;
    chosen = [&options] { return ask_command(options); };
  });
}

void add_ask(CLI::App& app, AskOptions& options, Command& chosen) {
  auto* ask = app.add_subcommand("ask", "questions of people who buy, rent or fill machines; an answer names what binds");
  ask->require_subcommand(1);
  for (const AskQuestion& question : kQuestions) add_question(*ask, question, options, chosen);
}

void add_import(CLI::App& trace, ImportCommand& command, Command& chosen) {
  auto* import = trace.add_subcommand("import", "a real tool's trace -> layer trace");
  import->add_option("--format", command.format, "what the files are; the formats are listed below")
      ->required();
  import->add_option("FILE", command.files, "the files of the trace, each may be gzipped")->required();
  import
      ->add_option("-o,--output", command.output,
                   "layer trace to write; gzipped if it ends in .gz; - is standard output")
      ->required();
  for (const ImportOption& option : import_options())
    import->add_option("--" + option.name, command.options.*option.value, option.help);
  import->footer("Formats:\n" + import_format_help() +
                 "Example: hyperoffload trace import --format g10 BERT_Base.txt cudnn128.txt "
                 "cudnn128Workspace.txt -o bert.json");
  import->callback([&] { chosen = [&] { return trace_import_command(command); }; });
}

void add_trace(CLI::App& app, TraceOptions& options, ImportCommand& import, Command& chosen) {
  auto* trace = app.add_subcommand("trace", "makes layer traces and says what is in them");
  trace->require_subcommand(1);
  auto* generate =
      trace->add_subcommand("generate", "model + phase + parallelism -> layer trace of one rank");
  generate->add_option("WORKLOAD", options.input, "workload file (YAML)")->required();
  generate
      ->add_option("-o,--output", options.output,
                   "layer trace to write; gzipped if it ends in .gz; - is standard output")
      ->required();
  generate->footer(
      "Example: hyperoffload trace generate configs/workloads/llama-3.1-8b-prefill.yaml -o prefill.json");
  generate->callback([&] { chosen = [&] { return trace_generate_command(options.input, options.output); }; });
  add_import(*trace, import, chosen);
  auto* jitter = trace->add_subcommand("jitter", "the same trace with kernels that take other times, by chance");
  jitter->add_option("TRACE", options.input, "layer trace (JSON, may be gzipped; - is standard input)")->required();
  jitter->add_option("--by", options.by, "each op takes up to so much more or less, such as 10%")->required();
  jitter->add_option("--seed", options.seed, "another number, other times (default 1)")->check(seed_number());
  jitter
      ->add_option("-o,--output", options.output,
                   "layer trace to write; gzipped if it ends in .gz; - is standard output")
      ->required();
  jitter->footer("Example: hyperoffload trace jitter prefill.json --by 10% --seed 3 -o jittered.json");
  jitter->callback(
      [&] { chosen = [&] { return trace_jitter_command(options.input, options.by, options.seed, options.output); }; });
  auto* info =
      trace->add_subcommand("info", "counts, bytes by kind, FLOPs, the peak of live bytes and where it is");
  info->add_option("TRACE", options.input, "layer trace (JSON, may be gzipped; - is standard input)")
      ->required();
  info->add_flag("--json", options.json, "as JSON");
  info->footer("Example: hyperoffload trace info prefill.json --json");
  info->callback([&] { chosen = [&] { return trace_info_command(options.input, options.json); }; });
}

// Its name may be left out; then what stands behind it may be the trace.
void add_explain(CLI::App& plan, PlanOptions& options) {
  CLI::Option* explain =
      plan.add_option("--explain", options.explain_name,
                      "why each transfer is there, and why then; of one OP or TENSOR all that "
                      "concerns it");
  explain->expected(0, 1)->type_name("NAME");
  plan.get_option("TRACE")->required(false);
  plan.parse_complete_callback([&options, explain] {
    options.explain = explain->count() > 0;
    if (options.trace.empty()) std::swap(options.trace, options.explain_name);
    if (options.trace.empty()) throw CLI::RequiredError("TRACE");
  });
}

void add_plan(CLI::App& app, PlanOptions& options, Command& chosen) {
  auto* plan = app.add_subcommand("plan", "the graph-driven planner alone");
  add_machine_options(*plan, options);
  plan->add_option("-o,--output", options.output, "plan to write (default: standard output, unless --explain or --map is given)");
  add_explain(*plan, options);
  auto* map = plan->add_flag("--map", options.map, "draws who is in HBM when, by kind and by tensor");
  plan->add_option("--width", options.width, "characters a line of --map (default 80)")
      ->needs(map)
      ->check(whole_number(kLeastMapWidth, 1000));
  plan->add_option("--bound", options.bound, "lower limits: window (cheap) or lp (tight)");
  plan->add_option("--effort", options.effort, "0: one pass, 1: a search (default), 2: a thorough one")
      ->check(whole_number(0, 2));
  auto* slowdown = plan->add_option("--max-slowdown", options.max_slowdown,
                                    "plans for the least HBM that keeps this slowdown, such as 1%");
  plan->add_flag("--addresses", options.addresses,
                 "gives everything in HBM an address; HBM capacity then holds for the height of the arena");
  plan->add_option("--slack", options.slack,
                   "places transfers as if they took so much longer, such as 10%, against kernels that run faster than "
                   "the trace says");
  auto* frontier = plan->add_flag("--frontier", options.frontier,
                                  "HBM against time, point by point, instead of a plan (JSON; CSV if -o ends in .csv)");
  frontier->excludes(slowdown);
  plan->add_flag("--reorder", options.reorder, "lets ops move where dependencies allow it")
      ->excludes(slowdown)
      ->excludes(frontier);
  auto* recompute =
      plan->add_option("--recompute", options.recompute,
                       "auto, or a number: so many layers compute again what their backward ops need; the plan is for "
                       "--changed-trace")
          ->check([](const std::string& text) {
            const bool number = !text.empty() && text.size() < 7 && text[0] != '0' &&
                                text.find_first_not_of("0123456789") == std::string::npos;
            return text == "auto" || number ? "" : "found " + text + ", expected auto or a whole number from 1 on";
          })
          ->excludes(frontier)
          ->excludes(slowdown);
  auto* changed = plan->add_option("--changed-trace", options.changed_trace, "where to write the trace that --recompute makes");
  recompute->needs(changed);
  changed->needs(recompute);
  for (auto& [name, list] : {std::pair{"--pin", &options.pinned}, {"--never-offload", &options.never_offload}})
    plan->add_option(name, *list,
                     list == &options.pinned ? "a tensor, a pattern with * and ?, or a kind that never leaves HBM; repeatable"
                                             : "the same as --pin")
        ->take_all()
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  plan->add_option("--points", options.points, "capacities tried for --frontier (default 12)")
      ->needs(frontier)
      ->check(whole_number(2, 1000));
  plan->footer(
      "Example: hyperoffload plan prefill.json --hardware configs/hardware/toy.yaml --hbm 30GiB -o plan.json "
      "--explain");
  plan->callback([&] { chosen = [&] { return plan_command(options); }; });
}

void add_check(CLI::App& app, CheckOptions& options, Command& chosen) {
  auto* check = app.add_subcommand(
      "check", "independent validator: yes (exit 0), or every rule broken and where (exit 3)");
  add_machine_options(*check, options);
  check->add_option("PLAN", options.plan, "plan (JSON)")->required();
  check->footer(
      "Example: hyperoffload check prefill.json plan.json --hardware configs/hardware/toy.yaml --hbm 30GiB");
  check->callback([&] { chosen = [&] { return check_command(options); }; });
}

void add_simulate(CLI::App& app, SimulateOptions& options, Command& chosen) {
  auto* simulate = app.add_subcommand("simulate", "one replay of a plan or a policy");
  add_machine_options(*simulate, options);
  simulate->add_option("--plan", options.plan, "plan (JSON)");
  simulate->add_option("--policy", options.policy, "NAME[:key=value,...]; the policies are listed below");
  simulate->add_option("-o,--output", options.output, "result to write (JSON); - is standard output");
  simulate->add_option("--timeline", options.timeline,
                       "Chrome trace to write, for Perfetto; gzipped if it ends in .gz");
  add_timeline_options(*simulate, options.show);
  simulate->add_option("--bound", options.bound, "lower limits: window (cheap) or lp (tight)");
  simulate->add_flag("--fold", options.fold,
                     "one NPU stands for all that take part; refused where that would not be exact");
  simulate->footer(
      "Policies, each with its options and their defaults:\n" + policy_help() +
      "Example: hyperoffload simulate prefill.json --hardware configs/hardware/toy.yaml --policy "
      "on_demand:evict=oldest -o result.json");
  simulate->callback([&] { chosen = [&] { return simulate_command(options); }; });
}

void add_export(CLI::App& app, ExportCommand& command, Command& chosen) {
  auto* export_plan =
      app.add_subcommand("export", "a plan in another tool's words, or hyper-parallel's schedule as a plan");
  export_plan->add_option("PLAN", command.plan, "plan, or hyper-parallel's schedule (JSON)")->required();
  export_plan->add_option("--trace", command.trace, "the layer trace that the plan is for")->required();
  export_plan
      ->add_option("--format", command.format,
                   "hyper-parallel (its schedule), vllm (its offload settings), table (for a person), plan")
      ->required();
  export_plan->add_option("-o,--output", command.output, "file to write (default: standard output)");
  export_plan->footer(
      "Example: hyperoffload export plan.json --trace prefill.json --format hyper-parallel -o schedule.json");
  export_plan->callback([&] { chosen = [&] { return export_command(command); }; });
}

void add_compare(CLI::App& app, CompareCommand& command, Command& chosen) {
  auto* compare = app.add_subcommand("compare", "two results, or two sets of them, beside each other");
  compare->add_option("A", command.a, "result.json, results.json, or a folder with results in it")
      ->required();
  compare->add_option("B", command.b, "what A is compared with")->required();
  compare->add_flag("--all", command.all, "every field that differs, details too");
  compare->add_flag("--json", command.json, "every field that differs, as JSON");
  compare->footer("Example: hyperoffload compare out/before out/after");
  compare->callback([&] { chosen = [&] { return compare_command(command); }; });
}

void add_calibrate(CLI::App& app, CalibrateCommand& command, Command& chosen) {
  auto* calibrate =
      app.add_subcommand("calibrate", "a measured trace -> efficiencies and link figures of a machine file");
  calibrate
      ->add_option("FILE", command.files, "measured traces, each may be gzipped; all are fitted together")
      ->required();
  calibrate->add_option("--hardware", command.hardware, "machine file (YAML): its declared peaks and link")
      ->required();
  calibrate->add_option("--format", command.format,
                        "what the files are: trace (layer traces whose ops have duration_us beside flops or "
                        "hbm_bytes; default), kineto (copies, and kernels of operators with shapes)");
  calibrate->add_option(
      "--link", command.link,
      "what no copy can exceed, e.g. 64GB/s (default: the machine's link); faster ones are left out");
  calibrate->add_option("-o,--output", command.output, "file for the fitted part of a machine file (YAML)");
  calibrate->footer(
      "Example: hyperoffload calibrate profile.json.gz --format kineto --hardware "
      "configs/hardware/h200-pcie5.yaml");
  calibrate->callback([&] { chosen = [&] { return calibrate_command(command); }; });
}

}  // namespace

void add_subcommands(CLI::App& app, SubcommandOptions& options, Command& chosen) {
  add_run(app, options.run, chosen);
  add_report(app, options.report, chosen);
  add_sweep(app, options.sweep, chosen);
  add_ask(app, options.ask, chosen);
  add_trace(app, options.trace, options.import, chosen);
  add_plan(app, options.plan, chosen);
  add_check(app, options.check, chosen);
  add_simulate(app, options.simulate, chosen);
  add_export(app, options.export_plan, chosen);
  add_compare(app, options.compare, chosen);
  add_calibrate(app, options.calibrate, chosen);
}

}  // namespace hyperoffload
