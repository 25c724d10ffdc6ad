// ONNX models: shapes, sizes and FLOPs against what is known of the nets.
#include "sim/report/trace_info.h"
#include "test/import/data.h"
#include "test/import/wire.h"
#include "test/support/tiny.h"

namespace hyperoffload {
namespace {

using wire::number;
using wire::text;

std::string node(const std::string& type, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs, const std::string& more = "") {
  std::string content;
  for (const std::string& name : inputs) content += text(1, name);
  for (const std::string& name : outputs) content += text(2, name);
  return text(1, content + text(4, type) + more);
}
std::string integers(const std::string& name, const std::vector<std::uint64_t>& values) {
  std::string content = text(1, name);
  for (const std::uint64_t value : values) content += number(8, value);
  return text(5, content);
}
std::string initializer(const std::string& name, int type, const std::vector<std::uint64_t>& shape,
                        const std::string& raw = "") {
  std::string content;
  for (const std::uint64_t d : shape) content += number(1, d);
  return text(5, content + number(2, static_cast<std::uint64_t>(type)) + text(8, name) + text(9, raw));
}
std::string value(int field, const std::string& name, int type, const std::vector<std::int64_t>& shape) {
  std::string dimensions;
  for (const std::int64_t d : shape)
    dimensions += text(1, d < 0 ? text(2, "N") : number(1, static_cast<std::uint64_t>(d)));
  return text(field, text(1, name) +
                         text(2, text(1, number(1, static_cast<std::uint64_t>(type)) + text(2, dimensions))));
}
constexpr int kFloat = 1, kInt64 = 7, kHalf = 10;
constexpr int kInput = 11, kOutput = 12;

ImportResult import_graph(const std::string& graph, const ImportOptions& options = {}) {
  const TemporaryFiles files;
  return import_trace("onnx", {files.add("model.onnx", number(1, 8) + text(7, graph))}, options);
}

std::int64_t bytes_of(const Graph& graph, const std::string& name) {
  return graph.tensor(tiny::tensor_named(graph, name)).bytes.value;
}

ImportOptions with_costs() {
  ImportOptions options;
  options.costs = "shapes";
  return options;
}

}  // namespace

TEST_CASE("an ONNX graph becomes ops with tensors of inferred sizes") {
  // x [N,3,8,8] -> conv 5x3x3x3, stride 2, pad 1 -> [N,5,4,4] -> relu -> reshape [N,80] -> gemm 80x10 -> y.
  std::string shape(16, '\0');
  shape[0] = 0;
  for (int i = 8; i < 16; ++i) shape[static_cast<std::size_t>(i)] = '\xff';  // [0, -1]
  const std::string graph =
      node("Conv", {"x", "w"}, {"c"}, integers("strides", {2, 2}) + integers("pads", {1, 1, 1, 1})) +
      node("Relu", {"c"}, {"r"}) + node("Reshape", {"r", "s"}, {"f"}) + node("Gemm", {"f", "g"}, {"y"}) +
      text(2, "net") + initializer("w", kFloat, {5, 3, 3, 3}) + initializer("s", kInt64, {2}, shape) +
      initializer("g", kFloat, {80, 10}) + value(kInput, "x", kFloat, {-1, 3, 8, 8}) +
      value(kOutput, "y", kFloat, {-1, 10});
  ImportOptions options = with_costs();
  options.batch = "2";
  const auto result = import_graph(graph, options);
  const Graph& g = result.graph;
  CHECK(g.name() == "net");
  REQUIRE(g.ops().size() == 4);
  CHECK(bytes_of(g, "x") == 2 * 3 * 8 * 8 * 4);
  CHECK(bytes_of(g, "w") == 5 * 3 * 3 * 3 * 4);
  CHECK(bytes_of(g, "c") == 2 * 5 * 4 * 4 * 4);
  CHECK(bytes_of(g, "f") == 2 * 80 * 4);
  CHECK(bytes_of(g, "y") == 2 * 10 * 4);
  CHECK(g.ops()[0].flops == Flops(2.0 * 2 * 5 * 4 * 4 * 3 * 3 * 3));
  CHECK(g.ops()[3].flops == Flops(2.0 * 2 * 80 * 10));
  CHECK(g.ops()[1].hbm_bytes == Bytes(2 * (2 * 5 * 4 * 4 * 4)));
  CHECK(g.tensor(tiny::tensor_named(g, "w")).kind == TensorKind::kWeight);
  CHECK(g.tensor(tiny::tensor_named(g, "x")).kind == TensorKind::kInput);
  options.batch = "0";
  CHECK(contains(input_error([&] { import_graph(graph, options); }),
                 "--batch: found \"0\", expected a batch size, a whole number from 1 to 1000000"));
  options.batch = "2";
  const std::string closed = node("Relu", {"x"}, {"y"}) + value(kInput, "x", kFloat, {1, 3}) +
                             value(kOutput, "y", kFloat, {1, 3});
  CHECK(contains(input_error([&] { import_graph(closed, options); }),
                 "found --batch for a model whose dimensions are all given"));
  const auto open = import_graph(graph);
  CHECK(has_remark(open, "2 dimensions left open in the file (--batch N fills them in)"));
  CHECK(has_remark(open, "no times"));
  CHECK(has_remark(open, "of unknown size: 0 bytes taken"));
}

TEST_CASE("transformer operators have shapes, too") {
  const std::string graph =
      node("MatMul", {"x", "w"}, {"a"}) + node("Split", {"a"}, {"q", "k"}, integers("axis", {2})) +
      node("Transpose", {"k"}, {"t"}, integers("perm", {0, 2, 1})) + node("MatMul", {"q", "t"}, {"p"}) +
      node("Add", {"p", "mask"}, {"m"}) + node("Softmax", {"m"}, {"s"}) +
      node("Concat", {"s", "s"}, {"y"}, integers("axis", {1})) + initializer("w", kHalf, {6, 8}) +
      initializer("mask", kHalf, {7}) + value(kInput, "x", kHalf, {3, 7, 6});
  const Graph g = import_graph(graph, with_costs()).graph;
  CHECK(bytes_of(g, "a") == 3 * 7 * 8 * 2);
  CHECK(bytes_of(g, "q") == 3 * 7 * 4 * 2);
  CHECK(bytes_of(g, "t") == 3 * 4 * 7 * 2);
  CHECK(bytes_of(g, "s") == 3 * 7 * 7 * 2);
  CHECK(bytes_of(g, "y") == 3 * 14 * 7 * 2);
  CHECK(g.ops()[3].flops == Flops(2.0 * 3 * 7 * 7 * 4));
}

TEST_CASE("what is no ONNX model is refused") {
  const TemporaryFiles files;
  const auto message = [&](const std::string& content) {
    return input_error([&] { import_trace("onnx", {files.add("x.onnx", content)}, {}); });
  };
  CHECK(contains(message(""), "found an empty file, expected an ONNX model"));
  CHECK(contains(message(number(1, 8)), "found no graph"));
  CHECK(contains(message("{\"a\": 1}"), "expected"));
  CHECK(contains(message(number(1, 8) + text(7, text(2, "empty"))), "found no nodes"));
}

TEST_CASE("VGG-19 has its known parameters and FLOPs") {
  const auto file = real_file("onnx/light_vgg19.onnx");
  if (!file) return;
  // Simonyan and Zisserman, table 1, column E: 3x3 convolutions by stage (channels, count), each stage halves
  // the image.
  double flops = 0, parameters = 0, in = 3, pixels = 224;
  for (const auto& [channels, count] :
       std::vector<std::pair<int, int>>{{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}}) {
    for (int i = 0; i < count; ++i) {
      flops += 2 * 9 * in * channels * pixels * pixels;
      parameters += 9 * in * channels + channels;
      in = channels;
    }
    pixels /= 2;
  }
  double features = in * pixels * pixels;
  for (const double out : {4096., 4096., 1000.}) {
    flops += 2 * features * out;
    parameters += features * out + out;
    features = out;
  }
  ImportOptions options = with_costs();
  options.fold = "constants";
  const TraceInfo info = trace_info(import_trace("onnx", {*file}, options).graph);
  CHECK(info.flops.value == flops);
  const std::int64_t reshape_target = 2 * 8;  // two int64
  CHECK(info.bytes_by_kind[static_cast<std::size_t>(TensorKind::kWeight)].value ==
        static_cast<std::int64_t>(parameters) * 4 + reshape_target);
}

TEST_CASE("every real ONNX model has an op for each node and knows every size") {
  for (const auto& [name, nodes] : std::vector<std::pair<std::string, std::size_t>>{{"bvlc_alexnet", 40},
                                                                                    {"densenet121", 1746},
                                                                                    {"resnet50", 415},
                                                                                    {"squeezenet", 105},
                                                                                    {"vgg19", 82}}) {
    const auto file =
        real_file("onnx/light_" + name + ".onnx");  // nodes counted by a decoder of a few lines of Python
    if (!file) return;
    const auto result = import_trace("onnx", {*file}, {});
    CHECK(result.graph.ops().size() == nodes);
    CHECK_FALSE(has_remark(result, "of unknown size"));
  }
}

}  // namespace hyperoffload
