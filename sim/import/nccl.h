// What a profiler says of an NCCL (or RCCL) kernel, as a collective of the layer trace.
//
// Kineto names the collective by PyTorch's word ("_allgather_base"), with elements in and out of one rank, their
// type, and the ranks of the group. `bytes` is the larger side of one rank (sim/model/collective.h).
#pragma once

#include <optional>
#include <string>

#include "sim/model/graph.h"

namespace hyperoffload {

struct NcclArgs {
  std::string name, elements_in, elements_out, type, ranks, group_size;  // as in the file; empty: not there
};

// None where the kind, the type or the elements aren't there or aren't known.
std::optional<Collective> nccl_collective(const NcclArgs& args);

// Whether a kernel or task is one of NCCL, RCCL or HCCL by its name.
bool is_communication(const std::string& kernel);

}  // namespace hyperoffload
