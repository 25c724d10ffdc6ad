#include "sim/model/check_addresses.h"

#include <fmt/format.h>

#include "sim/model/check_words.h"

namespace hyperoffload {

AddressCheck::AddressCheck(const Graph& graph, const Plan& plan, Bytes capacity)
    : graph_(graph),
      plan_(plan),
      capacity_(std::min(capacity, plan.arena.value_or(capacity)).value),
      residency_(graph, plan, *this) {
  for (const Address& a : plan.addresses)
    offsets_.emplace(std::pair(a.tensor.value, a.op.value), a.offset.value);
  residents_.resize(static_cast<std::size_t>(residency_.pieces()) + graph.ops().size());
  base_.resize(residents_.size());
}

std::optional<std::int64_t> AddressCheck::base_of(const Resident& r) const {
  if (r.by == Resident::By::kPrefetch) {
    const Action& action = plan_.actions[static_cast<std::size_t>(r.action)];
    if (!action.offset) return std::nullopt;
    return (*action.offset - action.from).value;
  }
  const auto found = offsets_.find({r.tensor.value, r.op.value});
  if (found == offsets_.end()) return std::nullopt;
  return found->second;
}

std::string AddressCheck::words(int piece) const {
  const Resident& r = residents_[static_cast<std::size_t>(piece)];
  if (r.by == Resident::By::kWorkspace) return "the workspace of " + quoted(graph_, r.op);
  std::string text = quoted(graph_, r.tensor);
  if (r.to - r.from != graph_.tensor(r.tensor).bytes)
    text += fmt::format(" [{}, {})", r.from.value, r.to.value);
  switch (r.by) {
    case Resident::By::kPrefetch:
      return text + fmt::format(", prefetched by action {},", r.action);
    case Resident::By::kWrite:
      return text + fmt::format(", written by {},", quoted(graph_, r.op));
    default:
      return text + ", there from the start,";
  }
}

void AddressCheck::taken(const Resident& r, std::int64_t) {
  if (fault_) return;
  residents_[static_cast<std::size_t>(r.piece)] = r;
  const auto base = base_of(r);
  if (!base) {
    fault_ = words(r.piece) + " has no address";
    return;
  }
  base_[static_cast<std::size_t>(r.piece)] = *base;
  if (*base < -r.from.value || *base > capacity_ - r.to.value) {  // its end may be too large for a number
    const auto at = static_cast<std::uint64_t>(*base) + static_cast<std::uint64_t>(r.from.value);
    const auto bytes = static_cast<std::uint64_t>((r.to - r.from).value);
    fault_ = fmt::format("{} lies at [{}, {}), outside of {} {} B", words(r.piece), at, at + bytes,
                         plan_.arena && plan_.arena->value == capacity_ ? "the arena's" : "HBM's", capacity_);
    return;
  }
  const std::int64_t from = *base + r.from.value, to = *base + r.to.value;
  if (const auto other = space_.take(from, to, r.piece)) {
    fault_ = fmt::format("{} is put at [{}, {}), where {} still lies at [{}, {})", words(r.piece), from, to,
                         words(other->who), other->from, other->to);
    return;
  }
  if (!r.tensor.is_none()) judge_neighbours(r, *base);
}

void AddressCheck::judge_neighbours(const Resident& r, std::int64_t base) {
  for (int p = residency_.first_piece(r.tensor); p < residency_.last_piece(r.tensor); ++p) {
    if (p == r.piece || !residency_.here(p) || base_[static_cast<std::size_t>(p)] == base) continue;
    fault_ = fmt::format("{} lies apart from {} they need one base, and have {} and {}", words(r.piece),
                         words(p), base, base_[static_cast<std::size_t>(p)]);
    return;
  }
}

void AddressCheck::given(const Resident& r, std::int64_t) {
  if (!fault_) space_.give(base_[static_cast<std::size_t>(r.piece)] + r.from.value);
}

}  // namespace hyperoffload
