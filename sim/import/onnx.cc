#include "sim/import/onnx.h"

#include <fmt/format.h>

#include <set>

#include "sim/import/onnx_model.h"
#include "sim/import/onnx_shapes.h"
#include "sim/import/option_value.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

class OnnxImport {
 public:
  OnnxImport(const std::vector<std::string>& files, const ImportOptions& options)
      : maker_("onnx", files),
        costs_(options.costs && !one_word(*options.costs, "--costs", {"shapes"}).empty()),
        fold_(options.fold && !one_word(*options.fold, "--fold", {"constants"}).empty()) {
    if (options.batch) batch_ = whole_number(*options.batch, "--batch", "a batch size", 1'000'000, 1);
    TextStream stream(files[0], "an ONNX model");
    model_ = read_onnx(stream);
  }

  ImportResult run() {
    if (!model_.name.empty()) maker_.name(model_.name);
    collect_values();
    if (batch_ && open_ == 0)
      throw InputError(maker_.source(), "--batch for a model whose dimensions are all given",
                       "a model that leaves dimensions open, or no --batch");
    infer_onnx_shapes(model_, values_);
    for (const OnnxNode& node : model_.nodes) add(node);
    for (const OnnxTensor& output : model_.outputs)
      if (const auto known = tensors_.find(output.name);
          known != tensors_.end() && maker_.op_count() > 0 && !constants_.count(output.name))
        maker_.keep_to(OpId(maker_.op_count() - 1), known->second);
    remark();
    return maker_.finish("nodes");
  }

 private:
  void collect_values() {
    const auto take = [&](const std::vector<OnnxTensor>& tensors) {
      for (const OnnxTensor& tensor : tensors) {
        OnnxValue& value = values_[tensor.name];
        if (value.type == 0) value.type = tensor.type;
        if (!value.shape && tensor.shape) value.shape = tensor.shape;
        if (value.integers.empty()) value.integers = tensor.integers;
        if (!value.shape) continue;
        for (std::int64_t& dimension : *value.shape) {
          if (dimension >= 0) continue;
          ++open_;
          if (batch_) dimension = *batch_;
        }
      }
    };
    take(model_.initializers);
    for (const OnnxTensor& tensor : model_.initializers) constants_.insert(tensor.name);
    take(model_.inputs);
    take(model_.values);
    take(model_.outputs);
    for (const OnnxTensor& tensor : model_.inputs) inputs_.insert(tensor.name);
  }

  bool is_constant(const OnnxNode& node) const {
    for (const std::string& name : node.inputs)
      if (!name.empty() && constants_.count(name) == 0) return false;
    return true;
  }

  void add(const OnnxNode& node) {
    subgraphs_ += node.subgraphs;
    if (fold_ && is_constant(node)) {
      for (const std::string& name : node.outputs) constants_.insert(name);
      ++folded_;
      return;
    }
    Op op;
    op.name = node.name.empty() ? node.type : node.name;
    if (costs_) {
      if (const auto flops = onnx_flops(node, values_)) op.flops = Flops(*flops);
      op.hbm_bytes = Bytes(0);
    } else {
      op.duration = Seconds(0);
    }
    for (const std::string& name : node.inputs)
      if (!name.empty()) op.reads.push_back(tensor(name));
    for (const std::string& name : node.outputs)
      if (!name.empty()) op.writes.push_back(tensor(name));
    if (costs_)
      for (const std::vector<TensorId>* ids : {&op.reads, &op.writes})
        for (const TensorId id : *ids) *op.hbm_bytes += maker_.tensor_at(id).bytes;
    maker_.add_op(std::move(op));
  }

  TensorId tensor(const std::string& name) {
    const auto [place, fresh] = tensors_.try_emplace(name);
    if (!fresh) return place->second;
    const auto bytes = onnx_bytes(values_[name]);
    unknown_ += !bytes;
    const TensorKind kind = constants_.count(name) > 0 ? TensorKind::kWeight
                            : inputs_.count(name) > 0  ? TensorKind::kInput
                                                       : TensorKind::kActivation;
    return place->second = maker_.add_tensor(name, Bytes(bytes.value_or(0)), kind);
  }

  void remark() {
    maker_.remark(
        costs_ ? "no times: FLOPs of Conv, Gemm and MatMul and HBM bytes of the tensors stand for them"
               : "no times: every op takes none (--costs shapes makes FLOPs and HBM bytes of the shapes)");
    if (unknown_ > 0) maker_.remark(count_of(unknown_, "tensor") + " of unknown size: 0 bytes taken");
    if (open_ > 0)
      maker_.remark(fmt::format("{} left open in the file{}", count_of(open_, "dimension"),
                                batch_ ? fmt::format(": {} taken", *batch_) : " (--batch N fills them in)"));
    if (folded_ > 0) maker_.remark(count_of(folded_, "node") + " computed from constants alone: weights");
    if (subgraphs_ > 0)
      maker_.remark(count_of(subgraphs_, "subgraph") + " (of If, Loop or Scan) not looked into");
  }

  TraceMaker maker_;
  bool costs_, fold_;
  std::optional<std::int64_t> batch_;
  OnnxModel model_;
  OnnxValues values_;
  std::set<std::string> constants_, inputs_;
  std::unordered_map<std::string, TensorId> tensors_;
  std::size_t unknown_ = 0, open_ = 0, folded_ = 0, subgraphs_ = 0;
};

}  // namespace

ImportResult import_onnx(const std::vector<std::string>& files, const ImportOptions& options) {
  return OnnxImport(files, options).run();
}

}  // namespace hyperoffload
