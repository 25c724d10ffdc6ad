// PyTorch memory snapshots (torch.cuda.memory._dump_snapshot, a pickle): `SNAPSHOT.pickle`.
//
// One op per allocation of one device's history; an allocation is a tensor from its op on, to the last op
// before the allocator takes it back (free_completed). What is freed without an allocation was there when the
// recorded ring begins (an input); blocks that are active in `segments` and have no event were there all the
// time (persistent); what is never freed lives to the last op. Good for peaks: which ops use a tensor isn't
// known. Durations are the time to the next allocation where events have time_us; else there are none.
// Option: device.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_memory_snapshot(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
