#include "app/version.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>

#include "planner/bound/offload_lp.h"
#include "sim/machine/simgrid_version.h"

namespace hyperoffload {
namespace {

// A number that holds major, minor and patch, with two decimal digits for each of the last two.
std::string dotted(unsigned number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace

std::string version_text() {
  return fmt::format(
      "hyperoffload {}\nSimGrid {}, Clp {}, yaml-cpp {}, nlohmann/json {}.{}.{}, CLI11 {}, fmt {}, zlib {}, protobuf {}, xxHash {}",
      HYPEROFFLOAD_VERSION, simgrid_version(), clp_version(), YAML_CPP_VERSION, NLOHMANN_JSON_VERSION_MAJOR,
      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, CLI11_VERSION, dotted(FMT_VERSION), zlibVersion(),
      PROTOBUF_VERSION, dotted(XXH_versionNumber()));
}

}  // namespace hyperoffload
