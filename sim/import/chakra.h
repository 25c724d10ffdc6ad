// Chakra execution traces (MLCommons; protobuf `.et` of the proto3 layout, schema 0.0.4 and later, or JSON
// with a `workload_graph`): `TRACE.et`, of one rank.
//
// One op per node, in an order that keeps dependencies: earliest start first, then as in the file. Compute
// nodes are on the engine compute (or host if is_cpu_op), memory nodes on memory, communication on comm. A
// duration is kept; else num_ops are FLOPs, tensor_size (comm_size) HBM bytes. Control dependencies that
// close a cycle are dropped and counted, data dependencies that do are an error; dependencies on ids that
// aren't there are counted. Tensors come from `inputs`/`outputs`, as text lists of names and sizes or as
// values with tensor tuples.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_chakra(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
