// A PyTorch execution trace alone (ET JSON): `TRACE.json`.
//
// One op per operator without children that works on a device's tensors; views (what returns its own input's
// storage and changes nothing) and allocations (aten::empty...) are none. Tensors are storages
// (execution_trace.h). The format has no times: ops take none, unless `costs` shapes makes HBM bytes of the
// tensors they touch.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_pytorch_et(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
