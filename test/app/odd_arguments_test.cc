// Every sub-command with what nobody means to give it: each file, and each option that takes a value, in turn
// as something empty, missing, a folder, binary, endless, or with characters that would move the cursor.
// Never a fault of ours, one line, nothing on standard output, no file.
#include <algorithm>
#include <sstream>
#include <vector>

#include "test/support/catch.h"
#include "test/support/command.h"
#include "test/support/paths.h"

using namespace hyperoffload;

namespace {

struct Odd {
  TemporaryFolder folder;
  std::string trace = folder / "t.json", machine = folder / "m.yaml", plan = folder / "p.json",
              result = folder / "r.json", never = folder / "never.json";
  std::vector<std::string> values;

  Odd() {
    const std::string source = source_dir();
    std::filesystem::copy_file(source + "/traces/chain-100.json", trace);
    std::filesystem::copy_file(source + "/configs/hardware/toy.yaml", machine);
    run_hyperoffload("plan " + trace + " --hardware " + machine + " -o " + plan);
    run_hyperoffload("simulate " + trace + " --hardware " + machine + " --policy resident -o " + result);
    std::filesystem::create_directory(folder / "folder");
    write_text(folder / "empty", "");
    std::string binary;
    for (int i = 0; i < 1024; ++i) binary += static_cast<char>(i * 37);
    write_text(folder / "binary", binary);
    write_text(folder / "deep", std::string(100000, '['));
    write_text(folder / "cut.gz", "\x1f\x8b\x08");
    values = {"''",
              folder / "folder",
              folder / "empty",
              folder / "binary",
              folder / "deep",
              folder / "cut.gz",
              folder / "missing",
              "/dev/zero",
              "'a\nb\033[31m\xff'",
              "-"};
  }
};

// What is wrong with how it ended, if anything.
std::string complaint(const Odd& odd, const std::string& arguments, bool may_work) {
  const CommandResult run = run_hyperoffload(arguments);
  std::string text;
  if (run.status == 0) {
    if (!may_work) text += " worked";
  } else {
    if (run.err.find("built without uPlot") != std::string::npos) return "";  // `report` needs npm's packages
    if (run.status != 2 && run.status != 3) text += " exit " + std::to_string(run.status);
    if (std::count(run.err.begin(), run.err.end(), '\n') != 1) text += " lines";
    if (std::any_of(run.err.begin(), run.err.end(), [](unsigned char c) { return c < 0x20 && c != '\n'; }))
      text += " control characters";
    if (!run.out.empty()) text += " output";
    if (std::filesystem::exists(odd.never)) text += " a file";
  }
  std::filesystem::remove(odd.never);
  return text.empty() ? "" : arguments + ":" + text + "\n" + run.err;
}

void try_all(const Odd& odd, const std::vector<std::string>& commands, bool may_work) {
  for (const std::string& command : commands)
    for (const std::string& value : odd.values) {
      std::string arguments = command;
      arguments.replace(arguments.find('@'), 1, value);
      CHECK(complaint(odd, arguments, may_work) == "");
    }
}

}  // namespace

TEST_CASE("odd arguments: files that are none are refused in a line, by every command") {
  const Odd odd;
  const std::string on = " --hardware " + odd.machine, out = " -o " + odd.never;
  try_all(
      odd,
      {"run @", "trace generate @" + out, "trace info @", "plan @" + on + out,
       "plan " + odd.trace + " --hardware @" + out, "check @ " + odd.plan + on,
       "check " + odd.trace + " @" + on, "simulate @ --policy graph" + on + out,
       "simulate " + odd.trace + " --plan @" + on + out, "export @ --format table --trace " + odd.trace + out,
       "export " + odd.plan + " --format table --trace @" + out, "compare @ " + odd.result,
       "compare " + odd.result + " @", "calibrate @" + on + out, "calibrate @ --format kineto" + on + out,
       "sweep @ -o " + odd.never, "report @ -o " + odd.never},
      false);
}

TEST_CASE("odd arguments: each import refuses what isn't its format in a line") {
  const Odd odd;
  std::vector<std::string> commands;
  for (const char* format : {"g10", "activation-trace", "kineto", "chakra", "pytorch-et", "memory-snapshot",
                             "memory-timeline", "ascend", "mindspore", "llmservingsim", "onnx"})
    commands.push_back("trace import @ --format " + std::string(format) + " -o " + odd.never);
  try_all(odd, commands, false);
}

TEST_CASE("odd arguments: values that are none are refused in a line") {
  const Odd odd;
  const std::string on = odd.trace + " --hardware " + odd.machine, out = " -o " + odd.never;
  try_all(odd,
          {"plan " + on + " --hbm @" + out, "plan " + on + " --iterations @" + out,
           "plan " + on + " --bound @" + out, "plan " + on + " --map --width @" + out,
           "simulate " + on + " --policy @" + out, "simulate " + on + " --policy on_demand:@" + out,
           "calibrate " + on + " --link @", "calibrate " + on + " --format @",
           "export " + odd.plan + " --trace " + odd.trace + " --format @" + out, "completion @", "@",
           "trace @", "run " + source_dir() + "/configs/experiments/quickstart.yaml --set @",
           "run " + source_dir() + "/configs/experiments/quickstart.yaml --jobs @"},
          false);
}

TEST_CASE("odd arguments: an output that is one of the inputs is refused, and the input stays") {
  const TemporaryFolder folder;
  const std::string file = folder / "x.json", again = folder.path() + "/./x.json";
  const std::string text = "{}", toy = source_dir() + "/configs/hardware/toy.yaml";
  write_text(file, text);
  for (const std::string& arguments : {"trace import --format kineto " + file, "trace jitter " + file + " --by 1%",
                                       "trace generate " + file, "export " + file + " --format table --trace " + file,
                                       "plan " + file + " --hardware " + toy, "simulate " + toy + " --policy graph --hardware " + file,
                                       "simulate " + toy + " --hardware " + toy + " --plan " + file}) {
    const CommandResult run = run_hyperoffload(arguments + " -o " + again);
    INFO(arguments << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.err.find("-o " + again + ": found a file that is read, expected another one") != std::string::npos);
    CHECK(read_text(file) == text);
  }
}

TEST_CASE("odd arguments: an empty name of a file, op or tensor, and numbers below 0, say what was expected") {
  const Odd odd;
  const std::string on = odd.trace + " --hardware " + odd.machine;
  for (const std::string& arguments :
       {std::string("report . -o ''"), "plan " + on + " -o ''", "simulate " + on + " --policy graph -o ''",
        "plan " + on + " --explain ''", "run " + source_dir() + "/configs/experiments/quickstart.yaml -o ''"}) {
    const CommandResult run = run_hyperoffload(arguments);
    INFO(arguments << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK(run.err.find("found \"\", expected ") != std::string::npos);
  }
  for (const std::string& arguments : {"simulate " + on + " --policy graph --timeline " + odd.never + " --timeline-npu -1",
                                       "trace jitter " + odd.trace + " --by 1% --seed -1 -o " + odd.never}) {
    const CommandResult run = run_hyperoffload(arguments);
    INFO(arguments << "\n" << run.err);
    CHECK(run.status == 2);
    CHECK(run.err.find("found -1, expected a whole number from 0 to ") != std::string::npos);
  }
}
