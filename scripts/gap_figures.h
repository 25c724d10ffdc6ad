// What the programs that measure gaps share.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace hyperoffload {

inline double percentile(std::vector<double> values, double share) {  // nearest rank
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size()) + 0.999999);
  return values[std::min(values.size(), std::max<std::size_t>(rank, 1)) - 1];
}

// Whether "a,b" names it.
inline bool lists(const std::string& names, const std::string& name) {
  return ("," + names + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace hyperoffload
