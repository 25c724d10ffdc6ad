// Shapes of an ONNX model's intermediate tensors, and what a node computes.
//
// Inference goes node by node for the usual operators of convolutional nets and transformers: element-wise
// ones (with broadcasting), Conv, pooling, Gemm, MatMul, Concat, Reshape, Flatten, Transpose, (Un)squeeze,
// Gather, Split, reductions, ConstantOfShape. Others, and shapes that depend on data, stay unknown. O(nodes).
#pragma once

#include <optional>
#include <unordered_map>

#include "sim/import/onnx_model.h"

namespace hyperoffload {

struct OnnxValue {
  int type = 0;  // of its elements; 0: unknown
  std::optional<OnnxShape> shape;
  std::vector<std::int64_t> integers;  // its content, where it is small and known
};
using OnnxValues = std::unordered_map<std::string, OnnxValue>;

// Fills in the outputs of each node that have no shape yet; nodes must stand in order, as ONNX demands.
void infer_onnx_shapes(const OnnxModel& model, OnnxValues& values);

// 2 FLOPs a multiplication and addition, of Conv, ConvTranspose, Gemm and MatMul; nullopt for others and
// unknown shapes.
std::optional<double> onnx_flops(const OnnxNode& node, const OnnxValues& values);

// nullopt: unknown.
std::optional<std::int64_t> onnx_bytes(const OnnxValue& value);

}  // namespace hyperoffload
