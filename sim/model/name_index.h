// Name -> index of a vector whose elements have unique `name`s, compact and without copies of the names.
//
// Open addressing on (32-bit hash, index) pairs, at most half full: one probe touches one cache line,
// where std::unordered_map follows two pointers. The vector is passed in, since it may grow and move.
// Expected O(1); weak against names made to collide.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace hyperoffload {

class NameIndex {
 public:
  // The index of the element with that name, or -1.
  template <class Things>
  std::int32_t find(std::string_view name, const Things& things) const {
    return slots_.empty() ? -1 : slots_[place(name, hash(name), things)].index;
  }

  // Adds things[index], whose name is `name`; returns -1, or the element that has the name already.
  template <class Things>
  std::int32_t add(std::string_view name, std::size_t index, const Things& things) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place(name, hash(name), things)];
    if (slot.index >= 0) return slot.index;
    slot = {hash(name), static_cast<std::int32_t>(index)};
    ++count_;
    return -1;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t index = -1;
  };

  static std::uint32_t hash(std::string_view name) {
    return static_cast<std::uint32_t>(std::hash<std::string_view>()(name));
  }

  template <class Things>
  std::size_t place(std::string_view name, std::uint32_t hash, const Things& things) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash & mask;
    while (slots_[i].index >= 0 &&
           (slots_[i].hash != hash || things[static_cast<std::size_t>(slots_[i].index)].name != name))
      i = (i + 1) & mask;
    return i;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : 2 * slots_.size());
    old.swap(slots_);
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.index < 0) continue;
      std::size_t i = slot.hash & mask;
      while (slots_[i].index >= 0) i = (i + 1) & mask;
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace hyperoffload
