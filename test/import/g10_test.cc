// G10's nets: the expansion rules on a net that a hand can expand, and the published figures on the real
// ones.
#include <map>
#include <set>

#include "sim/model/read_file.h"
#include "sim/report/trace_info.h"
#include "test/import/data.h"
#include "test/support/tiny.h"

namespace hyperoffload {
namespace {

const std::string kDashes = "-------------------\n";

// Two tokens of one number each, a weight of 2 x 3 (id 1), the input has id 300; then a sum with a second
// weight (id 2).
const std::string kNet =
    "213\nDot\n2\n300 1\n2\n99 2\n2\n2 3\n" + kDashes + "214\nAdd\n2\n213 2\n2\n99 3\n1\n3\n" + kDashes;

ImportResult import_g10_files(const std::vector<std::string>& files, ImportOptions options = {}) {
  return import_trace("g10", files, options);
}

std::string rows(const std::vector<std::string>& values, const std::string& unit) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i)
    text += "000" + std::to_string(i) + " " + values[i] + " " + unit + "\n";
  return text;
}

std::set<std::string> names_of(const Graph& graph, const std::vector<TensorId>& ids) {
  std::set<std::string> names;
  for (TensorId t : ids) names.insert(graph.tensor(t).name);
  return names;
}

}  // namespace

TEST_CASE("a net of two operators expands into forward, loss, backward and update kernels") {
  TemporaryFiles files;
  // Kernels: Linear_Forward, Add_Forward, makeLoss, Add_Backward, Apply_Grad, Linear_Backward_Weight,
  // Linear_Apply_Grad_Weight; the input has no maker, so there is no Linear_Backward_Input.
  const auto result =
      import_g10_files({files.add("BERT_tiny.txt", kNet),
                        files.add("cudnn7.txt", rows({"1", "2", "3.5", "4", "5", "6", "7.000001"}, "ms")),
                        files.add("cudnn7Workspace.txt", rows({"0", "1", "0", "0", "0", "4097", "0"}, "B"))});
  const Graph& g = result.graph;
  std::vector<std::string> names;
  for (const Op& op : g.ops()) names.push_back(op.name);
  CHECK(names == std::vector<std::string>{"Linear_Forward", "Add_Forward", "makeLoss", "Add_Backward",
                                          "Apply_Grad", "Linear_Backward_Weight",
                                          "Linear_Apply_Grad_Weight"});
  CHECK(g.ops()[6].duration->value == 7.000001e-3);
  CHECK(g.ops()[1].workspace == Bytes(4096));
  CHECK(g.ops()[5].workspace == Bytes(8192));
  // In the order of making: output, inputs, gradients. 0: 213's output, 1: the input, 2: weight 1, 3: d
  // weight 1; 4: 214's output, 5: weight 2, 6: d 213, 7: d weight 2, 8: the loss.
  CHECK(names_of(g, g.ops()[0].reads) == std::set<std::string>{"tensor1", "tensor2"});
  CHECK(names_of(g, g.ops()[3].reads) == std::set<std::string>{"tensor8"});
  CHECK(names_of(g, g.ops()[3].writes) == std::set<std::string>{"tensor6", "tensor7"});
  CHECK(names_of(g, g.ops()[5].reads) == std::set<std::string>{"tensor6", "tensor1"});
  CHECK(names_of(g, g.ops()[6].writes) == std::set<std::string>{"tensor2"});
  for (const Tensor& tensor : g.tensors()) CHECK(tensor.bytes == Bytes(4096));  // all are below a page
  CHECK(g.tensors()[2].kind == TensorKind::kOther);
  CHECK(g.tensors()[2].persistent);
  CHECK(g.tensors()[1].kind == TensorKind::kInput);  // read, never written
}

TEST_CASE("What a global tensor is, --global says") {
  TemporaryFiles files;
  const std::vector<std::string> paths = {
      files.add("bert.txt", kNet), files.add("cudnn2.txt", rows({"1", "1", "1", "1", "1", "1", "1"}, "ms"))};
  ImportOptions options;
  options.border = "3";
  CHECK(import_g10_files(paths, options).graph.tensors()[2].kind == TensorKind::kOther);
  options.global = "weight";
  CHECK(import_g10_files(paths, options).graph.tensors()[2].kind == TensorKind::kWeight);
  options.global = "activation";  // read before any write: an input then
  const Graph g = import_g10_files(paths, options).graph;
  CHECK(g.tensors()[2].kind == TensorKind::kInput);
  CHECK_FALSE(g.tensors()[2].persistent);
  options.global = "weights";
  CHECK(contains(input_error([&] { import_g10_files(paths, options); }), "expected \"weight\""));
}

TEST_CASE("a G10 import says what is missing or does not fit") {
  TemporaryFiles files;
  const std::string net = files.add("bert.txt", kNet);
  const std::string times = files.add("cudnn2.txt", rows({"1", "1", "1", "1", "1", "1", "1"}, "ms"));
  CHECK(contains(input_error([&] { import_g10_files({net}); }), "found a net without kernel times"));
  CHECK(contains(
      input_error([&] {
        import_g10_files({net, files.add("times.txt", rows({"1", "1", "1", "1", "1", "1", "1"}, "ms"))});
      }),
      "found no batch size in the files' names, expected names like cudnn128.txt, or --batch N"));
  CHECK(contains(input_error([&] {
                   import_g10_files({net, files.add("cudnn3.txt", rows({"1", "1"}, "ms"))});
                 }),
                 "found times for 2 kernels, expected 7"));
  CHECK(contains(input_error([&] {
                   import_g10_files({net, times, files.add("cudnn4Workspace.txt", rows({"1"}, "B"))});
                 }),
                 "found a file for batch 4, expected batch 2"));
  CHECK(contains(input_error([&] {
                   import_g10_files({files.add("x.txt", kNet), times});
                 }),
                 "expected --border N"));
  CHECK(contains(input_error([&] {
                   import_g10_files({files.add("hello.txt", "hello\n"), times});
                 }),
                 "found \"hello\""));
  CHECK(contains(input_error([&] {
                   import_g10_files({files.add("bert_cut.txt", kNet + "215 Dot 2 3"), times});
                 }),
                 "found the end of the file"));
  CHECK(contains(input_error([&] {
                   import_g10_files({files.add("bert2.txt", "1 Dott 1 2 1 99 " + kDashes), times});
                 }),
                 "the operator type \"Dott\", expected \"Dot\""));
  CHECK(contains(input_error([&] {
                   import_trace("g11", {net, times}, {});
                 }),
                 "--format: found \"g11\", expected \"g10\""));
}

TEST_CASE("a small residual net is wired as its printed tree can't say") {
  TemporaryFiles files;
  const std::string net =
      "ResNet(\n"
      "  (conv1): Conv2d(3, 2, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), bias=False)\n"
      "  (layer1): Sequential(\n"
      "    (0): BasicBlock(\n"
      "      (conv1): Conv2d(2, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)\n"
      "      (relu): ReLU(inplace=True)\n"
      "    )\n"
      "  )\n"
      ")\n";
  // Forward 1 (load) + 4, loss, backward: Add none; ReLU 1; conv 3; the first conv's output has two readers:
  // 1 + 3.
  ImportOptions options;
  options.pixels = "8";
  const auto result = import_g10_files(
      {files.add("net.txt", net),
       files.add("cudnn5.txt",
                 rows({"1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1"}, "ms"))},
      options);
  std::vector<std::string> names;
  for (const Op& op : result.graph.ops()) names.push_back(op.name);
  CHECK(names == std::vector<std::string>{
                     "LoadData_A0", "Conv2d_Forward", "Conv2d_Forward#2", "ReLU_Forward", "Add_Forward",
                     "makeLoss", "ReLU_Backward", "Conv2d_Backward_Weight", "Conv2d_Backward_Input",
                     "Conv2d_Apply_Grad", "Add_MultiGredient", "Conv2d_Backward_Weight#2",
                     "Conv2d_Backward_Input#2", "Conv2d_Apply_Grad#2"});
  CHECK(result.graph.ops()[10].reads.size() == 2);
  CHECK(result.graph.ops()[4].reads.size() == 2);
}

TEST_CASE("the expanded BERT-128 has G10's ideal time and peak") {
  const auto file = real_file("g10_expanded/BERT_Base-128-lru-kernels.config.gz");
  if (!file) return;
  const auto result = import_g10_files({*file});
  const TraceInfo info = trace_info(result.graph);
  CHECK(info.ops == 1369);
  CHECK(info.tensors == 1463);
  CHECK(total_seconds(result.graph) == Approx(5.906).epsilon(1e-5));
  CHECK(info.peak_live == Bytes(25'859'059'712));
  CHECK(info.bytes_by_kind[static_cast<std::size_t>(TensorKind::kOther)] == Bytes(9'115'529'216));
}

TEST_CASE("the expanded ResNet152-256 has G10's peak") {
  const auto file = real_file("g10_expanded/ResNet152-256-FlashNeuron-kernels.config.gz");
  if (!file) return;
  const auto result = import_g10_files({*file});
  CHECK(trace_info(result.graph).ops == 1299);
  CHECK(trace_info(result.graph).peak_live == Bytes(58'919'215'104));
}

// The shipped form of a net must come out as G10 itself expanded it: same kernels, tensors, sizes and times.
// There a workspace is a tensor of its own that one kernel writes.
void check_same_program(const Graph& shipped, const Graph& expanded) {
  REQUIRE(shipped.ops().size() == expanded.ops().size());
  std::map<std::string, Bytes> sizes;
  for (const Tensor& tensor : shipped.tensors()) sizes[tensor.name] = tensor.bytes;
  std::size_t differences = 0;
  for (std::size_t i = 0; i < shipped.ops().size(); ++i) {
    const Op &a = shipped.ops()[i], &b = expanded.ops()[i];
    std::set<std::string> writes;
    Bytes workspace;
    for (TensorId t : b.writes) {
      const Tensor& tensor = expanded.tensor(t);
      if (sizes.count(tensor.name) > 0) {
        writes.insert(tensor.name);
        differences += sizes[tensor.name] != tensor.bytes;
      } else {
        workspace += tensor.bytes;
      }
    }
    differences += a.name != b.name || a.workspace != workspace || names_of(shipped, a.writes) != writes ||
                   names_of(shipped, a.reads) != names_of(expanded, b.reads) ||
                   std::abs(a.duration->value - b.duration->value) > 1e-9;  // G10 cuts to whole cycles
  }
  CHECK(differences == 0);
}

TEST_CASE("the shipped BERT-128 expands as G10 expands it") {
  const auto net = real_file("g10/Nets/BERT_Base.txt");
  const auto expanded = real_file("g10_expanded/BERT_Base-128-lru-kernels.config.gz");
  if (!net || !expanded) return;
  const std::string folder = net->substr(0, net->find("Nets")) + "results/BERT_Base/cudnn128";
  check_same_program(import_g10_files({*net, folder + ".txt", folder + "Workspace.txt"}).graph,
                     import_g10_files({*expanded}).graph);
}

TEST_CASE("the shipped ResNet152-256 expands as G10 expands it") {
  const auto net = real_file("g10/Nets/ResNet152.txt");
  const auto expanded = real_file("g10_expanded/ResNet152-256-FlashNeuron-kernels.config.gz");
  if (!net || !expanded) return;
  const std::string folder = net->substr(0, net->find("Nets")) + "results/ResNet152/cudnn256";
  const Graph shipped = import_g10_files({*net, folder + ".txt", folder + "Workspace.txt"}).graph;
  check_same_program(shipped, import_g10_files({*expanded}).graph);
  CHECK(trace_info(shipped).peak_live == Bytes(58'919'215'104));
}

TEST_CASE("every net that has kernel times imports with the sum of its times, in every batch") {
  const auto results = real_file("g10/results");
  if (!results) return;
  std::size_t imported = 0;
  for (const auto& folder : std::filesystem::directory_iterator(*results))
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().stem().string(),
                        stem = entry.path().parent_path().string() + "/" + name;
      if (contains(name, "PF") || contains(name, "Workspace")) continue;
      INFO(stem);
      const std::string net = *results + "/../Nets/" + folder.path().filename().string() + ".txt";
      const auto result = import_g10_files({net, stem + ".txt", stem + "Workspace.txt"});
      std::ifstream times(stem + ".txt"), workspaces(stem + "Workspace.txt");
      double sum_ms = 0, value = 0;
      std::string number, unit;
      std::size_t count = 0, different = 0;
      for (; times >> number >> value >> unit; ++count) sum_ms += value;
      for (const Op& op : result.graph.ops()) {
        workspaces >> number >> value >> unit;
        different += op.workspace.value < static_cast<std::int64_t>(value) ||
                     op.workspace.value >= static_cast<std::int64_t>(value) + 4096;
      }
      CHECK(result.graph.ops().size() == count);
      CHECK(different == 0);
      CHECK(total_seconds(result.graph) * 1e3 == Approx(sum_ms).epsilon(1e-12));
      CHECK(has_remark(import_g10_files({net, stem + "PF.txt"}), "times with page faults"));
      ++imported;
    }
  CHECK(imported == 15);
}

TEST_CASE("nets without times, and G10's other files, are refused for what they are") {
  const auto nets = real_file("g10/Nets");
  if (!nets) return;
  for (const auto& entry : std::filesystem::directory_iterator(*nets)) {
    if (!entry.is_regular_file()) continue;
    INFO(entry.path().string());
    CHECK(contains(input_error([&] { import_g10_files({entry.path().string()}); }),
                   "found a net without kernel times, expected NET cudnnB.txt"));
  }
  for (const std::string file : {"g10/Nets/original/nerf_bs1.json", "g10/example.config"})
    CHECK(contains(input_error([&] { import_g10_files({*real_file(file)}); }),
                   "expected a net of G10's, or its expanded kernels.config"));
  for (const std::string list : {"tensors", "interval"})
    CHECK(contains(input_error([&] {
                     import_g10_files({*real_file("g10_expanded/BERT_Base-128-lru-" + list + ".config.gz")});
                   }),
                   "expected its kernels.config"));
}

}  // namespace hyperoffload
