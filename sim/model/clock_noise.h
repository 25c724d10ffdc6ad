// Where rounding of a clock ends: an iteration within 1e-12 of its ideal time takes the ideal time, so that noise
// is never told as a stall. Far above what sums of doubles lose (1e-16 an op), far below what anyone measures.
#pragma once

#include <cmath>

#include "sim/model/units.h"

namespace hyperoffload {

inline constexpr double kClockNoise = 1e-12;  // of an iteration's ideal time

inline Seconds without_noise(Seconds time, Seconds ideal) {
  return std::abs((time - ideal).value) <= kClockNoise * ideal.value ? ideal : time;
}

}  // namespace hyperoffload
