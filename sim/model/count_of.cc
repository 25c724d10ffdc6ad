#include "sim/model/count_of.h"

#include <fmt/format.h>

namespace hyperoffload {

std::string count_of(std::size_t count, const std::string& thing, const std::string& plural) {
  if (count == 1) return "1 " + thing;
  return fmt::format("{} {}", count, plural.empty() ? thing + "s" : plural);
}

}  // namespace hyperoffload
