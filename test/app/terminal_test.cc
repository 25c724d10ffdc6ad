// What the command says of itself: versions, completions, the manual page, and help when a name is wrong.
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <vector>

#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"

using namespace hyperoffload;

namespace {

std::string shell(const std::string& command, int* status = nullptr) {
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  const int code = pclose(pipe);
  if (status) *status = code;
  return text;
}

bool there_is(const std::string& program) { return !shell("command -v " + program).empty(); }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The sub-commands, by their paths, from the help texts.
std::vector<std::string> sub_commands(const std::string& path = "") {
  const std::string help = run_hyperoffload(path + " --help").out;
  std::vector<std::string> found;
  const std::size_t list = help.find("Subcommands:\n");
  if (list == std::string::npos) return found;
  std::istringstream lines(help.substr(list + 13));
  for (std::string line; std::getline(lines, line) && line.rfind("  ", 0) == 0;) {
    if (line[2] == ' ') continue;  // a description's second line
    const std::string name = path + (path.empty() ? "" : " ") + words_of(line)[0];
    const std::vector<std::string> below = sub_commands(name);
    found.push_back(name);
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

std::vector<std::string> long_options(const std::string& path) {
  std::vector<std::string> found;
  for (std::string word : words_of(run_hyperoffload(path + " --help").out)) {
    if (word.rfind("-", 0) == 0 && word.find(",--") != std::string::npos)
      word = word.substr(word.find(",--") + 1);
    if (word.rfind("--", 0) == 0 && word.size() > 2 && word.find_first_of(".;)") == std::string::npos)
      found.push_back(word);
  }
  return found;
}

// What bash offers behind `typed`, whose last word is being typed.
std::vector<std::string> bash_offers(const std::string& script, const std::string& typed) {
  return words_of(
      shell("bash --norc -c '. " + script + "; COMP_WORDS=(" + typed +
            "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _hyperoffload; echo \"${COMPREPLY[@]}\"'"));
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

TEST_CASE("terminal: --version names the packages it runs with") {
  const CommandResult run = run_hyperoffload("--version");
  CHECK(run.status == 0);
  for (const char* package : {"hyperoffload 0.", "SimGrid ", "yaml-cpp 0.", "nlohmann/json 3.", "CLI11 2.",
                              "fmt ", "zlib 1.", "protobuf ", "Clp 1.", "xxHash 0."})
    CHECK(run.out.find(package) != std::string::npos);
  // The library that is loaded, as the linker finds it: libsimgrid.so.3.32.
  const std::string simgrid =
      shell("ldd " + binary_path() + " | sed -n 's/.*libsimgrid.so.\\([0-9.]*\\) .*/\\1/p' | tr -d '\\n'");
  if (!simgrid.empty()) CHECK(run.out.find("SimGrid " + simgrid) != std::string::npos);
}

TEST_CASE("terminal: bash completes every command and option of the help") {
  TemporaryFolder folder;
  const std::string script = folder / "hyperoffload.bash";
  write_text(script, run_hyperoffload("completion bash").out);
  const std::vector<std::string> commands = sub_commands();
  CHECK(commands.size() >= 10);
  for (const std::string& command : commands) {
    INFO(command);
    const std::size_t space = command.rfind(' ');
    const std::string above = space == std::string::npos ? "" : command.substr(0, space);
    CHECK(has(bash_offers(script, "hyperoffload " + above + " \"\""), command.substr(space + 1)));
    const std::vector<std::string> offered = bash_offers(script, "hyperoffload " + command + " --");
    for (const std::string& option : long_options(command)) {
      INFO(option);
      CHECK(has(offered, option));
    }
  }
  CHECK(bash_offers(script, "hyperoffload simulate t.json --policy on_") ==
        std::vector<std::string>{"on_demand"});
  CHECK(bash_offers(script, "hyperoffload trace import --format kin") == std::vector<std::string>{"kineto"});
  CHECK(bash_offers(script, "hyperoffload export --format v") == std::vector<std::string>{"vllm"});
  CHECK(bash_offers(script, "hyperoffload completion z") == std::vector<std::string>{"zsh"});
  write_text(folder / "machine.yaml", "");
  CHECK(bash_offers(script, "hyperoffload plan --hardware " + (folder / "mach")) ==
        std::vector<std::string>{folder / "machine.yaml"});
  CHECK(bash_offers(script, "hyperoffload check " + (folder / "mach")) ==
        std::vector<std::string>{folder / "machine.yaml"});
}

TEST_CASE("terminal: zsh completes commands, options and values") {
  if (!there_is("zsh")) {
    WARN("skipped: no zsh here");
    return;
  }
  TemporaryFolder folder;
  const std::string script = folder / "_hyperoffload";
  write_text(script, run_hyperoffload("completion zsh").out);
  CHECK(shell("zsh -n " + script + " 2>&1").empty());
  // A terminal of its own in which someone types and presses Tab; what zsh shows is what it offers.
  const auto typed = [&](const std::string& text) {
    write_text(folder / "type.zsh",
               "zmodload zsh/zpty\nzpty z 'TERM=dumb zsh -fi'\n"
               "zpty -w z 'PS1=; fpath=(" +
                   folder.path() +
                   " $fpath); autoload -Uz compinit; compinit -u -D'\n"
                   "zpty -w z 'zstyle \":completion:*\" list-colors \"\"; LISTMAX=1000; setopt no_beep; echo "
                   "READY'\n"
                   "zpty -r z out '*READY*READY*'\nzpty -w -n z $'" +
                   text +
                   "\\t\\t'\nsleep 0.5\n"
                   "zpty -w z $'\\C-u\\necho DO\"\"NE'\nzpty -r z out '*DONE*'\nprint -r -- $out\n");
    return shell("timeout 20 zsh -f " + (folder / "type.zsh") + " 2>&1");
  };
  CHECK(typed("hyperoffload ").find("simulate") != std::string::npos);
  const std::string options = typed("hyperoffload simulate --");
  for (const char* option : {"--policy", "--hardware", "--timeline"}) {
    INFO(options);
    CHECK(options.find(option) != std::string::npos);
  }
  const std::string formats = typed("hyperoffload trace import --format ");
  INFO(formats);
  CHECK(formats.find("activation-trace") != std::string::npos);
}

TEST_CASE(
    "terminal: the manual page has every command, option and exit status, and troff finds nothing wrong") {
  TemporaryFolder folder;
  const std::string page = folder / "hyperoffload.1";
  write_text(page, run_hyperoffload("manual").out);
  std::string text = read_text(page);
  for (std::size_t at; (at = text.find("\\-")) != std::string::npos;) text.replace(at, 2, "-");
  for (const std::string& command : sub_commands()) {
    INFO(command);
    if (sub_commands(command).empty())
      CHECK(text.find(".SS \\fBhyperoffload " + command + "\\fR") != std::string::npos);
    for (const std::string& option : long_options(command))
      CHECK(text.find("\\fB" + option + "\\fR") != std::string::npos);
  }
  for (const char* part : {".SH NAME", ".SH SYNOPSIS", ".SH EXIT STATUS", "Example:"})
    CHECK(text.find(part) != std::string::npos);
  if (there_is("groff")) CHECK(shell("groff -man -ww -z -Tutf8 " + page + " 2>&1").empty());
}

TEST_CASE("terminal: a wrong name on the command line gets the nearest one") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"simulat x", "expected \"simulate\""},
      {"trace genrate x", "expected \"generate\""},
      {"trace", "no sub-command"},
      {"", "no sub-command"},
      {"simulate t.json --hardwear m.yaml --policy graph", "expected \"--hardware\""},
      {"plan t.json --hardware=m.yaml --iteration=2", "expected \"--iterations\""},
      {"trace import --formt kineto x -o y", "expected \"--format\""},
      {"completion bush", "expected \"bash\""},
      {"compare a b --jsn", "expected \"--json\""},
      {"simulate t.json", "--hardware is required"},
  };
  for (const auto& [typed, wanted] : cases) {
    const CommandResult run = run_hyperoffload(typed);
    INFO(typed << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK(run.err.find(wanted) != std::string::npos);
  }
}
