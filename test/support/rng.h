// Seeded random numbers that are the same with every standard library (splitmix64).
#pragma once

#include <cstdint>
#include <vector>

namespace hyperoffload {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Both ends included; `from` when `to` lies below it.
  std::int64_t between(std::int64_t from, std::int64_t to) {
    return to <= from ? from
                      : from + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(to - from + 1));
  }
  int pick(int from, int to) { return static_cast<int>(between(from, to)); }
  double real(double from, double to) {
    return from + (to - from) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  bool chance(double probability) { return real(0, 1) < probability; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(list.size()) - 1))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace hyperoffload
