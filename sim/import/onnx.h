// ONNX models (protobuf): `MODEL.onnx`.
//
// One op per node of the main graph. Initializers and constants are weights, graph inputs inputs, all else
// activations. Sizes come from the shapes in the file; where an intermediate has none (most files), from
// shape inference for the usual operators (onnx_shapes.h); what stays unknown is counted and has 0 bytes. The
// format has no times: ops take none unless `costs` shapes makes FLOPs (Conv, Gemm, MatMul) and HBM bytes of
// the shapes. `batch` stands for dimensions left open; `fold` constants makes what is computed from
// initializers alone a weight, and its node no op. Weights' contents are skipped as the file is read. ONNX
// field numbers: github.com/onnx/onnx, onnx/onnx.proto.
#pragma once

#include "sim/import/import.h"

namespace hyperoffload {

ImportResult import_onnx(const std::vector<std::string>& files, const ImportOptions& options);

}  // namespace hyperoffload
