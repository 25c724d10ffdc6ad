// G10's expansion of a net given as a module tree: tensors a layer, then kernels.
#include <fmt/format.h>

#include <map>

#include "sim/import/g10_layers.h"
#include "sim/import/g10_program.h"
#include "sim/model/check.h"
#include "sim/model/error.h"

namespace hyperoffload {
namespace {

using Type = G10LayerType;

constexpr int kNone = -1;
constexpr std::int64_t kElementBytes = 4;  // fp32

struct LayerTensors {
  int input = kNone, output = kNone, d_input = kNone;
  std::vector<int> other_inputs, other_d_inputs;  // of Add and Concat, from the second on
  int weight = kNone, d_weight = kNone, bias = kNone, d_bias = kNone, mask = kNone;
  std::vector<int> statistics;    // of a batch norm: mean, variance, normalised, inverse deviation
  std::vector<int> d_statistics;  // and their gradients
  std::vector<int> running;
  int d_output = kNone;
  std::vector<int> other_d_outputs;
};

const char* type_name(Type type) {
  switch (type) {
    case Type::kConv:
      return "Conv2d";
    case Type::kReLU:
      return "ReLU";
    case Type::kMaxPool:
      return "MaxPool2d";
    case Type::kAvgPool:
      return "AdaptiveAvgPool2d";
    case Type::kDropout:
      return "Dropout";
    case Type::kLinear:
      return "Linear";
    case Type::kBatchNorm:
      return "BatchNorm2d";
    case Type::kAdd:
      return "Add";
    case Type::kConcat:
      return "Concat";
    case Type::kScale:
      return "Scale";
  }
  return "";
}

class ModuleExpander {
 public:
  ModuleExpander(std::vector<G10Layer> layers, std::int64_t batch)
      : layers_(std::move(layers)), batch_(batch) {
    tensors_.resize(layers_.size());
  }

  G10Program expand() {
    for (std::size_t i = 0; i < layers_.size(); ++i) make_tensors(i);
    for (std::size_t i = layers_.size(); i-- > 0;) link_gradients(i);
    for (std::size_t i = 0; i < layers_.size(); ++i) forward(i);
    const std::size_t last = layers_.size() - 1;
    emit(last, "makeLoss");
    read(tensors_[last].output);
    write(tensors_[last].d_output);
    for (std::size_t i = layers_.size(); i-- > 0;) backward(i);
    return std::move(program_);
  }

 private:
  int make(std::int64_t elements, bool global = false) {
    return program_.add_tensor(elements * kElementBytes, global);
  }

  void make_tensors(std::size_t i) {
    const G10Layer& layer = layers_[i];
    LayerTensors& t = tensors_[i];
    const std::int64_t in = batch_ * layer.in.elements(), out = batch_ * layer.out.elements();
    if (!layer.before.empty()) t.input = output_of(layer.before[0]);
    switch (layer.type) {
      case Type::kConv: {
        if (t.input == kNone) t.input = make(in);
        t.output = make(out);
        const std::int64_t weights =
            layer.out_channels * (layer.in_channels / layer.groups) * layer.kernel[0] * layer.kernel[1];
        t.weight = make(weights, true);
        t.d_weight = make(weights);
        t.d_input = make(in);
        return;
      }
      case Type::kDropout:
        t.mask = make(in);
        [[fallthrough]];
      case Type::kReLU:
        t.output = layer.in_place ? t.input : make(in);
        t.d_input = make(in);
        return;
      case Type::kMaxPool:
      case Type::kAvgPool:
      case Type::kScale:
        t.output = make(out);
        t.d_input = make(in);
        return;
      case Type::kLinear:
        return make_linear(layer, t, in, out);
      case Type::kBatchNorm:
        return make_batch_norm(layer, t, in);
      case Type::kAdd:
        for (std::size_t k = 1; k < layer.before.size(); ++k)
          t.other_inputs.push_back(output_of(layer.before[k]));
        t.output = make(out);
        return;  // the gradient of each input is that of the output
      case Type::kConcat:
        t.d_input = make(part(layer, 0));
        for (std::size_t k = 1; k < layer.before.size(); ++k) {
          t.other_inputs.push_back(output_of(layer.before[k]));
          t.other_d_inputs.push_back(make(part(layer, k)));
        }
        t.output = make(out);
        return;
    }
  }

  // Elements of the k-th part of a Concat: G10 takes the channels that go into the layer before.
  std::int64_t part(const G10Layer& concat, std::size_t k) const {
    return batch_ * concat.in.height * concat.in.width *
           layers_[static_cast<std::size_t>(concat.before[k])].in.channels;
  }

  void make_linear(const G10Layer& layer, LayerTensors& t, std::int64_t in, std::int64_t out) {
    const std::int64_t weights = layer.in_channels * layer.out_channels;
    t.weight = make(weights, true);
    t.output = make(out);
    t.d_input = make(in);
    t.d_weight = make(weights);
    if (!layer.bias) return;
    t.bias = make(layer.out_channels, true);
    t.d_bias = make(layer.out_channels);
  }

  void make_batch_norm(const G10Layer& layer, LayerTensors& t, std::int64_t in) {
    const std::int64_t channels = layer.in.channels;
    t.output = make(in);
    t.d_input = make(in);
    t.weight = make(2 * channels, true);  // scale and shift
    t.d_weight = make(2 * channels);
    for (std::vector<int>* list : {&t.statistics, &t.d_statistics})
      for (const std::int64_t size : {channels, channels, in, channels}) list->push_back(make(size));
    if (layer.running_stats) t.running = {make(channels, true), make(channels, true)};
  }

  int output_of(int layer) const { return tensors_[static_cast<std::size_t>(layer)].output; }

  // Where a layer's output gradient stands: in the tensors of the layers behind it.
  void link_gradients(std::size_t i) {
    const G10Layer& layer = layers_[i];
    LayerTensors& t = tensors_[i];
    if (i + 1 == layers_.size()) {
      t.d_output = make(batch_ * layer.out.elements());
      return;
    }
    HYPER_CHECK(!layer.after.empty(), "every layer but the last is read");
    for (const int next : layer.after) {
      const int gradient = gradient_from(static_cast<std::size_t>(next), static_cast<int>(i));
      if (t.d_output == kNone)
        t.d_output = gradient;
      else
        t.other_d_outputs.push_back(gradient);
    }
  }

  int gradient_from(std::size_t next, int layer) const {
    const LayerTensors& t = tensors_[next];
    if (layers_[next].type == Type::kAdd) return t.d_output;
    if (layers_[next].type != Type::kConcat || layers_[next].before[0] == layer) return t.d_input;
    std::size_t k = 1;
    while (layers_[next].before[k] != layer) ++k;
    return t.other_d_inputs[k - 1];
  }

  void emit(std::size_t layer, const std::string& name) {
    program_.kernels.emplace_back();
    program_.kernels.back().name = name;
    program_.kernels.back().layer = static_cast<int>(layer);
  }
  void read(int tensor) { program_.kernels.back().reads.push_back(tensor); }
  void write(int tensor) { program_.kernels.back().writes.push_back(tensor); }
  void read(const std::vector<int>& tensors) {
    for (int tensor : tensors) read(tensor);
  }
  void write(const std::vector<int>& tensors) {
    for (int tensor : tensors) write(tensor);
  }

  void forward(std::size_t i) {
    const LayerTensors& t = tensors_[i];
    if (i == 0) {
      emit(i, "LoadData_A0");
      write(t.input);
    }
    emit(i, std::string(type_name(layers_[i].type)) + "_Forward");
    read(t.input);
    for (const int tensor : {t.weight, t.bias, t.mask})
      if (tensor != kNone) read(tensor);
    read(t.other_inputs);
    read(t.running);
    write(t.running);
    write(t.output);
    write(t.statistics);
  }

  void apply(std::size_t i, const std::string& name, int gradient, int weight) {
    emit(i, name);
    read(gradient);
    read(weight);
    write(weight);
  }

  // A kernel that turns the output's gradient and what `more` names into `result`.
  void differentiate(std::size_t i, const std::string& name, const std::vector<int>& more, int result) {
    emit(i, name);
    read(tensors_[i].d_output);
    read(more);
    write(result);
  }

  void backward(std::size_t i) {
    const LayerTensors& t = tensors_[i];
    const std::string name = type_name(layers_[i].type);
    if (!t.other_d_outputs.empty()) {
      emit(i, "Add_MultiGredient");  // spelt so
      read(t.d_output);
      read(t.other_d_outputs);
      write(t.d_output);
    }
    switch (layers_[i].type) {
      case Type::kLinear:
        if (t.bias != kNone) {
          differentiate(i, "Linear_Backward_Bias", {}, t.d_bias);
          apply(i, "Linear_Apply_Grad_Bias", t.d_bias, t.bias);
        }
        [[fallthrough]];
      case Type::kConv:
        differentiate(i, name + "_Backward_Weight", {t.input}, t.d_weight);
        differentiate(i, name + "_Backward_Input", {t.weight}, t.d_input);
        return apply(i, name + (layers_[i].type == Type::kConv ? "_Apply_Grad" : "_Apply_Grad_Weight"),
                     t.d_weight, t.weight);
      case Type::kReLU:
      case Type::kMaxPool:
      case Type::kAvgPool:
        return differentiate(i, name + "_Backward", {t.input}, t.d_input);
      case Type::kDropout:
        return differentiate(i, name + "_Backward", {t.mask}, t.d_input);
      case Type::kBatchNorm:
        differentiate(i, name + "_Backward", {t.statistics[2], t.statistics[3], t.weight}, t.d_input);
        write(t.d_weight);
        write(t.d_statistics);
        return apply(i, name + "_Apply_Grad", t.d_weight, t.weight);
      case Type::kScale:
      case Type::kConcat:
        differentiate(i, name + "_Backward", {}, t.d_input);
        return write(t.other_d_inputs);
      case Type::kAdd:
        return;
    }
  }

  std::vector<G10Layer> layers_;
  std::vector<LayerTensors> tensors_;
  std::int64_t batch_;
  G10Program program_;
};

}  // namespace

bool is_g10_module_tree(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.size() > 1 && line.find('(') != std::string_view::npos &&
         line.find_last_not_of(" \r") == line.find('(');
}

G10Program expand_g10_modules(const std::string& text, const std::string& source, std::int64_t batch,
                              std::optional<int> pixels) {
  return ModuleExpander(g10_layers(text, source, pixels), batch).expand();
}

}  // namespace hyperoffload
