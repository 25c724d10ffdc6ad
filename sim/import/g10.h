// G10 (Zhang et al., MICRO 2023; github.com/platformxlab/G10): `NET cudnnB.txt [cudnnBWorkspace.txt]`, or its
// expanded kernels.config. Kernel times are those with everything resident; sizes are rounded up to pages of
// 4,096 bytes as G10 does it. Options: batch, global, border, pixels.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_g10(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
