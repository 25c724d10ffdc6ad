// PyTorch's raw memory timeline (export_memory_timeline, .raw.json): `TIMELINE.json`.
//
// Rows of [ns or -1, action, bytes, category]: 1 was there before, 2 create, 3 new version (two rows: the old
// category with negative bytes, the new one), 4 destroy. The rows of one instant become one op that lasts
// until the next instant. A row doesn't say which tensor it is about: rows are matched by bytes and category,
// the youngest first. So live bytes of each category are exact at every op; how long one tensor lives is a
// guess.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_memory_timeline(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
