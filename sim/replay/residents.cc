#include "sim/replay/residents.h"

#include <fmt/format.h>

#include <algorithm>

namespace hyperoffload {

std::string largest_residents(const Graph& graph, const Memory& memory, Tier tier, std::size_t count) {
  std::vector<std::pair<Bytes, TensorId>> found;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId t(i);
    const Bytes bytes =
        tier == Tier::kHbm ? memory.hbm_bytes(t) : graph.tensor(t).bytes - memory.unallocated_pool_bytes(t);
    if (bytes.value > 0 && (memory.alive(t) || tier == Tier::kHbm)) found.emplace_back(bytes, t);
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(count, found.size()); ++i)
    text += fmt::format("{}\"{}\" ({}, {} B)", i ? ", " : "", graph.tensor(found[i].second).name,
                        to_string(graph.tensor(found[i].second).kind), found[i].first.value);
  return text.empty() ? "none" : text;
}

}  // namespace hyperoffload
