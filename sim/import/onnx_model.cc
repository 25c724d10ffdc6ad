#include "sim/import/onnx_model.h"

#include <fmt/format.h>

#include <cstring>

#include "sim/import/protobuf_stream.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

constexpr std::size_t kMostIntegers = 64;  // shapes, axes and the like are shorter

class ModelReader {
 public:
  explicit ModelReader(TextStream& stream) : stream_(stream), input_(stream), where_(stream.source()) {}

  OnnxModel read() {
    if (input_.at_end()) throw InputError(stream_.source(), "an empty file", stream_.expected());
    google::protobuf::io::CodedInputStream coded(&input_);
    ProtobufMessage model(coded, where_);
    bool graph = false;
    while (const int field = model.next()) {
      if (field == 7) {
        graph = true;
        model.message([this](ProtobufMessage& m) { read_graph(m); });
      } else {
        model.skip();
      }
    }
    if (!graph) throw InputError(stream_.source(), "no graph", stream_.expected());
    return std::move(model_);
  }

 private:
  void read_graph(ProtobufMessage& graph) {
    while (const int field = graph.next()) {
      if (field == 1)
        graph.message([this](ProtobufMessage& m) { model_.nodes.push_back(node(m)); });
      else if (field == 2)
        model_.name = graph.bytes();
      else if (field == 5)
        graph.message([this](ProtobufMessage& m) { model_.initializers.push_back(tensor(m)); });
      else if (field == 11 || field == 12 || field == 13)
        graph.message([&](ProtobufMessage& m) {
          (field == 11   ? model_.inputs
           : field == 12 ? model_.outputs
                         : model_.values)
              .push_back(value_info(m));
        });
      else
        graph.skip();
    }
  }

  static OnnxNode node(ProtobufMessage& m) {
    OnnxNode node;
    while (const int field = m.next()) {
      if (field == 1)
        node.inputs.push_back(m.bytes());
      else if (field == 2)
        node.outputs.push_back(m.bytes());
      else if (field == 3)
        node.name = m.bytes();
      else if (field == 4)
        node.type = m.bytes();
      else if (field == 5)
        m.message([&](ProtobufMessage& a) { attribute(a, node); });
      else
        m.skip();
    }
    return node;
  }

  // AttributeProto: 1 name, 3 i, 4 s, 5 t, 6 g, 8 ints, 11 graphs.
  static void attribute(ProtobufMessage& m, OnnxNode& node) {
    std::string name;
    std::vector<std::int64_t> integers;
    while (const int field = m.next()) {
      if (field == 1)
        name = m.bytes();
      else if (field == 3 || field == 8)
        for (const std::uint64_t value : m.varints()) integers.push_back(static_cast<std::int64_t>(value));
      else if (field == 4)
        node.texts[name] = m.bytes();
      else if (field == 5)
        m.message([&](ProtobufMessage& t) { node.value = tensor(t); });
      else {
        node.subgraphs += field == 6 || field == 11;
        m.skip();
      }
    }
    if (!integers.empty()) node.integers[name] = std::move(integers);
  }

  // TensorProto: 1 dims, 2 data type, 7 int64 data, 8 name, 9 raw data.
  static OnnxTensor tensor(ProtobufMessage& m) {
    constexpr int kInt64 = 7;
    OnnxTensor tensor;
    tensor.shape.emplace();
    std::string raw;
    while (const int field = m.next()) {
      if (field == 1) {
        for (const std::uint64_t value : m.varints())
          tensor.shape->push_back(static_cast<std::int64_t>(value));
      } else if (field == 2) {
        tensor.type = static_cast<int>(m.varint());
      } else if (field == 7) {
        for (const std::uint64_t value : m.varints())
          tensor.integers.push_back(static_cast<std::int64_t>(value));
      } else if (field == 8) {
        tensor.name = m.bytes();
      } else if (field == 9) {
        raw = m.bytes_up_to(kMostIntegers * sizeof(std::int64_t));
      } else {
        m.skip();
      }
    }
    if (tensor.type == kInt64 && tensor.integers.empty() && raw.size() % sizeof(std::int64_t) == 0) {
      tensor.integers.resize(raw.size() / sizeof(std::int64_t));
      std::memcpy(tensor.integers.data(), raw.data(), raw.size());
    }
    return tensor;
  }

  // ValueInfoProto: 1 name, 2 type {1 tensor type {1 element type, 2 shape {1 dimension {1 value, 2 name}}}}.
  static OnnxTensor value_info(ProtobufMessage& m) {
    OnnxTensor tensor;
    while (const int field = m.next()) {
      if (field == 1)
        tensor.name = m.bytes();
      else if (field == 2)
        each(m, 1, [&](ProtobufMessage& type) {
          while (const int part = type.next()) {
            if (part == 1)
              tensor.type = static_cast<int>(type.varint());
            else if (part == 2)
              tensor.shape = shape(type);
            else
              type.skip();
          }
        });
      else
        m.skip();
    }
    return tensor;
  }

  static OnnxShape shape(ProtobufMessage& m) {
    OnnxShape dimensions;
    each(m, 1, [&](ProtobufMessage& dimension) {
      std::int64_t value = -1;
      while (const int field = dimension.next()) {
        if (field == 1)
          value = static_cast<std::int64_t>(dimension.varint());
        else
          dimension.skip();
      }
      dimensions.push_back(value);
    });
    return dimensions;
  }

  // Runs `read` on each message that stands in field `wanted` of the message that the current field of `m`
  // holds.
  template <class Read>
  static void each(ProtobufMessage& m, int wanted, Read read) {
    m.message([&](ProtobufMessage& inner) {
      while (const int field = inner.next()) {
        if (field == wanted && inner.wire() == ProtobufMessage::kBytes)
          inner.message([&](ProtobufMessage& innermost) { read(innermost); });
        else
          inner.skip();
      }
    });
  }

  TextStream& stream_;
  ProtobufInput input_;
  std::string where_;
  OnnxModel model_;
};

}  // namespace

OnnxModel read_onnx(TextStream& stream) { return ModelReader(stream).read(); }

int onnx_half_bytes(int type) {
  // In the order of TensorProto.DataType, from undefined to float4e2m1.
  constexpr int kHalfBytes[] = {0, 8, 2, 2, 4, 4, 8, 16, 0, 2, 4, 16, 8, 16, 16, 32, 4, 2, 2, 2, 2, 1, 1, 1};
  return type >= 0 && type < static_cast<int>(std::size(kHalfBytes)) ? kHalfBytes[type] : 0;
}

}  // namespace hyperoffload
