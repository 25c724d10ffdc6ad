// What an import needs of an ONNX model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/import/text_stream.h"

namespace hyperoffload {

using OnnxShape = std::vector<std::int64_t>;  // -1: left open

struct OnnxTensor {
  std::string name;
  int type = 0;  // TensorProto.DataType; 0: unknown
  std::optional<OnnxShape> shape;
  std::vector<std::int64_t> integers;  // of a small int64 initializer: its content
};

struct OnnxNode {
  std::string name, type;
  std::vector<std::string> inputs, outputs;                   // "": absent
  std::map<std::string, std::vector<std::int64_t>> integers;  // attributes: ints, or one int
  std::map<std::string, std::string> texts;
  std::optional<OnnxTensor> value;  // of a Constant or ConstantOfShape
  std::size_t subgraphs = 0;
};

struct OnnxModel {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> inputs, outputs, values, initializers;
};

OnnxModel read_onnx(TextStream& stream);

// Bytes of an element times 2 (4-bit types are half a byte); 0: not known.
int onnx_half_bytes(int type);

}  // namespace hyperoffload
