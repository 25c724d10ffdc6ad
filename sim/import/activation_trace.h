// hyper-parallel's ActivationTrace (mindspore-ai/hyper-parallel, issue #693), JSON:
// {ops: [{name, duration_ms, accesses: [{op_id, storage_id, READ|WRITE}]}], storage_sizes, retained_sids,
//  memory_limit_bytes, d2h_bandwidth_gbps, h2d_bandwidth_gbps}; the bandwidths are GiB/s despite the name.
//
// Storages become activations named by their id; retained ones outlive the trace and are persistent. The
// limit and the bandwidths belong to the machine: they are kept in the trace's meta.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_activation_trace(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
