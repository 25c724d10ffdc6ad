// What can be told from the command line's own description (a CLI11 app and its sub-commands): shell
// completions, the manual page, and the sentence for a command line that doesn't parse. Nothing in them is
// written twice, so none of them can get stale.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace hyperoffload {

// The values an option of a command ("trace import", "--format") takes; empty: files, or anything.
using OptionValues =
    std::function<std::vector<std::string>(const std::string& command, const std::string& option)>;

std::string bash_completion(const CLI::App& app, const OptionValues& values);
std::string zsh_completion(const CLI::App& app, const OptionValues& values);
std::string manual_page(const CLI::App& app, const std::string& version);  // troff, man(7)

// Before parsing: InputError, with the nearest name, for a word that should be a sub-command and isn't.
void check_command_names(const CLI::App& app, int argc, const char* const* argv);
// After parsing failed: one sentence, which names the command, the option and the nearest one.
std::string parse_error_sentence(const CLI::App& app, const CLI::ParseError& error, int argc,
                                 const char* const* argv);

// ---- for those who walk an app

struct CommandOption {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its name
  std::string help;
  std::string takes;  // what stands behind it; empty: a flag
  bool positional = false, required = false, repeated = false;
};
std::vector<CommandOption> options_of(const CLI::App& app);
std::vector<const CLI::App*> commands_of(const CLI::App& app);  // in the order they were added
std::string path_of(const CLI::App& app);                       // "trace import"; "" for the top

}  // namespace hyperoffload
