// The command `hyperoffload`: parses the options of a sub-command, runs it, and turns errors into one
// sentence and an exit status (0 done, 1 a fault of ours, 2 wrong input, 3 it can't be done).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <sstream>

#include "app/calibrate_command.h"
#include "app/command_line.h"
#include "app/experiment.h"
#include "app/export_command.h"
#include "app/import_command.h"
#include "app/output.h"
#include "app/policy_spec.h"
#include "app/subcommands.h"
#include "app/version.h"
#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

// File names and the like may hold anything: a message is shown as it stands but for what would move the
// cursor.
std::string printable_lines(const std::string& message) {
  std::string text;
  for (std::size_t from = 0; from <= message.size();) {
    const std::size_t end = std::min(message.find('\n', from), message.size());
    text += (from ? "\n" : "") + printable(message.substr(from, end - from));
    from = end + 1;
  }
  return text;
}

// Of all commands: a file is written where a name says, not where none does.
void refuse_empty_outputs(CLI::App& app) {
  const CLI::Validator named(
      [](std::string& text) { return text.empty() ? std::string("found \"\", expected a name") : std::string(); }, "");
  for (CLI::Option* option : app.get_options())
    if (option->check_sname("o")) option->check(named);
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_outputs(*command);
}

// What an option takes, where it is a name of a list; "NAME" stands for what may follow it.
std::vector<std::string> option_values(const std::string& command, const std::string& option) {
  std::vector<std::string> names;
  if (option == "--policy")
    for (const PolicyInfo& info : known_policies()) names.push_back(info.name);
  if (command == "trace import" && option == "--format")
    for (const ImportFormat& format : import_formats()) names.push_back(format.name);
  if (command == "export" && option == "--format") names = export_formats();
  if (command == "calibrate" && option == "--format") names = calibrate_formats();
  if (command == "completion" && option == "SHELL") names = {"bash", "zsh"};
  return names;
}

int completion_command(const CLI::App& app, const std::string& shell) {
  if (shell == "bash")
    write_output("-", bash_completion(app, option_values));
  else if (shell == "zsh")
    write_output("-", zsh_completion(app, option_values));
  else
    throw InputError("completion", in_quotes(shell), one_of(shell, {"bash", "zsh"}));
  return 0;
}

void add_completion_and_manual(CLI::App& app, std::string& shell, Command& chosen) {
  auto* completion = app.add_subcommand("completion", "a shell's completion script, on standard output");
  completion->add_option("SHELL", shell, "bash or zsh")->required();
  completion->footer(
      "Example: hyperoffload completion bash > ~/.local/share/bash-completion/completions/hyperoffload");
  completion->callback([&] { chosen = [&] { return completion_command(app, shell); }; });
  auto* manual = app.add_subcommand("manual", "the manual page (troff), on standard output");
  manual->footer("Example: hyperoffload manual | man -l -");
  manual->callback([&] {
    chosen = [&] {
      write_output("-", manual_page(app, HYPEROFFLOAD_VERSION));
      return 0;
    };
  });
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Simulates SuperNode hardware and plans what moves between HBM and a shared memory pool.",
               "hyperoffload");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer("Example: hyperoffload run configs/experiments/quickstart.yaml");
  Command chosen;
  SubcommandOptions options;
  options.sweep.program = argv[0];
  std::string shell;
  add_subcommands(app, options, chosen);
  add_completion_and_manual(app, shell, chosen);
  refuse_empty_outputs(app);
  for (int i = 1; i + 1 < argc; ++i)  // CLI11 would take it for --explain alone
    if (std::string(argv[i]) == "--explain" && argv[i + 1][0] == '\0')
      throw InputError("--explain", "\"\"", "the name of an op or a tensor, or no name");
  check_command_names(app, argc, argv);  // CLI11 would only say that a sub-command is required
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    std::ostringstream text;
    const int code = app.exit(e, text, text);
    write_output("-", text.str());
    return code;
  } catch (const CLI::ParseError& e) {
    std::fputs(fmt::format("hyperoffload: {}\n", parse_error_sentence(app, e, argc, argv)).c_str(), stderr);
    return 2;
  }
  return chosen();
}

}  // namespace
}  // namespace hyperoffload

int main(int argc, char** argv) {
  using namespace hyperoffload;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is a write error with a sentence
  const auto say = [](const char* prefix, const std::exception& e) {
    std::fputs(fmt::format("hyperoffload: {}{}\n", prefix, printable_lines(e.what())).c_str(), stderr);
  };
  try {
    return parse_and_run(argc, argv);
  } catch (const InputError& e) {
    say("", InputError(printable(e.what())));  // one line, even if a name has several
    return 2;
  } catch (const InfeasibleError& e) {
    say("", e);
    return 3;
  } catch (const std::bad_alloc& e) {
    say("out of memory: ", e);
    return 1;
  } catch (const std::exception& e) {
    say("a fault of ours, please report it: ", e);
    return 1;
  }
}
