// Who holds which bytes of one memory: the independent check that no two overlap.
//
// Knows nothing of tensors, plans or how addresses were chosen. Ranges are half-open, bytes int64.
// Each call is O(log holders).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace hyperoffload {

class AddressSpace {
 public:
  struct Holding {
    std::int64_t from, to;
    int who;
  };
  // Takes [from, to), which must not be empty. If some of it is held: by whom, and nothing is taken.
  std::optional<Holding> take(std::int64_t from, std::int64_t to, int who);
  void give(std::int64_t from);  // what was taken from there; nothing, if it wasn't

 private:
  std::map<std::int64_t, Holding> held_;  // by first byte; disjoint
};

}  // namespace hyperoffload
