// A small seeded generator: the same seed and coordinates give the same numbers on every machine.
// SplitMix64 (Steele, Lea, Flood 2014; its constants are public).
#pragma once

#include <cstdint>
#include <initializer_list>

namespace hyperoffload {

class SplitMix {
 public:
  template <class... Coordinates>
  explicit SplitMix(std::uint64_t seed, Coordinates... coordinates) : state_(seed) {
    for (std::uint64_t c : {static_cast<std::uint64_t>(coordinates)...}) state_ = next() ^ c;
  }
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n));
  }

 private:
  std::uint64_t state_;
};

}  // namespace hyperoffload
