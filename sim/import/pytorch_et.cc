#include "sim/import/pytorch_et.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/import/execution_trace.h"
#include "sim/import/option_value.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

bool starts_with_any(const std::string& name, std::initializer_list<const char*> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

class OperatorTrace {
 public:
  OperatorTrace(const std::vector<std::string>& files, const ImportOptions& options)
      : maker_("pytorch-et", files),
        costs_(options.costs && !one_word(*options.costs, "--costs", {"shapes"}).empty()) {
    TextStream stream(files[0], "a PyTorch execution trace (ET JSON)");
    trace_ = read_execution_trace(stream);
  }

  ImportResult run() {
    lives_.walk(
        trace_, [this](std::size_t node) { return acts(trace_.nodes[node]); },
        [this](std::size_t node, NodeAccess access) { add(trace_.nodes[node], access); });
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (!tensors_[i].is_none()) maker_.tensor_at(tensors_[i]).bytes = Bytes(lives_.lives()[i].bytes);
    remark();
    return maker_.finish("operators that work on a device's tensors");
  }

 private:
  bool acts(const ExecutionNode& node) const {
    if (!node.leaf || !node.is_operator ||
        starts_with_any(trace_.name(node), {"aten::empty", "aten::new_empty"}))
      return false;
    bool on_device = false, changes = false, returns_device = false, returns_new = false;
    for (const TensorUse& use : node.inputs) {
      on_device |= use.on_device;
      changes |= use.on_device && use.changed;
    }
    for (const TensorUse& use : node.outputs) {
      if (!use.on_device) continue;
      returns_device = true;
      returns_new |= std::none_of(node.inputs.begin(), node.inputs.end(),
                                  [&](const TensorUse& in) { return in.storage == use.storage; });
    }
    return (on_device || returns_device) && (changes || returns_new || !returns_device);
  }

  void add(const ExecutionNode& node, const NodeAccess& access) {
    Op op;
    op.name = trace_.name(node);
    if (starts_with_any(op.name, {"nccl:", "c10d::", "record_param_comms"}))
      op.engine = maker_.engine("comm");
    op.duration = costs_ ? std::nullopt : std::optional(Seconds(0));
    if (costs_) op.hbm_bytes = Bytes(0);
    for (const std::vector<TensorUse>* uses : {&node.inputs, &node.outputs})
      for (const TensorUse& use : *uses)
        if (costs_ && use.on_device) *op.hbm_bytes += Bytes(use.bytes);
    for (const int life : access.reads) op.reads.push_back(tensor(life));
    for (const int life : access.writes) op.writes.push_back(tensor(life));
    maker_.add_op(std::move(op));
  }

  TensorId tensor(int life) {
    const auto i = static_cast<std::size_t>(life);
    if (i >= tensors_.size()) tensors_.resize(i + 1);
    if (tensors_[i].is_none())
      tensors_[i] = maker_.add_tensor(fmt::format("storage{}", lives_.lives()[i].storage), Bytes(0),
                                      TensorKind::kActivation);
    return tensors_[i];
  }

  void remark() {
    maker_.remark(fmt::format("{} of {}; views, allocations and work on the host are none",
                              count_of(maker_.op_count(), "op"), count_of(trace_.nodes.size(), "node")));
    maker_.remark(costs_ ? "no times: an op's HBM bytes are those of the tensors it names"
                         : "no times: every op takes none (--costs shapes makes HBM bytes of the tensors; a "
                           "Kineto trace of the same run has times)");
    std::size_t before = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      before += !tensors_[i].is_none() && lives_.lives()[i].there_before;
    for (const std::string& sentence : trace_.remarks) maker_.remark(sentence);
    if (before > 0)
      maker_.remark(fmt::format("{} there before the trace: weights among these can't be told from inputs",
                                count_of(before, "storage")));
  }

  TraceMaker maker_;
  bool costs_;
  ExecutionTrace trace_;
  StorageLives lives_;
  std::vector<TensorId> tensors_;  // of each life
};

}  // namespace

ImportResult import_pytorch_et(const std::vector<std::string>& files, const ImportOptions& options) {
  return OperatorTrace(files, options).run();
}

}  // namespace hyperoffload
