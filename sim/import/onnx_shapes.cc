#include "sim/import/onnx_shapes.h"

#include <algorithm>
#include <set>

namespace hyperoffload {
namespace {

constexpr int kInt64 = 7;

const std::set<std::string> kElementWise = {"Abs",
                                            "Add",
                                            "And",
                                            "BatchNormalization",
                                            "Cast",
                                            "Ceil",
                                            "Clip",
                                            "Cos",
                                            "Div",
                                            "Dropout",
                                            "Elu",
                                            "Equal",
                                            "Erf",
                                            "Exp",
                                            "Floor",
                                            "Gelu",
                                            "Greater",
                                            "HardSigmoid",
                                            "HardSwish",
                                            "Identity",
                                            "InstanceNormalization",
                                            "LRN",
                                            "LayerNormalization",
                                            "LeakyRelu",
                                            "Less",
                                            "Log",
                                            "LogSoftmax",
                                            "Max",
                                            "Mean",
                                            "Min",
                                            "Mish",
                                            "Mul",
                                            "Neg",
                                            "Not",
                                            "Or",
                                            "PRelu",
                                            "Pow",
                                            "Reciprocal",
                                            "Relu",
                                            "Round",
                                            "Selu",
                                            "Sigmoid",
                                            "Sign",
                                            "Sin",
                                            "Softmax",
                                            "Softplus",
                                            "Sqrt",
                                            "Sub",
                                            "Sum",
                                            "Tanh",
                                            "Where",
                                            "GroupNormalization",
                                            "RMSNormalization"};
// Their further inputs are parameters of a channel, and don't broadcast.
const std::set<std::string> kOfFirstInput = {"BatchNormalization",
                                             "Dropout",
                                             "InstanceNormalization",
                                             "LayerNormalization",
                                             "GroupNormalization",
                                             "RMSNormalization",
                                             "Clip",
                                             "PRelu"};

std::int64_t attribute(const OnnxNode& node, const std::string& name, std::int64_t otherwise) {
  const auto found = node.integers.find(name);
  return found == node.integers.end() ? otherwise : found->second.front();
}

std::vector<std::int64_t> attributes(const OnnxNode& node, const std::string& name, std::size_t count,
                                     std::int64_t otherwise) {
  const auto found = node.integers.find(name);
  if (found != node.integers.end() && found->second.size() == count) return found->second;
  return std::vector<std::int64_t>(count, otherwise);
}

class Inference {
 public:
  Inference(const OnnxNode& node, OnnxValues& values) : node_(node), values_(values) {}

  void run() {
    const std::string& type = node_.type;
    if (type == "Constant" || type == "ConstantOfShape") return constant();
    if (!known(0)) return;
    if (kElementWise.count(type) > 0)
      broadcast();
    else if (type == "Conv" || type == "MaxPool" || type == "AveragePool" || type == "LpPool")
      slide();
    else if (type.starts_with("Global"))
      set(global());
    else if (type == "Gemm")
      gemm();
    else if (type == "MatMul")
      matmul();
    else if (type == "Concat")
      concat();
    else if (type == "Reshape")
      reshape();
    else if (type == "Flatten")
      flatten();
    else if (type == "Transpose")
      transpose();
    else if (type == "Unsqueeze" || type == "Squeeze")
      squeeze(type == "Unsqueeze");
    else if (type == "Shape")
      shape_of();
    else if (type == "Gather")
      gather();
    else if (type == "Split")
      split();
    else if (type.starts_with("Reduce"))
      reduce();
  }

 private:
  const OnnxValue* input(std::size_t i) const {
    if (i >= node_.inputs.size() || node_.inputs[i].empty()) return nullptr;
    const auto found = values_.find(node_.inputs[i]);
    return found == values_.end() ? nullptr : &found->second;
  }
  bool known(std::size_t i) const { return input(i) && input(i)->shape; }
  const OnnxShape& shape(std::size_t i) const { return *input(i)->shape; }

  void set(OnnxShape shape, std::size_t output = 0, int type = 0, std::vector<std::int64_t> integers = {}) {
    if (output >= node_.outputs.size() || node_.outputs[output].empty()) return;
    OnnxValue& value = values_[node_.outputs[output]];
    if (value.type == 0) value.type = type != 0 ? type : input(0) ? input(0)->type : 0;
    if (!value.shape) value.shape = std::move(shape);
    if (value.integers.empty()) value.integers = std::move(integers);
  }

  // An axis that may count from the end.
  static std::optional<std::size_t> place(std::int64_t axis, std::size_t rank) {
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    return axis < 0 || axis > static_cast<std::int64_t>(rank) ? std::nullopt
                                                              : std::optional(static_cast<std::size_t>(axis));
  }

  // The axes of an operator: an attribute in older versions, an input in newer ones.
  std::vector<std::int64_t> axes() const {
    const auto found = node_.integers.find("axes");
    if (found != node_.integers.end()) return found->second;
    return input(1) ? input(1)->integers : std::vector<std::int64_t>();
  }

  void constant() {
    if (node_.type == "Constant" && node_.value)
      return set(*node_.value->shape, 0, node_.value->type, node_.value->integers);
    if (node_.type == "Constant" || !input(0)) return;
    const int type = node_.value ? node_.value->type : 1;
    if (!input(0)->integers.empty() || (known(0) && shape(0) == OnnxShape{0}))
      set(input(0)->integers, 0, type);
  }

  void broadcast() {
    OnnxShape result = shape(0);
    for (std::size_t i = 1; i < node_.inputs.size() && kOfFirstInput.count(node_.type) == 0; ++i) {
      if (node_.inputs[i].empty()) continue;
      if (!known(i)) return;
      OnnxShape other = shape(i);
      if (attribute(node_, "broadcast", 0) != 0) break;  // before version 7: the second fits the first
      if (other.size() > result.size()) std::swap(other, result);
      for (std::size_t k = 0; k < other.size(); ++k) {
        std::int64_t& wide = result[result.size() - 1 - k];
        const std::int64_t narrow = other[other.size() - 1 - k];
        if (wide == 1) wide = narrow;
      }
    }
    const int element = node_.type == "Cast"                ? static_cast<int>(attribute(node_, "to", 0))
                        : node_.type == "Where" && input(1) ? input(1)->type
                                                            : 0;
    set(std::move(result), 0, element);
    if (node_.type == "Dropout") set(shape(0), 1);
  }

  // Conv and pooling: a window over all but the first two dimensions.
  void slide() {
    OnnxShape result = shape(0);
    if (result.size() < 3) return;
    const std::size_t rank = result.size() - 2;
    std::vector<std::int64_t> window = attributes(node_, "kernel_shape", rank, 0);
    if (node_.type == "Conv") {
      if (!known(1) || shape(1).size() != result.size()) return;
      result[1] = shape(1)[0];
      if (window[0] == 0) window.assign(shape(1).begin() + 2, shape(1).end());
    }
    const auto strides = attributes(node_, "strides", rank, 1),
               dilations = attributes(node_, "dilations", rank, 1),
               pads = attributes(node_, "pads", 2 * rank, 0);
    const auto pad_mode = node_.texts.find("auto_pad");
    const bool same = pad_mode != node_.texts.end() && pad_mode->second.starts_with("SAME");
    const bool ceil = attribute(node_, "ceil_mode", 0) != 0;
    for (std::size_t i = 0; i < rank; ++i) {
      if (window[i] <= 0 || strides[i] <= 0 || result[i + 2] < 0) return;
      const std::int64_t covered = dilations[i] * (window[i] - 1) + 1,
                         room = result[i + 2] + pads[i] + pads[i + rank] - covered;
      if (room < 0 && !same) return;
      result[i + 2] = same ? (result[i + 2] + strides[i] - 1) / strides[i]
                           : (room + (ceil ? strides[i] - 1 : 0)) / strides[i] + 1;
    }
    set(std::move(result));
  }

  OnnxShape global() const {
    OnnxShape result = shape(0);
    for (std::size_t i = 2; i < result.size(); ++i) result[i] = 1;
    return result;
  }

  void gemm() {
    if (!known(1) || shape(0).size() < 2 || shape(1).size() != 2) return;
    const bool a = attribute(node_, "transA", 0) != 0, b = attribute(node_, "transB", 0) != 0;
    set({shape(0)[a ? 1 : 0], shape(1)[b ? 0 : 1]});
  }

  void matmul() {
    if (!known(1) || shape(0).empty() || shape(1).empty()) return;
    const OnnxShape &a = shape(0), &b = shape(1);
    OnnxShape result(a.size() > b.size() ? a : b);
    if (a.size() < 2 || b.size() < 2) return;
    for (std::size_t i = 0; i + 2 < result.size(); ++i) {
      const auto from = [&](const OnnxShape& s) {
        return i + s.size() >= result.size() ? s[i + s.size() - result.size()] : 1;
      };
      result[i] = std::max(from(a), from(b));
    }
    result[result.size() - 2] = a[a.size() - 2];
    result[result.size() - 1] = b[b.size() - 1];
    set(std::move(result));
  }

  void concat() {
    OnnxShape result = shape(0);
    const auto axis = place(attribute(node_, "axis", 1), result.size());
    if (!axis || *axis >= result.size()) return;
    std::vector<std::int64_t> integers = input(0)->integers;
    for (std::size_t i = 1; i < node_.inputs.size(); ++i) {
      if (!known(i) || shape(i).size() != result.size()) return;
      result[*axis] = result[*axis] < 0 || shape(i)[*axis] < 0 ? -1 : result[*axis] + shape(i)[*axis];
      integers.insert(integers.end(), input(i)->integers.begin(), input(i)->integers.end());
    }
    if (static_cast<std::int64_t>(integers.size()) != result[*axis] || result.size() != 1) integers.clear();
    set(std::move(result), 0, 0, std::move(integers));
  }

  static std::int64_t product(const OnnxShape& shape, std::size_t begin, std::size_t end) {
    std::int64_t elements = 1;
    for (std::size_t i = begin; i < end; ++i) {
      if (shape[i] < 0) return -1;
      if (__builtin_mul_overflow(elements, shape[i], &elements)) return -1;
    }
    return elements;
  }

  void reshape() {
    OnnxShape result = node_.integers.count("shape") ? node_.integers.at("shape")
                       : input(1)                    ? input(1)->integers
                                                     : OnnxShape();
    if (result.empty()) return;
    std::int64_t rest = product(shape(0), 0, shape(0).size());
    std::ptrdiff_t open = -1;
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i] == 0 && i < shape(0).size()) result[i] = shape(0)[i];
      if (result[i] == -1)
        open = static_cast<std::ptrdiff_t>(i);
      else if (result[i] > 0)
        rest = rest < 0 || rest % result[i] != 0 ? -1 : rest / result[i];
    }
    if (open >= 0) result[static_cast<std::size_t>(open)] = rest;
    set(std::move(result));
  }

  void flatten() {
    const auto axis = place(attribute(node_, "axis", 1), shape(0).size());
    if (axis) set({product(shape(0), 0, *axis), product(shape(0), *axis, shape(0).size())});
  }

  void transpose() {
    OnnxShape result = shape(0);
    const auto order = node_.integers.find("perm");
    if (order == node_.integers.end()) {
      std::reverse(result.begin(), result.end());
    } else {
      if (order->second.size() != result.size()) return;
      for (std::size_t i = 0; i < result.size(); ++i) {
        const std::int64_t from = order->second[i];
        if (from < 0 || from >= static_cast<std::int64_t>(result.size())) return;
        result[i] = shape(0)[static_cast<std::size_t>(from)];
      }
    }
    set(std::move(result));
  }

  void squeeze(bool add) {
    std::vector<std::int64_t> list = axes();
    OnnxShape result = shape(0);
    const std::size_t rank = result.size() + (add ? list.size() : 0);
    std::set<std::size_t> places;
    for (const std::int64_t axis : list)
      if (const auto at = place(axis, rank); at && *at < rank) places.insert(*at);
    if (places.size() != list.size() || (add && list.empty())) return;
    if (add) {
      for (const std::size_t at : places)
        result.insert(result.begin() + static_cast<std::ptrdiff_t>(std::min(at, result.size())), 1);
    } else {
      OnnxShape kept;
      for (std::size_t i = 0; i < result.size(); ++i)
        if (list.empty() ? result[i] != 1 : places.count(i) == 0) kept.push_back(result[i]);
      result = std::move(kept);
    }
    set(std::move(result), 0, 0, input(0)->integers);
  }

  void shape_of() { set({static_cast<std::int64_t>(shape(0).size())}, 0, kInt64, shape(0)); }

  void gather() {
    if (!known(1)) return;
    const auto axis = place(attribute(node_, "axis", 0), shape(0).size());
    if (!axis || *axis >= shape(0).size()) return;
    OnnxShape result(shape(0).begin(), shape(0).begin() + static_cast<std::ptrdiff_t>(*axis));
    result.insert(result.end(), shape(1).begin(), shape(1).end());
    result.insert(result.end(), shape(0).begin() + static_cast<std::ptrdiff_t>(*axis) + 1, shape(0).end());
    std::vector<std::int64_t> integers;
    const auto& content = input(0)->integers;
    for (const std::int64_t i : input(1)->integers) {
      const std::int64_t at = i < 0 ? i + static_cast<std::int64_t>(content.size()) : i;
      if (at >= 0 && at < static_cast<std::int64_t>(content.size()))
        integers.push_back(content[static_cast<std::size_t>(at)]);
    }
    set(std::move(result), 0, 0, std::move(integers));
  }

  void split() {
    const auto axis = place(attribute(node_, "axis", 0), shape(0).size());
    if (!axis || *axis >= shape(0).size() || shape(0)[*axis] < 0) return;
    std::vector<std::int64_t> parts = node_.integers.count("split") ? node_.integers.at("split")
                                      : input(1)                    ? input(1)->integers
                                                                    : std::vector<std::int64_t>();
    if (parts.empty())
      parts.assign(node_.outputs.size(), shape(0)[*axis] / static_cast<std::int64_t>(node_.outputs.size()));
    for (std::size_t i = 0; i < std::min(parts.size(), node_.outputs.size()); ++i) {
      OnnxShape result = shape(0);
      result[*axis] = parts[i];
      set(std::move(result), i);
    }
  }

  void reduce() {
    const std::vector<std::int64_t> list = axes();
    const bool keep = attribute(node_, "keepdims", 1) != 0;
    std::set<std::size_t> places;
    for (const std::int64_t axis : list)
      if (const auto at = place(axis, shape(0).size())) places.insert(*at);
    OnnxShape result;
    for (std::size_t i = 0; i < shape(0).size(); ++i) {
      const bool reduced = list.empty() || places.count(i) > 0;
      if (!reduced || keep) result.push_back(reduced ? 1 : shape(0)[i]);
    }
    set(std::move(result));
  }

  const OnnxNode& node_;
  OnnxValues& values_;
};

const OnnxShape* shape_of(const OnnxValues& values, const std::vector<std::string>& names, std::size_t i) {
  if (i >= names.size()) return nullptr;
  const auto found = values.find(names[i]);
  if (found == values.end() || !found->second.shape) return nullptr;
  for (const std::int64_t dimension : *found->second.shape)
    if (dimension < 0) return nullptr;
  return &*found->second.shape;
}

double elements(const OnnxShape& shape) {
  double product = 1;
  for (const std::int64_t dimension : shape) product *= static_cast<double>(dimension);
  return product;
}

}  // namespace

void infer_onnx_shapes(const OnnxModel& model, OnnxValues& values) {
  for (const OnnxNode& node : model.nodes) Inference(node, values).run();
}

std::optional<double> onnx_flops(const OnnxNode& node, const OnnxValues& values) {
  const OnnxShape *a = shape_of(values, node.inputs, 0), *b = shape_of(values, node.inputs, 1),
                  *out = shape_of(values, node.outputs, 0);
  if (!a || !b || !out || a->empty() || b->empty() || out->empty()) return std::nullopt;
  if (node.type == "Conv") return 2 * elements(*out) * elements(*b) / static_cast<double>((*b)[0]);
  if (node.type == "ConvTranspose") return 2 * elements(*a) * elements(*b) / static_cast<double>((*b)[0]);
  if (node.type == "MatMul") return 2 * elements(*out) * static_cast<double>(a->back());
  if (node.type == "Gemm" && a->size() == 2)
    return 2 * elements(*out) * static_cast<double>(attribute(node, "transA", 0) != 0 ? (*a)[0] : (*a)[1]);
  return std::nullopt;
}

std::optional<std::int64_t> onnx_bytes(const OnnxValue& value) {
  const int half_bytes = onnx_half_bytes(value.type);
  if (!value.shape || half_bytes == 0) return std::nullopt;
  std::int64_t bytes = half_bytes;
  for (const std::int64_t dimension : *value.shape)
    if (dimension < 0 || __builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  return (bytes + 1) / 2;
}

}  // namespace hyperoffload
