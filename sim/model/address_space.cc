#include "sim/model/address_space.h"

namespace hyperoffload {

std::optional<AddressSpace::Holding> AddressSpace::take(std::int64_t from, std::int64_t to, int who) {
  const auto next = held_.lower_bound(from);
  if (next != held_.end() && next->second.from < to) return next->second;
  if (next != held_.begin())
    if (const Holding& before = std::prev(next)->second; before.to > from) return before;
  held_.emplace_hint(next, from, Holding{from, to, who});
  return std::nullopt;
}

void AddressSpace::give(std::int64_t from) { held_.erase(from); }

}  // namespace hyperoffload
