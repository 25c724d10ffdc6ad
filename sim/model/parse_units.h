// Values with a unit, as people write them: "64GiB", "1.6 TB/s", "200Gbps", "376TFLOPS", "1.7us".
//
// GB = 1e9 B, GiB = 2^30 B, Gbps = 1e9 bit/s. Decimals and exponents are allowed, a space before the
// unit too. A number without a unit is an error that lists the units (0 as well). Bytes are exact
// up to 2^63-1; a part of a byte left by a larger unit is cut off (47.1GiB), half a byte (0.5B) is an
// error. The others are the nearest double. Nothing is negative.
// `where` opens the message: "--hbm", or "toy.yaml:3: npu.hbm.capacity".
#pragma once

#include <string>

#include "sim/model/units.h"

namespace hyperoffload {

Bytes parse_bytes(const std::string& text, const std::string& where);
BytesPerSecond parse_rate(const std::string& text, const std::string& where);  // 0 is accepted
FlopsPerSecond parse_flops_per_second(const std::string& text, const std::string& where);
Seconds parse_seconds(const std::string& text, const std::string& where);
// "1%" or "0.01" -> 0.01, to 1e6. A number from 1 on needs its %: a 5 would mean 500%.
double parse_share(const std::string& text, const std::string& where);

}  // namespace hyperoffload
