// Completions as static scripts: every command's options and the values of those that take a name stand in
// them, so that a shell asks nothing of the program while someone types.
#include <fmt/format.h>

#include <algorithm>

#include "app/command_line.h"

namespace hyperoffload {
namespace {

void each_command(const CLI::App& app, const std::function<void(const CLI::App&)>& visit) {
  visit(app);
  for (const CLI::App* command : commands_of(app)) each_command(*command, visit);
}

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

// In single quotes of a shell.
std::string single_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Inside a spec of zsh's _arguments, where brackets and colons part its fields.
std::string zsh_field(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

bool takes_a_file(const CommandOption& option) {
  // Numbers and key=value have no files; everything else that is free text may be one.
  static const std::vector<std::string> kNoFile = {"--set",   "--hbm",   "--iterations", "--jobs",
                                                   "--bound", "--link",  "--border",     "--pixels",
                                                   "--batch", "--device"};
  return std::none_of(option.names.begin(), option.names.end(), [](const std::string& name) {
    return std::find(kNoFile.begin(), kNoFile.end(), name) != kNoFile.end();
  });
}

std::vector<std::string> values_of(const CommandOption& option, const std::string& path,
                                   const OptionValues& values) {
  for (const std::string& name : option.names)
    if (std::vector<std::string> found = values(path, name); !found.empty()) return found;
  return {};
}

std::string function_name(const CLI::App& app) {
  std::string name = "_hyperoffload";
  if (const std::string path = path_of(app); !path.empty()) name += "_" + path;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::string zsh_options(const CLI::App& app, const OptionValues& values) {
  std::string text;
  int place = 0;
  for (const CommandOption& option : options_of(app)) {
    const std::vector<std::string> known = values_of(option, path_of(app), values);
    const std::string action = !known.empty()         ? "(" + join(known, " ") + ")"
                               : takes_a_file(option) ? "_files"
                                                      : " ";
    std::string spec;
    if (option.positional) {
      spec = fmt::format("{}:{}:{}", option.repeated ? "*" : std::to_string(++place),
                         zsh_field(option.names[0]), action);
      text += " \\\n    " + single_quoted(spec);
      continue;
    }
    for (const std::string& name : option.names) {
      spec = option.repeated ? "*" : "(" + join(option.names, " ") + ")";
      spec += name + "[" + zsh_field(option.help) + "]";
      if (!option.takes.empty()) spec += ":" + zsh_field(option.takes) + ":" + action;
      text += " \\\n    " + single_quoted(spec);
    }
  }
  return text;
}

std::string zsh_function(const CLI::App& app, const OptionValues& values) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  std::string text = function_name(app) + "() {\n";
  if (commands.empty()) return text + "  _arguments -S" + zsh_options(app, values) + "\n}\n";
  std::string described, cases;
  for (const CLI::App* command : commands) {
    described += "\n    " + single_quoted(zsh_field(command->get_name()) + ":" + command->get_description());
    cases += fmt::format("\n        {}) {} ;;", command->get_name(), function_name(*command));
  }
  return text + "  local line state\n  local -a commands=(" + described + "\n  )\n  _arguments -C" +
         zsh_options(app, values) + " \\\n    '1: :->command' '*::argument:->arguments'\n" +
         "  case $state in\n    command) _describe -t commands command commands ;;\n" +
         "    arguments)\n      case $line[1] in" + cases + "\n      esac ;;\n  esac\n}\n";
}

}  // namespace

std::string bash_completion(const CLI::App& app, const OptionValues& values) {
  std::string paths, taking, words;
  each_command(app, [&](const CLI::App& command) {
    const std::string path = path_of(command);
    std::vector<std::string> offered;
    for (const CLI::App* below : commands_of(command)) {
      offered.push_back(below->get_name());
      paths += (paths.empty() ? "" : "|") + single_quoted(path + " " + below->get_name());
    }
    bool files = false;
    for (const CommandOption& option : options_of(command)) {
      const std::vector<std::string> known = values_of(option, path, values);
      if (option.positional) {
        if (known.empty()) files = true;
        offered.insert(offered.end(), known.begin(), known.end());
        continue;
      }
      offered.insert(offered.end(), option.names.begin(), option.names.end());
      if (option.takes.empty()) continue;
      std::string pattern;
      for (const std::string& name : option.names)
        pattern += (pattern.empty() ? "" : "|") + single_quoted(path + " " + name);
      taking += fmt::format(
          "    {}) {} return ;;\n", pattern,
          !known.empty() ? "words=" + single_quoted(join(known, " ")) + "; _hyperoffload_words;"
          : takes_a_file(option)
              ? "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\");"
              : "");
    }
    words += fmt::format("    {}) words={}; files={} ;;\n", single_quoted(path),
                         single_quoted(join(offered, " ")), files ? 1 : 0);
  });
  return "# bash completion of hyperoffload; made by `hyperoffload completion bash`.\n"
         "_hyperoffload_words() { mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"); }\n"
         "_hyperoffload() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= word words= "
         "files=0 i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    word=${COMP_WORDS[i]}\n"
         "    case \"$path $word\" in\n      " +
         paths +
         ") path=\"${path:+$path }$word\" ;;\n    esac\n  done\n"
         "  case \"$path $previous\" in\n" +
         taking + "  esac\n  case \"$path\" in\n" + words +
         "  esac\n"
         "  _hyperoffload_words\n"
         "  if ((files)) && [[ $cur != -* ]]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    [[ $cur ]] || COMPREPLY=()\n"
         "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
         "  fi\n"
         "}\n"
         "complete -F _hyperoffload hyperoffload\n";
}

std::string zsh_completion(const CLI::App& app, const OptionValues& values) {
  std::string text = "#compdef hyperoffload\n# Made by `hyperoffload completion zsh`.\n";
  each_command(app, [&](const CLI::App& command) { text += zsh_function(command, values); });
  return text +
         "if [ \"$funcstack[1]\" = _hyperoffload ]; then\n  _hyperoffload \"$@\"\nelse\n  compdef "
         "_hyperoffload hyperoffload\nfi\n";
}

}  // namespace hyperoffload
