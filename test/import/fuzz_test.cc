// Damaged files of every format: whatever the bytes, an importer returns or throws InputError with one line
// of printable text. Seeds are fixed. FUZZ_FACTOR=100 in the environment makes that many times the cases.
#include <algorithm>
#include <cstdlib>

#include "sim/import/trace_maker.h"
#include "sim/model/atomic_file.h"
#include "sim/model/utf8.h"
#include "test/import/data.h"
#include "test/import/wire.h"
#include "test/support/rng.h"

namespace hyperoffload {
namespace {

using wire::number;
using wire::packed;
using wire::text;

struct Sample {
  std::string format;
  std::string content, second;  // `second`: another file beside it
  ImportOptions options;
};

std::vector<Sample> samples() {
  const std::string dashes = "-------------------\n";
  std::vector<Sample> all;
  all.push_back(
      {"g10",
       "213\nDot\n2\n300 1\n2\n99 2\n2\n2 3\n" + dashes + "214\nAdd\n2\n213 2\n2\n99 3\n1\n3\n" + dashes,
       "0000 1 ms\n0001 2 ms\n0002 3 ms\n0003 1 ms\n0004 1 ms\n0005 1 ms\n0006 1 ms\n",
       {}});
  all.back().options.batch = "4";
  all.back().options.border = "210";
  all.push_back({"g10",
                 "Kernel ID: 0, Name: A_Forward\nParent Layer ID:0; Name:A\nExecution Time: "
                 "12\n(1,2,3,4)\nInput Tensors:\n"
                 "tensor2 Is weight (global)?: 1, Size in byte: 8192, Range:0--8192\nOutput Tensors:\n"
                 "tensor0 Is weight (global)?: 0, Size in byte: 4096, Range:0--4096\n______\n",
                 "",
                 {}});
  all.push_back(
      {"g10",
       "ResNet(\n  (c): Conv2d(3, 2, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)\n"
       "  (b): BasicBlock(\n    (conv1): Conv2d(2, 2, kernel_size=(3, 3), padding=(1, 1))\n    (relu): "
       "ReLU(inplace=True)\n  )\n)\n",
       "0 1 ms\n1 1 ms\n2 1 ms\n3 1 ms\n4 1 ms\n5 1 ms\n6 1 ms\n7 1 ms\n8 1 ms\n9 1 ms\n10 1 ms\n11 1 ms\n12 "
       "1 ms\n13 1 ms\n",
       {}});
  all.back().options.batch = "1";
  all.back().options.pixels = "8";
  all.push_back(
      {"activation-trace",
       R"({"ops": [{"name": "a", "duration_ms": 1.5, "accesses": [[0, 1, "WRITE"], {"op_id": 0, "storage_id": 2, "kind": "READ"}]}],
                 "storage_sizes": {"1": 5}, "retained_sids": [2], "memory_limit_bytes": 9})",
       "",
       {}});
  const std::string kineto =
      R"json({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "m", "tid": 5, "ts": 1.5, "dur": 2, "args": {"External id": 2}},
      {"ph": "X", "cat": "cuda_runtime", "name": "l", "tid": 5, "ts": 2, "dur": 1, "args": {"correlation": 9}},
      {"ph": "i", "name": "[memory]", "ts": 1, "args": {"Device Type": 1, "Device Id": 0, "Addr": 1, "Bytes": 8, "Total Allocated": 9}},
      {"ph": "X", "cat": "kernel", "name": "k", "ts": "7.25", "dur": 1, "args": {"External id": 2, "device": 0, "stream": 7, "correlation": 9}}]})json";
  const std::string nodes =
      R"json({"schema": "1.0.1", "nodes": [{"name": "m", "id": 2, "rf_id": 2, "parent": 1, "tid": 1,
      "op_schema": "m(Tensor(a!) self) -> Tensor", "inputs": [[1, 2, 0, 6, 4, "cuda:0"]], "outputs": [[3, 4, 0, 6, 4, "cuda:0"]]}]})json";
  all.push_back({"kineto", kineto, nodes, {}});
  all.push_back({"kineto", kineto, "", {}});
  all.back().options.tensors = "memory";
  all.back().options.gaps = "keep";
  all.back().options.dependencies = "observed";
  all.push_back({"pytorch-et", nodes, "", {}});
  const auto attribute = [](const std::string& name, const std::string& value) {
    return text(10, text(1, name) + value);
  };
  all.push_back(
      {"chakra",
       wire::message(text(1, "0.0.4")) +
           wire::message(number(1, 1) + text(2, "a") + number(3, 4) + packed(5, {7}) +
                         attribute("num_ops", number(9, 5)) +
                         attribute("inputs", text(30, text(1, "x") + text(1, "8.0"))) +
                         text(8, text(1, "[[1, 2, 0, 3, 4, 'cuda:0']]"))) +
           wire::message(number(1, 2) + text(2, "b") + number(3, 7) + packed(4, {1}) +
                         attribute("comm_type", number(9, 0)) + attribute("comm_size", number(13, 99))),
       "",
       {}});
  all.push_back(
      {"chakra",
       R"({"workload_graph": [{"Id": 1, "Name": "a", "NodeType": 4, "ctrlDeps": [3], "data_deps": [], "runtime": 5}]})",
       "",
       {}});
  all.push_back({"memory-timeline",
                 "[[-1, 1, 10, 6], [1000, 2, 5, 3], [3000, 3, -5, 3], [3000, 3, 5, 4], [4000, 4, -5, 4]]",
                 "",
                 {}});
  all.push_back({"memory-snapshot",
                 std::string("\x80\x04}\x94(\x8c\x0d"
                             "device_traces\x94](](}(\x8c\x06"
                             "action\x94\x8c\x05"
                             "alloc\x94\x8c\x04"
                             "addr\x94K\x05\x8c\x04size\x94"
                             "M\x10\x01uee\x8c\x08segments\x94]u."),
                 "",
                 {}});
  all.push_back(
      {"ascend",
       R"([{"name": "process_name", "pid": 3, "args": {"name": "HCCL"}, "ph": "M"}, {"name": "t", "pid": 3, "tid": 2, "ts": "5.5", "dur": 1.25, "ph": "X"}])",
       "",
       {}});
  all.push_back(
      {"mindspore", "op_name, stream_id, start_time(ms), duration(ms)\na,1,2.5,3\nb,2,3,4\n", "", {}});
  all.push_back({"llmservingsim",
                 "COLOCATED\n1\nLayername comp_time a b c d e f g h i\nx_0 10 LOCAL 5 LOCAL 6 LOCAL 7 "
                 "ALLREDUCE 8 NONE\n",
                 "",
                 {}});
  const std::string info =
      text(1, "x") + text(2, text(1, number(1, 1) + text(2, text(1, number(1, 2)) + text(1, number(1, 3)))));
  all.push_back(
      {"onnx",
       number(1, 8) +
           text(7, text(1, text(1, "x") + text(1, "w") + text(2, "y") + text(4, "MatMul")) +
                       text(1, text(1, "y") + text(2, "z") + text(4, "Transpose")) +
                       text(5, number(1, 3) + number(1, 4) + number(2, 1) + text(8, "w") + text(9, "")) +
                       text(11, info)),
       "",
       {}});
  all.back().options.costs = "shapes";
  return all;
}

void damage(Rng& random, std::string& text) {
  if (text.empty()) return;
  const std::vector<std::string> tokens = {
      "-1",   "99999999999999999999", "1e400", "\"", "{", "]", "NaN", "null", "\n", "0",
      "\xff", std::string(1, '\0'),   "()",    "#2"};
  const auto at = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 1));
  switch (random.pick(0, 5)) {
    case 0:
      text.resize(at);
      break;
    case 1:
      text[at] = static_cast<char>(random.pick(0, 255));
      break;
    case 2:
      text.erase(at, static_cast<std::size_t>(random.pick(1, 8)));
      break;
    case 3:
      text.insert(
          at,
          text.substr(static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(text.size()) - 1)),
                      static_cast<std::size_t>(random.pick(0, 60))));
      break;
    default:
      text.replace(at, static_cast<std::size_t>(random.pick(0, 4)), random.one_of(tokens));
  }
}

ImportResult import_sample(const TemporaryFiles& files, const Sample& sample) {
  std::vector<std::string> paths = {files.add("first", sample.content)};
  if (!sample.second.empty()) paths.push_back(files.add("second", sample.second));
  return import_trace(sample.format, paths, sample.options);
}

}  // namespace

TEST_CASE("the samples that get damaged import as they are, plain and gzipped, to the same trace") {
  for (const Sample& sample : samples()) {
    INFO(sample.format);
    const TemporaryFiles files;
    const std::string plain = graph_to_json(import_sample(files, sample).graph);
    Sample packed = sample;
    packed.content = gzip(packed.content);
    if (!packed.second.empty()) packed.second = gzip(packed.second);
    CHECK(graph_to_json(import_sample(files, packed).graph) == plain);
    const Graph again = parse_graph(plain, "again");
    CHECK(graph_to_json(again) == plain);
  }
}

TEST_CASE("a damaged file of any format is imported or refused in one printable line") {
  int cases = 60;
  if (const char* factor = std::getenv("FUZZ_FACTOR")) cases *= std::atoi(factor);
  Rng random(20);
  const TemporaryFiles files;
  for (const Sample& sample : samples())
    for (int i = 0; i < cases; ++i) {
      Sample damaged = sample;
      for (int k = random.pick(1, 3); k > 0; --k)
        damage(random, damaged.second.empty() || random.chance(0.7) ? damaged.content : damaged.second);
      std::string message;
      try {
        message = input_error([&] { import_sample(files, damaged); });
      } catch (const std::exception& e) {
        INFO(sample.format << ": " << damaged.content << " | " << damaged.second);
        FAIL("not an InputError: " << e.what());
      }
      INFO(sample.format << ": " << message);
      CHECK(message == printable(message));
    }
}

}  // namespace hyperoffload
