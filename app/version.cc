#include "app/version.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "sim/machine/simgrid_version.h"

namespace hyperoffload {
namespace {

// A number that holds major, minor and patch with three (or two) decimal digits for each of the last two.
std::string dotted(int number, int base) {
  return fmt::format("{}.{}.{}", number / (base * base), number / base % base, number % base);
}

}  // namespace

std::string version_text() {
  return fmt::format(
      "hyperoffload {}\nSimGrid {}, yaml-cpp {}, nlohmann/json {}.{}.{}, CLI11 {}, fmt {}, zlib {}, protobuf "
      "{}",
      HYPEROFFLOAD_VERSION, simgrid_version(), YAML_CPP_VERSION, NLOHMANN_JSON_VERSION_MAJOR,
      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, CLI11_VERSION, dotted(FMT_VERSION, 100),
      zlibVersion(), dotted(GOOGLE_PROTOBUF_VERSION, 1000));
}

}  // namespace hyperoffload
