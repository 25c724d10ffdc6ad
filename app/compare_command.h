// `compare`: two results, or two sets of them, beside each other.
#pragma once

#include <string>

namespace hyperoffload {

struct CompareCommand {
  std::string a, b;  // a result, results.json, or a folder of results (all below it; points of sweeps by their axes)
  bool json = false, all = false;
};

int compare_command(const CompareCommand& command);

}  // namespace hyperoffload
