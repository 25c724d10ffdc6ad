// The manual page, in troff's man macros. A line of text never begins with '.' or '\'': troff would take
// it for a request.
#include <fmt/format.h>

#include <algorithm>

#include "app/command_line.h"

namespace hyperoffload {
namespace {

std::string troff(const std::string& text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
    at_line_start = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '`')
      out += "\\(ga";
    else
      out += c;
  }
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + troff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + troff(text) + "\\fR"; }

std::string synopsis(const CLI::App& command) {
  std::string line = bold("hyperoffload " + path_of(command));
  bool options = false;
  for (const CommandOption& option : options_of(command)) {
    if (option.positional)
      line += " " + italic(option.names[0]) + (option.repeated ? "..." : "");
    else if (option.required)
      line += " " + bold(option.names.back()) + " " + italic(option.takes);
    else
      options = true;
  }
  return line + (options ? " [" + italic("options") + "]" : "");
}

std::string option_entry(const CommandOption& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + (option.positional ? italic(name) : bold(name));
  if (!option.positional && !option.takes.empty()) names += " " + italic(option.takes);
  return ".TP\n" + names + "\n" + troff(option.help.empty() ? "(no description)" : option.help) + "\n";
}

// A footer's last line is the example; what stands above it (a list of formats) keeps its lines.
std::string footer_text(std::string footer) {
  while (!footer.empty() && footer.back() == '\n') footer.pop_back();
  if (footer.empty()) return "";
  const std::string mark = "Example: ";
  const std::size_t example = footer.rfind(mark);
  std::string text, above = footer.substr(0, example);
  while (!above.empty() && above.back() == '\n') above.pop_back();
  if (!above.empty()) text += ".PP\n.nf\n" + troff(above) + "\n.fi\n";
  if (example != std::string::npos)
    text += ".PP\nExample:\n.PP\n.RS 4\n.nf\n" + troff(footer.substr(example + mark.size())) + "\n.fi\n.RE\n";
  return text;
}

void add_command(std::string& text, const CLI::App& command) {
  const std::vector<const CLI::App*> below = commands_of(command);
  if (below.empty()) {
    text += ".SS " + bold("hyperoffload " + path_of(command)) + "\n" + troff(command.get_description()) +
            "\n.PP\n" + synopsis(command) + "\n";
    for (const CommandOption& option : options_of(command)) text += option_entry(option);
    text += footer_text(command.get_footer());
  }
  for (const CLI::App* next : below) add_command(text, *next);
}

}  // namespace

std::string manual_page(const CLI::App& app, const std::string& version) {
  std::string text = ".\\\" Made by `hyperoffload manual`.\n.TH HYPEROFFLOAD 1 \"\" \"hyperoffload " +
                     version + "\" \"User Commands\"\n.SH NAME\nhyperoffload \\- " +
                     "what fits in HBM beside a shared memory pool, and at which speed\n.SH SYNOPSIS\n" +
                     bold("hyperoffload") + " " + italic("command") + " [" + italic("options") +
                     "]\n.SH DESCRIPTION\n" + troff(app.get_description()) + "\nA file name of " + bold("-") +
                     " is standard input or output. Standard output carries results only.\n.PP\n" +
                     "The same input gives the same bytes.\n.SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) add_command(text, *command);
  text += ".SH OPTIONS\n";
  for (const CommandOption& option : options_of(app)) text += option_entry(option);
  return text +
         ".SH EXIT STATUS\n"
         ".TP\n0\ndone\n"
         ".TP\n2\nthe input is wrong: one sentence says where, what was found and what was expected; nothing "
         "is written\n"
         ".TP\n3\nthe input is right, but the job can\\(aqt be done: what is short, and where\n"
         ".TP\n1\na fault of the program\n";
}

}  // namespace hyperoffload
