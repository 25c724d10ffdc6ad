#include "app/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"
#include "sim/model/nearest_name.h"
#include "sim/model/utf8.h"

namespace hyperoffload {
namespace {

// The words an app would take for sub-commands, down from the top: the deepest app that was named.
const CLI::App* deepest_named(const CLI::App& app, int argc, const char* const* argv, int* next = nullptr) {
  const CLI::App* at = &app;
  int i = 1;
  for (; i < argc; ++i) {
    const std::vector<const CLI::App*> commands = commands_of(*at);
    const auto named = std::find_if(commands.begin(), commands.end(),
                                    [&](const CLI::App* c) { return c->get_name() == argv[i]; });
    if (named == commands.end()) break;
    at = *named;
  }
  if (next) *next = i;
  return at;
}

// CLI11 writes "INT:N" for an INT that a validator calls N.
std::string taken(const std::string& type) { return type.substr(type.rfind(':') + 1); }

bool number_like(const std::string& word) {
  return word.find_first_not_of("-+.0123456789") == std::string::npos;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CommandOption& option : options_of(app))
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

}  // namespace

std::vector<CommandOption> options_of(const CLI::App& app) {
  std::vector<CommandOption> all;
  for (const CLI::Option* option : app.get_options()) {
    CommandOption entry;
    entry.positional = option->get_positional();
    if (entry.positional) entry.names = {option->get_name(true)};
    for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) entry.names.push_back("--" + name);
    entry.help = option->get_description();
    entry.required = option->get_required();
    entry.repeated = option->get_items_expected_max() > 1;
    if (option->get_items_expected_max() > 0 && option->get_type_size() > 0)
      entry.takes = entry.positional ? entry.names[0] : taken(option->get_type_name());
    all.push_back(std::move(entry));
  }
  return all;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string path_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string above = path_of(*app.get_parent());
  return above.empty() ? app.get_name() : above + " " + app.get_name();
}

void check_command_names(const CLI::App& app, int argc, const char* const* argv) {
  int next = 1;
  const CLI::App* at = deepest_named(app, argc, argv, &next);
  const std::vector<const CLI::App*> commands = commands_of(*at);
  if (commands.empty()) return;
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  const std::string where = at == &app ? "the command line" : path_of(*at);
  if (next == argc) throw InputError(where, "no sub-command", one_of("", names));
  if (argv[next][0] == '-' && argv[next][1] != '\0') return;  // --help, --version, or not an option
  throw InputError(where, in_quotes(argv[next]), one_of(argv[next], names));
}

std::string parse_error_sentence(const CLI::App& app, const CLI::ParseError& error, int argc,
                                 const char* const* argv) {
  int next = 1;
  const CLI::App* at = deepest_named(app, argc, argv, &next);
  const std::string path = path_of(*at);
  const std::string help = path.empty() ? "hyperoffload --help" : "hyperoffload " + path + " --help";
  const std::string where = path.empty() ? "" : path + ": ";
  // An unknown option is the likeliest reason, whatever CLI11 stumbled over first.
  const std::vector<std::string> names = option_names(*at);
  for (int i = next; i < argc; ++i) {
    const std::string word = argv[i], name = word.substr(0, word.find('='));
    if (word.size() < 2 || word[0] != '-' || number_like(word)) continue;
    const bool letters = word[1] != '-';  // -o out, -oout
    if (std::find(names.begin(), names.end(), letters ? word.substr(0, 2) : name) == names.end())
      return fmt::format("{}found {}, expected {} (try {})", where, in_quotes(name), one_of(name, names),
                         help);
  }
  return fmt::format("{}{} (try {})", where, printable(error.what()), help);
}

}  // namespace hyperoffload
