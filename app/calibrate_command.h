// `calibrate`: a measured trace -> the part of a machine file that it says something about.
#pragma once

#include <string>
#include <vector>

namespace hyperoffload {

struct CalibrateCommand {
  std::vector<std::string> files;
  std::string format = "trace", hardware, output, link;
};

std::vector<std::string> calibrate_formats();

int calibrate_command(const CalibrateCommand& command);

}  // namespace hyperoffload
