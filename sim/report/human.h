// Numbers as people read them: four significant digits and a unit that suits the size. Binary units
// for bytes held (GiB), decimal ones for rates (GB/s) and times (ns, us, ms, s). ASCII only.
#pragma once

#include <string>

#include "sim/model/units.h"

namespace hyperoffload {

std::string human_number(double value);       // "12.34", "23450"
std::string human_time(Seconds time);         // "12.34 ms"; below 1e-12 s "0 s"
std::string human_bytes(Bytes bytes);         // "47.10 GiB", "1000 B"
std::string human_rate(BytesPerSecond rate);  // "153.2 GB/s"
std::string human_percent(double share);      // 0.998 -> "99.8 %"
std::string human_factor(double factor);      // 3.4 -> "3.400x"

}  // namespace hyperoffload
