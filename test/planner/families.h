// Seeded random traces of the shapes that planning problems have: chains of training (even and uneven),
// cyclic weight streams, skip connections, mixtures of experts, and mixtures of all. Durations of about
// a second, tensors of about 1000 bytes. The same seed gives the same trace on every machine.
#pragma once

#include <cstdint>
#include <string>

#include "sim/model/graph.h"
#include "sim/model/hardware.h"

namespace hyperoffload {

enum class Family { kEvenChain, kUnevenChain, kWeightStream, kSkips, kExperts, kMixture };
inline constexpr Family kAllFamilies[] = {Family::kEvenChain, Family::kUnevenChain, Family::kWeightStream,
                                          Family::kSkips,     Family::kExperts,     Family::kMixture};
const char* to_string(Family family);

struct FamilyCase {
  Graph graph;
  Hardware hardware;      // HBM holds everything
  std::int64_t peak = 0;  // bytes if nothing ever leaves
  bool repeats = false;   // a weight stream is cyclic
};

// `load` is how many times the ops' time it takes to move the peak once in one direction.
FamilyCase family_case(Family family, std::uint64_t seed, int size, double load);

}  // namespace hyperoffload
