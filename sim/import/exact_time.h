// Times as whole picoseconds, read from decimal text without a detour through double.
//
// Profilers write epoch microseconds with nanosecond fractions ("1689180448554837.123"), which a double
// can't hold: differences of them would be off by up to 250 ns. 128 bits hold any such time; what is finer
// than a picosecond is rounded (half away from zero). A duration becomes the double nearest to its seconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/model/units.h"

namespace hyperoffload {

__extension__ typedef __int128 Picoseconds;  // ISO C++ has no name for it

// The decimal exponent that turns a number in this unit into picoseconds.
inline constexpr int kPicosPerMicro = 6, kPicosPerMilli = 9, kPicosPerNano = 3, kPicosPerSecond = 12;

// text * 10^exp10 picoseconds; spaces around it are allowed, a sign and an exponent too. nullopt for
// anything else, and for a time beyond 10^30 ps (30 billion years).
std::optional<Picoseconds> parse_picoseconds(std::string_view text, int exp10);

Seconds to_seconds(Picoseconds time);

// Microseconds as a decimal number without superfluous zeros: 3744000 -> "3.744".
std::string microseconds_text(Picoseconds time);

}  // namespace hyperoffload
