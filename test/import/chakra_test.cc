// Chakra traces: nodes, quirks of real producers, and what is refused. Cases of part F by number.
#include "sim/report/trace_info.h"
#include "test/import/data.h"
#include "test/import/wire.h"
#include "test/support/tiny.h"

namespace hyperoffload {
namespace {

using wire::number;
using wire::packed;
using wire::text;

constexpr int kCompute = 4, kSend = 5, kCollective = 7;

std::string attribute(const std::string& name, const std::string& value) {
  return text(10, text(1, name) + value);
}

std::string node(int id, const std::string& name, int type, const std::string& more = "") {
  return wire::message((id == 0 ? "" : number(1, static_cast<std::uint64_t>(id))) + text(2, name) +
                       number(3, static_cast<std::uint64_t>(type)) + more);
}

const std::string kHeader = wire::message(text(1, "0.0.4"));

ImportResult import_nodes(const std::vector<std::string>& nodes) {
  std::string content = kHeader;
  for (const std::string& each : nodes) content += each;
  const TemporaryFiles files;
  return import_trace("chakra", {files.add("trace.et", content)}, {});
}

std::vector<std::string> op_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  return names;
}

}  // namespace

TEST_CASE("a Chakra duration that is a negative number is refused") {
  // A duration is unsigned on the wire: -5 is written as 2^64 - 5.
  const auto with = [](std::uint64_t us) { return [us] { import_nodes({node(1, "a", kCompute, number(7, us))}); }; };
  CHECK(contains(input_error(with(~std::uint64_t{0} - 4)),
                 "node 1 (\"a\"): found a duration of 18446744073709551611 us, expected at most"));
  with((std::uint64_t{1} << 63) - 1)();
  CHECK(contains(input_error(with(std::uint64_t{1} << 63)), "found a duration of 9223372036854775808 us"));
}

TEST_CASE("Chakra nodes become ops with their times, FLOPs, bytes and dependencies") {
  // In the file the last comes first; id 0 is absent on the wire; num_ops as int64 (9), tensor_size as uint64
  // (13).
  const auto result = import_nodes(
      {node(2, "sum", kCollective,
            packed(5, {1}) + attribute("comm_type", number(9, 0)) + attribute("comm_size", number(13, 4096)) +
                attribute("pg_name", text(29, "tp"))),
       node(0, "mm", kCompute,
            attribute("num_ops", number(9, 1'000'000)) + attribute("tensor_size", number(13, 512)) +
                attribute("is_cpu_op", number(27, 0))),
       node(1, "add", kCompute, packed(5, {0}) + number(7, 9) + attribute("is_cpu_op", number(7, 0)))});
  const Graph& g = result.graph;
  REQUIRE(op_names(g) == std::vector<std::string>{"mm", "add", "sum"});
  CHECK(g.ops()[0].flops == Flops(1e6));
  CHECK(g.ops()[0].hbm_bytes == Bytes(512));
  CHECK(g.ops()[1].duration->value == 9e-6);
  CHECK(g.ops()[1].after == std::vector<OpId>{OpId(0)});
  CHECK(g.ops()[2].after == std::vector<OpId>{OpId(1)});
  REQUIRE(g.ops()[2].collective);
  CHECK(g.ops()[2].collective->kind == "all-reduce");
  CHECK(g.ops()[2].collective->bytes == Bytes(4096));
  CHECK(g.ops()[2].collective->group == "tp");
  CHECK(g.engines()[g.ops()[2].engine.index()] == "comm");
  CHECK(has_remark(result, "no tensors"));
}

TEST_CASE("dependencies on ids that aren't there are counted (case 65)") {
  const auto result = import_nodes({node(1, "a", kCompute, packed(5, {70, 71}) + number(7, 1)),
                                    node(2, "b", kCompute, packed(4, {70}) + number(7, 1)),
                                    node(3, "c", kCompute, number(5, 70) + number(7, 1))});  // one unpacked
  CHECK(has_remark(result, "4 dependencies name 2 ids that are not in the file"));
  CHECK(op_names(result.graph) == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("a cycle through control is opened, one of data alone is refused") {
  const std::string time = number(7, 1);
  const auto opened = import_nodes(
      {node(1, "a", kCompute, packed(4, {2}) + time), node(2, "b", kCompute, packed(5, {1}) + time)});
  CHECK(op_names(opened.graph) == std::vector<std::string>{"a", "b"});
  CHECK(has_remark(opened, "1 control dependency that closes a cycle is left out"));
  CHECK(contains(input_error([&] {
                   import_nodes({node(5, "x", kCompute, time), node(1, "a", kCompute, packed(5, {3}) + time),
                                 node(2, "b", kCompute, packed(5, {1}) + time),
                                 node(3, "c", kCompute, packed(5, {2}) + time)});
                 }),
                 "found a cycle of data dependencies (nodes 1, 3, 2)"));
}

TEST_CASE("nodes that may come next go by their start, then by their place in the file") {
  const std::string time = number(7, 1);
  const auto result = import_nodes({node(1, "late", kCompute, number(6, 9) + time),
                                    node(2, "same", kCompute, number(6, 5) + time),
                                    node(3, "too", kCompute, number(6, 5) + time)});
  CHECK(op_names(result.graph) == std::vector<std::string>{"same", "too", "late"});
}

TEST_CASE("tensors of a Chakra node come from text lists or from tensor tuples") {
  const auto list = [](const std::vector<std::string>& texts) {
    std::string content;
    for (const std::string& each : texts) content += text(1, each);
    return text(30, content);
  };
  const auto result = import_nodes(
      {node(1, "a", kCompute,
            number(7, 1) + attribute("inputs", list({"x", "8388608.0"})) +
                attribute("outputs", list({"y", "16"}))),
       node(2, "b", kCompute,
            number(7, 1) + attribute("inputs", list({"y", "32"})) + attribute("outputs", "") +
                text(8, text(1, "[[5, 6, 2, 10, 4, 'cuda:0'], 1, (7, 8, 0, 3, 2, 'cuda:0')]")))});
  const Graph& g = result.graph;
  REQUIRE(g.tensors().size() == 4);
  CHECK(g.tensors()[0].bytes == Bytes(8388608));
  CHECK(g.tensors()[0].kind == TensorKind::kInput);
  CHECK(g.tensors()[1].bytes == Bytes(32));
  CHECK(has_remark(result, "1 tensor of several sizes: the largest counts"));
  CHECK(g.tensors()[2].name == "storage6");
  CHECK(g.tensors()[2].bytes == Bytes((2 + 10) * 4));
  CHECK(g.tensors()[3].bytes == Bytes(6));
  CHECK(contains(input_error([&] {
                   import_nodes({node(1, "a", kCompute, attribute("inputs", list({"x", "big"})))});
                 }),
                 "node 1 (\"a\"): inputs: found \"big\", expected names and bytes in turn"));
}

TEST_CASE("work of no time and no bytes, and unknown types, are errors (case 63)") {
  CHECK(contains(input_error([] { import_nodes({node(1, "a", kCompute)}); }),
                 "found 1 op without any time or bytes"));
  CHECK(
      contains(input_error([] { import_nodes({node(1, "s", kSend, attribute("comm_size", number(9, 0)))}); }),
               "node 1 (\"s\"): found communication of no bytes and no duration, expected comm_size"));
  CHECK(contains(input_error([] {
                   import_nodes(
                       {node(1, "c", kCollective,
                             attribute("comm_type", number(9, 77)) + attribute("comm_size", number(9, 4)))});
                 }),
                 "found comm_type 77"));
  CHECK(contains(
      input_error([] { import_nodes({node(1, "a", kCompute, attribute("num_ops", number(40, 1)))}); }),
      "a value of the unknown type 40"));
  CHECK(contains(
      input_error([] { import_nodes({node(1, "a", kCompute, attribute("is_cpu_op", text(29, "yes")))}); }),
      "is_cpu_op: found a value that is no whole number"));
  CHECK(contains(input_error([] { import_nodes({node(1, "a", 9)}); }), "found the node type 9"));
  CHECK(contains(input_error([] {
                   import_nodes({node(1, "a", kCompute, number(7, 1)), node(1, "b", kCompute, number(7, 1))});
                 }),
                 "the node id 1 twice"));
}

TEST_CASE("what is no Chakra trace, or a part of one, is refused") {
  const TemporaryFiles files;
  const auto message = [&](const std::string& content) {
    return input_error([&] { import_trace("chakra", {files.add("x.et", content)}, {}); });
  };
  CHECK(contains(message(""), "found an empty file"));
  CHECK(contains(message("hello, this is a text"), "expected a"));
  const std::string whole = kHeader + node(1, "abcdef", kCompute, number(7, 1));
  CHECK(contains(message(whole.substr(0, whole.size() - 4)), "expected a whole protobuf message"));
  CHECK(contains(message(kHeader), "found no nodes"));
  CHECK(contains(message("{\"schema\": \"1.0.1\", \"nodes\": []}"), "found no nodes"));
}

TEST_CASE("every real Chakra trace has an op for each node") {
  for (const std::string folder : {"astra_et", "astra_stg"}) {
    const auto path = real_file(folder);
    if (!path) return;
    for (const auto& entry : std::filesystem::directory_iterator(*path)) {
      if (entry.path().extension() != ".et") continue;
      INFO(entry.path().string());
      std::ifstream file(entry.path(), std::ios::binary);
      std::size_t messages = 0;  // a length, then so many bytes
      for (int byte = file.get(); byte >= 0; byte = file.get(), ++messages) {
        std::uint64_t length = static_cast<std::uint64_t>(byte & 127);
        for (int shift = 7; byte & 128; shift += 7)
          length |= static_cast<std::uint64_t>((byte = file.get()) & 127) << shift;
        file.seekg(static_cast<std::streamoff>(length), std::ios::cur);
      }
      CHECK(import_trace("chakra", {entry.path().string()}, {}).graph.ops().size() == messages - 1);
    }
  }
}

TEST_CASE("the small Chakra graph in JSON names ids that aren't there (case 65)") {
  const auto file = real_file("chakra/small_chakra.0.json");
  if (!file) return;
  const auto result = import_trace("chakra", {*file}, {});
  // Five nodes wait for 3, one for 429 and one for 434; the file has nodes 216, 217, 430, 432, 433, 435
  // and 541.
  CHECK(has_remark(result, "7 dependencies name 3 ids that are not in the file"));
  CHECK(result.graph.ops().size() == 7);
  CHECK(total_seconds(result.graph) == Approx((318 + 28 + 4 + 85 + 79 + 28 + 153) * 1e-6));
}

TEST_CASE("the 8-layer Llama of the symbolic tensor generator keeps its FLOPs and tensors") {
  const auto file = real_file("astra_stg/stg-llama8-tp4dp2-8layer.0.et");
  if (!file) return;
  const auto result = import_trace("chakra", {*file}, {});
  CHECK(result.graph.ops().size() == 352);
  // The sum of num_ops, and the different names in inputs and outputs, counted by a decoder of a few lines of
  // Python.
  CHECK(result.graph.tensors().size() == 431);
  CHECK(trace_info(result.graph).flops.value == Approx(19'760'196'616'192.0));
}

}  // namespace hyperoffload
